"""The command line: pages."""

import json
import re

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
pytest.importorskip("plotly")
pytest.importorskip("jinja2")
from bistochastic.cli.console import INPUT, OUTPUT, USAGE
from commands import ROLES, rows, run


def seen(path):
    """Return the text that a page shows."""
    text = path.read_text()
    text = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def test_a_page_beside_the_other_files(wine):
    run("cluster", "wine.csv", "-c", 3, *ROLES, "--report", "page.html", "--labels",
        "l.csv", "--summary", "s.json")  # fmt: skip
    text = seen(wine / "page.html")
    facts = json.loads((wine / "s.json").read_text())
    assert "178 rows of wine.csv in 13 columns, asked for 3 clusters" in text
    assert f"of {facts['sizes'][0]}, {facts['sizes'][1]} and" in text
    assert f"{facts['scores']['accuracy']:.3f}" in text
    assert "barolo" in text
    assert "w0" in text
    assert "StandardScaler" in text
    assert "random_state=0" in text
    assert facts["outputs"]["report"] == "page.html"
    mean = sum(float(line.split(",")[13]) for line in rows().splitlines()[1:]) / 178
    assert 500 < mean < 1000
    assert re.search(r"proline ▲ 1,1\d\d", text)  # in its own units


def test_categories_are_named_by_their_texts(wine):
    run("cluster", "wine.csv", "-c", 2, "--use", "color,hue", "--encode", "--report",
        "page.html")  # fmt: skip
    text = seen(wine / "page.html")
    assert re.search(r"color = (dark|light) ▲ 1", text)


def test_a_page_of_a_model_that_was_kept(wine):
    run("cluster", "holes.csv", "-c", 3, *ROLES, "--drop-missing", "--model", "m",
        "--report", "first.html")  # fmt: skip
    done = run("report", "m", "holes.csv", "--id", "bottle", "--label", "cultivar",
               "--drop-missing", "--out", "again.html")  # fmt: skip
    assert done.stdout.splitlines()[-1] == "The page: again.html"
    first, again = seen(wine / "first.html"), seen(wine / "again.html")
    assert first == again
    assert "2 rows with missing values left out." in again
    assert "bistochastic" in again


def test_what_cannot_have_a_page(wine):
    run("cluster", "wine.csv", "-c", 3, *ROLES, "--model", "m")
    assert (
        "name it" in run("report", "m", "wine.csv", "--out", "p.pdf", code=USAGE).stderr
    )
    (wine / "other.csv").write_text("\n".join(rows().splitlines()[:100]) + "\n")
    done = run("report", "m", "other.csv", "--id", "bottle", code=INPUT)
    assert "has 99 rows, and the model was made of 178" in " ".join(done.stderr.split())
    changed = [line.replace(",1", ",7") for line in rows().splitlines()[1:]]
    text = "\n".join([rows().splitlines()[0], *changed]) + "\n"
    (wine / "changed.csv").write_text(text)
    done = run("report", "m", "changed.csv", "--id", "bottle", code=INPUT)
    assert "is not the data of `fit`" in " ".join(done.stderr.split())
    assert not (wine / "report.html").exists()
    (wine / "there.html").write_text("mine")
    done = run("cluster", "wine.csv", "-c", 3, "--report", "there.html", code=OUTPUT)
    assert (wine / "there.html").read_text() == "mine"


def test_rows_that_are_left_out_keep_their_numbers(wine):
    lines = rows({(i, 0) for i in range(5)}).splitlines()
    text = "\n".join(line.split(",", 1)[1] for line in lines) + "\n"
    (wine / "plain.csv").write_text(text)
    run("cluster", "plain.csv", "-c", 3, "--drop", "color,cultivar", "--drop-missing",
        "--report", "p.html")  # fmt: skip
    text = seen(wine / "p.html")
    assert "row 178" in text
    assert not re.search(r"\brow [1-5]\b", text)
    assert "as the command makes them ready" in text


def test_odd_names_of_outputs(wine):
    for out in ("-", ""):
        done = run("cluster", "wine.csv", "-c", 3, "--report", out, code=USAGE)
        assert "name a file" in done.stderr
    run("cluster", "wine.csv", "-c", 3, *ROLES, "--model", "m")
    done = run("report", "m", "wine.csv", "--out", "z.txt", code=USAGE)
    assert "--out z.txt" in done.stderr
    assert {path.name for path in wine.iterdir()} == {"wine.csv", "holes.csv", "m"}


def test_models_that_say_odd_things_of_themselves(wine):
    from bistochastic import ANCMM
    from bistochastic.io import save

    run("cluster", "wine.csv", "-c", 3, *ROLES, "--model", "m")
    from bistochastic.io.models import load_with_extra

    model, extra = load_with_extra(wine / "m")
    assert isinstance(model, ANCMM)
    for told in (5, {"seconds": {"fit": "long"}}, {"notes": "text"}):
        save(model, wine / "odd", extra=extra | {"told": told}, force=True)
        done = run("report", "odd", "wine.csv", "--id", "bottle", code=INPUT)
        assert "is damaged" in done.stderr


def test_the_extra_is_named_before_the_work(wine, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = run("cluster", "wine.csv", "-c", 3, *ROLES, "--report", "p.html", code=INPUT)
    assert "bistochastic[report]" in done.stderr
    assert "rows, 13 columns" not in done.stderr
