"""Tables, figures and the page, from records that are made up or cheap."""

import json
import re

import pytest

pytest.importorskip("typer")
from bistochastic.paper import page, runs, tables
from bistochastic.paper.protocol import DEFAULT, Cell, cells
from commands import run


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    monkeypatch.delenv("BISTOCHASTIC_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


def record(method, acc, protocol="paper", name="wine", clusters=3, way="minmax"):
    score = {"ACC": acc, "NMI": acc - 5, "PUR": acc, "clusters": clusters}
    return {
        "protocol": protocol, "set": name, "method": method, "preparation": way,
        "options": {"n_neighbors": 30} if protocol == "paper" else {}, "wanted": 3,
        "scores": [score], "version": 1, "key": f"{method}{acc}{protocol}{name}",
    }  # fmt: skip


RECORDS = [
    record("CAN", 97.19), record("CAN", 90.0), record("ANCMM", 98.31),
    record("ERCAN", 60.0, clusters=2), record("CLR", 95.0),
    record(DEFAULT, 97.5), record(DEFAULT, 96.6, "label-free"),
    record("K-Means", 96.62, "label-free"), record("CAN", 92.0, "label-free"),
]  # fmt: skip


def test_printed_numbers_stand_beside_ours():
    made = {line.method: line for line in tables.lines(3, RECORDS, ["wine"])}
    assert (made["CAN"].printed, made["CAN"].difference) == (97.2, -0.0)
    assert made["ANCMM"].bold
    assert made[DEFAULT].free["ACC"] == 96.6
    assert made[DEFAULT].printed is None
    assert made["CLR"].printed is None
    assert made["K-Means"].tuned is None
    assert any("cannot belong" in text for text in made["ERCAN"].remarks)
    assert any("No run has 3 clusters" in text for text in made["ERCAN"].remarks)


def test_counts():
    held = tables.summary(tables.lines(3, RECORDS, ["wine"]))
    assert (held["near"], held["others"]) == (1, 2)
    assert (held["reached"], held["default"], held["sets"]) == (1, 1, 1)
    assert held["against"]["K-Means"] == {"wins": 0, "ties": 1, "losses": 0}
    assert held["against"]["CAN"] == {"wins": 1, "ties": 0, "losses": 0}
    assert held["means"][f"{DEFAULT}, label-free"] == 96.6


def test_a_number_that_is_far_is_found_among_the_runs():
    held = [record("CAN", acc, way=way) for acc, way in ((99.9, "raw"), (96.0, "unit"))]
    line = next(x for x in tables.lines(3, held, ["wine"]) if x.method == "CAN")
    assert line.difference == 2.7
    assert line.remarks == [
        "1 of 2 runs come within 2 points of the printed number, nearest with unit, "
        "n_neighbors 30."
    ]
    line = next(x for x in tables.lines(3, held[:1], ["wine"]) if x.method == "CAN")
    assert line.remarks == ["No run comes within 2 points: all are from 99.9 to 99.9."]


def test_ranks_by_hand():
    held = [
        record(method, acc, "label-free", name)
        for name, scores in (("wine", (3, 2, 1)), ("ecoli", (3, 1, 1)))
        for method, acc in zip(("CAN", "SC", DEFAULT), scores, strict=True)
    ]
    counts = tables.summary(tables.lines(3, held))
    assert counts["ranks"] == {"CAN": 1.0, "SC": 2.25, DEFAULT: 2.75}
    assert counts["critical"] == 2.34  # 2.344 sqrt(3 * 4 / 12), Demsar's table


def test_formats_say_the_same():
    made = tables.lines(4, RECORDS, ["wine"])
    text, tex, html = tables.markdown(made), tables.latex(made), tables.html(made)
    assert "| Wine | ANCMM | **92.6** | 93.3 | +0.7 |  |" in text
    assert r"Wine & ANCMM & \textbf{92.6} & 93.3 & +0.7 &  &" in tex
    assert "<td>ANCMM</td><td><b>92.6</b></td><td>93.3</td>" in html
    assert len(re.findall("<tr>", html)) == 1 + len(made)
    assert r"n\_neighbors" in tex


def test_the_toy_over_seeds():
    held = [
        record(method, acc + seed, protocol, f"moons:{seed}")
        for method, acc in (("CAN", 80.0), ("ANCMM", 90.0))
        for protocol in ("paper", "label-free")
        for seed in (1, 2, 3)
    ]
    made = tables.toy(held)
    line = next(x for x in made if (x["method"], x["metric"]) == ("ANCMM", "ACC"))
    assert (line["printed"], line["paper"]) == (98.5, 91.0)
    mean, deviation, number = line["paper, all seeds"]
    assert (mean, number) == (92.0, 3)
    assert deviation == pytest.approx((2 / 3) ** 0.5)
    head, rows = tables.toy_rows(made)
    assert len(rows) == 9
    assert all(len(row) == len(head) for row in rows)


def test_the_page_is_whole_and_escaped(tmp_path):
    place = page.write(tmp_path / "out", RECORDS, drawn=False)
    text = place.read_text()
    assert "on 1 of 1 sets" in text
    assert "<script" not in text
    assert "http:" not in text
    assert "https:" not in text
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"index.html", "table1.md", "table3.tex", "table5.html"} <= names


def test_figures_are_drawn():
    plt = pytest.importorskip("matplotlib.pyplot")
    from bistochastic.paper import figures

    toys = [record("CAN", 80.0, p, f"moons:{s}") for p in ("paper", "label-free")
            for s in (1, 2)]  # fmt: skip
    first = figures.figure_1(toys)
    titles = [axes.get_title() for axes in first.axes]
    assert any(title.startswith("ANCMM, k =") for title in titles)
    assert any(title.endswith("wrong") for title in titles)
    second = figures.figure_2(sets=("wine", "ecoli"))
    titles = [axes.get_title() for axes in second.axes]
    assert "Wine, k = 10" in titles
    assert "Ecoli: not there" in titles
    plt.close("all")


def test_the_command(tmp_path):
    words = ("reproduce", "--set", "wine", "--method", "K-Means", "--protocol",
             "label-free", "--no-figures", "--jobs", 1)  # fmt: skip
    done = run(*words)
    assert "The page: reproduction/index.html" in done.stdout
    lines = (tmp_path / "reproduction" / "records.jsonl").read_text().splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])["scores"][0]["ACC"] > 90
    assert "1 of them recorded" in " ".join(run(*words).stderr.split())
    assert "there are" in run("reproduce", "--set", "iris", code=2).stderr
    done = run("reproduce", "--set", "ecoli", "--no-figures")
    assert "is missing" in done.stderr


def test_every_cell_of_the_tables_is_wanted():
    todo = runs.wanted()
    assert len({cell.key for cell in todo}) == len(todo)
    wine = [cell for cell in todo if cell.set == "wine"]
    assert len(wine) == sum(
        len(cells(p, "wine", "table")) for p in ("paper", "label-free")
    )
    assert Cell("paper", "moons:1", "CAN", "raw",
                {"n_neighbors": 10, "candidates": "local"}) in todo  # fmt: skip
