"""The command line looks at its files and libraries before it works."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
import tampering
from bistochastic.cli.console import INPUT, OUTPUT, USAGE
from commands import ROLES, rows, run
from selection import some

S = np.array([[4.0, 2, 0], [2, 1, 3], [0, 3, 9]])


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wine.csv").write_text(rows())
    np.save("s.npy", S)
    return tmp_path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "wine.csv").write_text(rows())
    run("cluster", folder / "wine.csv", "-c", 3, *ROLES, "-k", 9, "--model",
        folder / "m")  # fmt: skip
    return folder / "m"


def links(file, ending):
    """Return names of a file: its own, a hard link, a link, and a way around."""
    os.link(file, f"hard{ending}")
    os.symlink(file, f"soft{ending}")
    return [file, f"hard{ending}", f"soft{ending}", f"./{file}"]


def refused(*words):
    done = run(*words, "--force", code=USAGE)
    assert "that file is" in " ".join(done.stderr.split())


def test_scale_does_not_write_over_what_it_reads(place):
    before = (place / "s.npy").read_bytes()
    for name in links("s.npy", ".npy"):
        refused("scale", "s.npy", "--out", name)
    (place / "s.csv").write_text("a,b\n4,2\n2,1\n")
    for name in links("s.csv", ".csv"):
        refused("scale", "s.csv", "--weights", name)
    assert (place / "s.npy").read_bytes() == before
    assert (place / "s.csv").read_text() == "a,b\n4,2\n2,1\n"


def test_cluster_does_not_write_over_what_it_reads(place):
    names = links("wine.csv", ".csv")
    for option in ("--labels", "--model", "--summary"):
        refused("cluster", "wine.csv", "-c", 3, option, names[len(option) % 3])
    os.symlink("wine.csv", "page.html")
    refused("cluster", "wine.csv", "-c", 3, "--report", "page.html")
    assert (place / "wine.csv").read_text() == rows()


def test_predict_and_report_do_not_write_over_file_or_model(place, model):
    os.symlink(model, "model.csv")
    os.link("wine.csv", "wine.html")
    before = model.read_bytes()
    refused("predict", model, "wine.csv", "--labels", "wine.csv")
    refused("predict", model, "wine.csv", "--labels", "model.csv")
    refused("report", model, "wine.csv", "--out", "wine.html")
    assert model.read_bytes() == before
    assert (place / "wine.csv").read_text() == rows()


def test_two_outputs_are_two_files(place):
    (place / "one").write_text("mine")
    os.link("one", "two")
    os.symlink("nowhere", "three")  # to what is not there yet
    for pair in (("one", "two"), ("new", "./new"), ("three", "nowhere")):
        refused("cluster", "wine.csv", "-c", 3, "--model", pair[0], "--summary",
                pair[1])  # fmt: skip
    os.symlink("u.csv", "m.npz")
    refused("scale", "s.npy", "--out", "m.npz", "--weights", "u.csv")
    assert (place / "one").read_text() == "mine"
    done = run("cluster", "wine.csv", "-c", 3, *ROLES, "--model", os.devnull,
               "--summary", os.devnull)  # fmt: skip
    assert "3 clusters" in done.stdout


def test_records_are_neither_a_set_nor_a_part_of_the_page(place):
    words = ("reproduce", "--set", "wine", "--method", "CAN", "--no-figures")
    for name in ("reproduction/index.html", "reproduction/table3.md", "data/wine.npz"):
        done = run(*words, "--records", name, code=USAGE)
        assert "name it .jsonl" in done.stderr
    (place / "data").mkdir()
    (place / "data" / "wine.npz").write_bytes(b"mine")
    os.link("data/wine.npz", "r.jsonl")
    done = run(*words, "--data", "data", "--records", "r.jsonl", code=USAGE)
    assert "that file is read from already" in " ".join(done.stderr.split())
    assert (place / "r.jsonl").read_bytes() == b"mine"


@pytest.fixture
def without(monkeypatch):
    """Return a function that makes libraries look as if not installed."""

    def hide(*names):
        for key in {*sys.modules, *names}:
            if key.partition(".")[0] in names:
                monkeypatch.setitem(sys.modules, key, None)

    return hide


@pytest.mark.parametrize(
    ("names", "words", "extra"),
    [
        (["matplotlib"], ["reproduce", "--set", "wine", "--method", "CAN"], "plot"),
        (["jinja2"], ["reproduce", "--set", "wine", "--no-figures"], "report"),
        (["plotly"], ["cluster", "none.csv", "-c", 3, "--report", "p.html"], "report"),
        (["pyarrow"], ["cluster", "x.npy", "-c", 3, "--labels", "l.parquet"], "cli"),
        (["pyarrow"], ["cluster", "wine.csv", "-c", 3, "--labels", "l.csv"], "cli"),
        (["torch"], ["cluster", "none.csv", "-c", 3, "--device", "cuda"], "gpu"),
        (["pyarrow"], ["scale", "s.npy", "--weights", "u.pq"], "cli"),
        (["pyarrow"], ["predict", "none", "none.csv", "--labels", "l.pq"], "cli"),
        (["plotly"], ["report", "none", "none.csv"], "report"),
    ],
)
def test_what_lacks_is_said_before_any_work(place, without, names, words, extra):
    before = sorted(os.listdir())
    without(*names)
    said = " ".join(run(*words, code=INPUT).stderr.split())
    assert f"{names[0]}, which is not installed" in said
    assert f"pip install 'bistochastic[{extra}]'" in said
    assert sorted({*os.listdir()} - {"reproduction"}) == before
    assert not (place / "reproduction" / "records.jsonl").exists()


def test_reproduce_offers_to_leave_figures_out(place, without):
    without("matplotlib")
    words = ("reproduce", "--set", "wine", "--method", "K-Means", "--protocol",
             "label-free", "--jobs", 1)  # fmt: skip
    assert "--no-figures" in run(*words, code=INPUT).stderr
    assert "The page:" in run(*words, "--no-figures").stdout


def test_the_demo_says_first_what_it_leaves_out(place, without):
    without("matplotlib", "plotly")
    said = " ".join(run("demo", "out").stdout.split())
    assert said.startswith("There will be no picture. Pictures need matplotlib")
    assert "There will be no page. A page needs plotly" in said[:300]
    assert os.listdir("out") == ["wine.csv"]


def test_the_closing_sentence_names_the_files_that_are_there(place, monkeypatch):
    """It said that no file was written when eleven were."""
    from bistochastic.paper import page

    def broken(records):
        raise RuntimeError("broken")

    monkeypatch.setattr(page.figures, "figure_1", broken)
    words = ("reproduce", "--set", "wine", "--method", "K-Means", "--protocol",
             "label-free", "--jobs", 1)  # fmt: skip
    said = " ".join(run(*words, code=1).stderr.split())
    assert "No file was written" not in said
    there = [p for p in (place / "reproduction").iterdir() if p.suffix != ".png"]
    assert len(there) == 11
    for file in there:
        assert f"reproduction/{file.name}" in said, file.name


def test_an_error_after_the_first_file_says_what_is_complete(place, monkeypatch):
    from bistochastic.cli import cluster
    from bistochastic.core.errors import InputError

    def broken(*args, **options):
        raise InputError("broken")

    monkeypatch.setattr(cluster, "write_graph", broken)
    done = run("cluster", "wine.csv", "-c", 3, *ROLES, "--labels", "l.csv", "--graph",
               "g.npz", code=INPUT)  # fmt: skip
    assert "broken Complete: l.csv; nothing is half-written." in " ".join(
        done.stderr.split()
    )


FIFO = """
import json, sys
from typer.testing import CliRunner
from bistochastic.cli.app import app
for words in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, words)
    print(json.dumps([done.exit_code, " ".join(done.stderr.split())]))
"""


WITHOUT_RESOURCE = (
    """
import sys
sys.modules["resource"] = None  # as on Windows
from bistochastic.paper import runs
assert runs.one(runs.wanted(["wine"], ["K-Means"], ["label-free"], ())[0])["scores"]
"""
    + FIFO
)


def test_systems_that_do_not_count_memory_leave_the_figure_out(place):
    cluster = ["cluster", "wine.csv", "-c", "3", *ROLES, "-k", "9"]
    words = [
        [*cluster, "--summary", "s.json", "--model", "m"],
        ["report", "m", "wine.csv", "--id", "bottle"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RESOURCE, json.dumps(words)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [code for code, _ in said] == [0, 0], done.stderr + done.stdout
    assert "peak_memory_mb" not in json.loads((place / "s.json").read_text())
    assert "memory at most" not in (place / "report.html").read_text()


def test_no_command_waits_for_a_pipe(place, model):
    for name in ("p.csv", "p.npy", "p.mtx", "p.model"):
        os.mkfifo(name)
    words = [
        ["cluster", "p.csv", "-c", "3"],
        ["cluster", "p.npy", "-c", "3", "--labels", "l.csv"],
        ["scale", "p.mtx"],
        ["scale", "p.csv", "--format", "npy"],
        ["predict", "p.model", "wine.csv"],
        ["predict", str(model), "p.csv"],
        ["report", "p.model", "wine.csv"],
        ["report", str(model), "p.csv"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", FIFO, json.dumps(words)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(said) == len(words), done.stderr
    for code, text in said:
        assert code == INPUT
        assert "is a pipe" in text
        assert "- reads standard input" in text


def test_a_substituted_process_is_refused(place):
    command = f"exec {sys.executable} -m bistochastic cluster <(cat wine.csv) -c 3"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == INPUT
    assert "is a pipe" in " ".join(done.stderr.split())


@pytest.mark.parametrize("name", some(["a::b", os.fsdecode(b"a\xff")], 1))
def test_any_name_of_a_file_will_do(place, name):
    os.rename("wine.csv", f"{name}.csv")
    np.save(f"{name}.npy", S)
    run("cluster", f"{name}.csv", "-c", 3, *ROLES, "--labels", f"{name}.l.csv",
        "--model", f"{name}.model", "--report", f"{name}.html", "--summary",
        f"{name}.json", "--graph", f"{name}.npz", "-v")  # fmt: skip
    run("predict", f"{name}.model", f"{name}.csv", "--labels", f"{name}.2.csv")
    run("report", f"{name}.model", f"{name}.csv", "--out", f"{name}.2.html")
    run("scale", f"{name}.npy", "--out", f"{name}.2.npy", "--json")
    run("demo", name)
    assert len(os.listdir()) == 12
    for words in (["cluster", f"{name}.x.csv", "-c", 3], ["scale", f"{name}.x.npy"]):
        assert "there is no such file" in run(*words, code=INPUT).stderr
    assert run("scale", f"{name}.npy", "--out", f"{name}.npz", code=OUTPUT)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cluster", "wine.csv", "-c", 10**30], "--clusters must be at most"),
        (["cluster", "wine.csv", "-c", 3, "-k", 10**30], "--neighbors must be at most"),
        (["cluster", "wine.csv", "-c", 3, "--jobs", 10**30], "--jobs must be at most"),
        (["cluster", "wine.csv", "-c", 3, "--seed", 10**30], "Seed must be between"),
        (["cluster", "wine.csv", "-c", 3, "--skip", 10**9], "has 179 lines"),
        (["cluster", "wine.csv", "-c", 3, "--separator", "§"], "one ASCII character"),
        (["predict", "none", "wine.csv", "--jobs", 10**30], "--jobs must be at most"),
        (["reproduce", "--set", "wine", "--jobs", 10**30], "--jobs must be at most"),
        (["cluster", "a::b.csv", "-c", 3], "a::b.csv: there is no such file"),
        (["scale", "a.npy::b.npy"], "a.npy::b.npy: there is no such file"),
    ],
)
def test_odd_options_end_in_a_sentence(place, words, said):
    assert said in " ".join(run(*words, code=INPUT).stderr.split())


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("preparation", "layout", {"evil": 1}),
        ("preparation", "layout", {"skip": "many"}),
        ("preparation", "layout", {"missing": [1]}),
        ("preparation", "names", ["alcohol"]),
        ("preparation", "factor", np.zeros(13)),
        ("preparation", "shift", np.full(13, np.nan)),
        ("preparation", "low", None),
        ("told", "seconds", {"read": "long"}),
    ],
)
def test_what_a_model_says_of_its_table_is_checked(place, model, part, name, value):
    about, held = tampering.opened(model)
    held["extra"][part][name] = value
    tampering.written(place / "m", about, held)
    done = run("report", "m", "wine.csv", "--id", "bottle", code=INPUT)
    assert "is damaged: what it says of" in " ".join(done.stderr.split())
