"""The command line: cluster and predict, as a person would type them."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from bistochastic.cli.console import BUG, INPUT, OUTPUT, SHORT, USAGE
from bistochastic.io import load, read_matrix
from commands import ROLES, WINE, run


def test_cluster_says_what_came_out(wine):
    done = run("cluster", "wine.csv", "-c", 3, *ROLES)
    assert "3 clusters of 178 rows" in done.stdout
    assert "w0, w1, w2" in done.stdout
    assert "accuracy 9" in done.stdout
    assert "mean 0 and deviation 1" in done.stderr
    assert "--labels FILE" in done.stderr


def test_cluster_writes_what_is_asked_for(wine):
    run("cluster", "wine.csv", "-c", 3, *ROLES, "--labels", "l.csv", "--graph", "g.npz",
        "--model", "m.model", "--summary", "s.json")  # fmt: skip
    lines = (wine / "l.csv").read_text().splitlines()
    assert (lines[0], len(lines)) == ("bottle,cluster", 179)
    S = read_matrix(wine / "g.npz")[0]
    np.testing.assert_allclose(S.sum(axis=1), 1, atol=1e-7)
    facts = json.loads((wine / "s.json").read_text())
    assert facts["n_clusters"] == 3
    assert sum(facts["sizes"]) == 178
    assert facts["scores"]["accuracy"] > 0.9
    labels = [int(line.split(",")[1]) for line in lines[1:]]
    np.testing.assert_array_equal(load(wine / "m.model").labels_, labels)
    done = run("predict", "m.model", "wine.csv", "--id", "bottle")
    assert [line.split(",")[:2] for line in done.stdout.splitlines()] == [
        line.split(",") for line in lines
    ]


def test_json_is_all_that_is_printed(wine):
    done = run("cluster", "wine.csv", "-c", 3, *ROLES, "--json", "--quiet")
    assert json.loads(done.stdout)["rows"] == 178
    assert done.stderr == ""


def test_standard_input_and_output(wine):
    given = (wine / "wine.csv").read_text()
    done = run("cluster", "-", "-c", 3, *ROLES, "--labels", "-", "-q", stdin=given)
    lines = done.stdout.splitlines()
    assert (lines[0], len(lines)) == ("bottle,cluster", 179)
    run("cluster", "-", "-c", 3, *ROLES, "--labels", "-", "--json", stdin=given, code=2)


def test_the_same_seed_gives_the_same(wine):
    words = ("cluster", "wine.csv", "-c", 4, *ROLES, "--labels", "-", "-q", "--seed", 3)
    assert run(*words).stdout == run(*words).stdout
    assert run(*words).stdout == run(*words, "--jobs", 1).stdout


@pytest.mark.filterwarnings("ignore:The spread of column")
def test_predict_with_a_model_from_python(wine):
    from bistochastic import ANCMM
    from bistochastic.io import save

    np.save("x.npy", WINE.data)
    save(ANCMM(3, n_neighbors=10).fit(WINE.data), "p.model")
    done = run("predict", "p.model", "x.npy")
    assert len(done.stdout.splitlines()) == 179


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["none.csv", "-c", "3"], INPUT, "no such file"),
        (["wine.csv", "-c", "three"], USAGE, "a whole number"),
        (["wine.csv", "-c", "0"], USAGE, "from 1 on"),
        (["wine.csv", "-c", "500", *ROLES], INPUT, "--clusters 500"),
        (["wine.csv", "-c", "3", "--id", "botle"], INPUT, "Perhaps 'bottle'"),
        (["wine.csv", "-c", "3", *ROLES, "--metric", "nonsense"], INPUT, "nonsense"),
        (["wine.csv", "-c", "3", "--neighbors", "1e3"], USAGE, "--neighbors"),
        (["wine.csv", "-c", "3", *ROLES, "--max-memory", "1kB"], INPUT, "would take"),
        (["wine.csv", "-c", "3", "--max-memory", "much"], USAGE, "--max-memory"),
        (["wine.csv", "-c", "3", "--max-memory", "inf"], USAGE, "--max-memory"),
        (["wine.csv", "-c", "3", "--labels", "l.xls"], USAGE, "name it .csv"),
        (["wine.csv", "-c", "3", "--graph", "a.npz", "--model", "./a.npz"], USAGE,
         "written already"),
        (["wine.csv", "-c", "3", "-o", "wine.csv", "--force"], USAGE, "read from"),
        (["one.csv", "-c", "2"], INPUT, "--clusters 2"),
        (["same.csv", "-c", "2"], INPUT, "distinct row"),
        (["wine.csv", "-c", "3", *ROLES, "--jobs", "0"], INPUT, "--jobs 0"),
        (["wine.csv", "-c", "3", *ROLES, "--device", "x"], INPUT, "--device x"),
        (["wine.csv", "-c", "3", "--labels", "no/l.csv"], OUTPUT, "no folder"),
        (["wine.csv", "-c", "3", "--summary", "x" * 300], OUTPUT, "cannot be"),
        (["wine.csv", "-c", "3", "--summary", "loop"], OUTPUT, "cannot be written"),
        (["pairs.npy", "-c", "2", "--metric", "precomputed", "--scale", "zscore"],
         INPUT, "pairs of rows"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(wine, words, code, said):
    (wine / "one.csv").write_text("a,b\n1,2\n")
    (wine / "same.csv").write_text("a,b\n" + "1,2\n" * 20)
    (wine / "loop").symlink_to(wine / "loop")
    np.save(wine / "pairs.npy", np.ones((5, 5)) - np.eye(5))
    before = sorted(path.name for path in wine.iterdir())
    done = run("cluster", *words, code=code)
    assert said in " ".join(done.stderr.split())
    assert sorted(path.name for path in wine.iterdir()) == before


@pytest.mark.parametrize("place", ["/dev/full", "/dev/null"])
def test_devices_are_written_to(wine, place):
    code = OUTPUT if place == "/dev/full" else 0
    run("cluster", "wine.csv", "-c", 3, *ROLES, "--summary", place, code=code)
    run("cluster", "wine.csv", "-c", 3, *ROLES, "--model", place, code=code)


def test_predict_with_what_cannot_predict(wine):
    from bistochastic import ANCMM, DSDC
    from bistochastic.io import save

    save(ANCMM(3), "empty.model")
    save(DSDC(3).fit(WINE.data[:, :3]), "dsdc.model")
    done = run("predict", "empty.model", "wine.csv", code=INPUT)
    assert "not fitted" in done.stderr
    done = run("predict", "dsdc.model", "wine.csv", code=INPUT)
    assert "no rule for new rows" in done.stderr


def test_wrong_options_are_told_by_the_parser(wine):
    assert "Missing option" in run("cluster", "wine.csv", code=USAGE).stderr
    run("cluster", "wine.csv", "-c", "3", "--scale", "loud", code=USAGE)
    run("nonsense", code=USAGE)


def test_nothing_is_overwritten(wine):
    (wine / "l.csv").write_text("mine")
    done = run("cluster", "wine.csv", "-c", 3, *ROLES, "--labels", "l.csv", code=OUTPUT)
    assert "--force" in done.stderr
    assert (wine / "l.csv").read_text() == "mine"
    run("cluster", "wine.csv", "-c", 3, *ROLES, "--labels", "l.csv", "--force")
    assert (wine / "l.csv").read_text().startswith("bottle")


def test_falling_short_has_a_number_of_its_own(wine, monkeypatch):
    from bistochastic import ANCMM

    fit = ANCMM.fit

    def short(self, X, y=None):
        fit(self, X)
        self.converged_ = False
        return self

    monkeypatch.setattr(ANCMM, "fit", short)
    run("cluster", "wine.csv", "-c", 3, *ROLES, code=SHORT)


def test_errors_of_ours_are_ours(wine, monkeypatch):
    from bistochastic import ANCMM

    def broken(self, X, y=None):
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(ANCMM, "fit", broken)
    done = run("cluster", "wine.csv", "-c", 3, *ROLES, "--labels", "l.csv", code=BUG)
    assert "an error of bistochastic" in done.stderr
    assert "No file was written" in done.stderr


def test_hostile_names_do_not_steer_the_terminal(wine):
    (wine / "bad.csv").write_text(
        "id,a,b\n\x1b[31mred,1,2\n[bold]x[/bold],3,4\n=1+1,5,7\n"
    )
    done = run("cluster", "bad.csv", "-c", 1, "--id", "id", "--labels", "l.csv")
    assert "\x1b[31m" not in done.output
    assert "[bold]x" in done.stdout
    assert "formula" in done.stderr
    assert "\n'=1+1,0\n" in (wine / "l.csv").read_text()


def test_help_and_version():
    for words in (["--help"], ["cluster", "-h"], ["predict", "-h"], ["scale", "-h"]):
        assert "Usage" in run(*words).stdout
    assert "bistochastic 0." in run("--version").stdout


SLOW = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
from bistochastic import ANCMM
from bistochastic.cli import main
fit = ANCMM.fit
def slow(self, X, y=None):
    print("fitting", flush=True)
    time.sleep(60)
ANCMM.fit = slow
sys.argv = ["bistochastic", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_stopped_in_the_middle(wine, number, code):
    (wine / "l.csv").write_text("mine")
    worker = subprocess.Popen(
        [sys.executable, "-c", SLOW, "cluster", "wine.csv", "-c", "3", *ROLES,
         "--labels", "l.csv", "--force"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert worker.stdout.readline() == "fitting\n"
    time.sleep(0.2)
    worker.send_signal(number)
    _, said = worker.communicate(timeout=30)
    assert worker.returncode == code
    assert "No file was written, and none was changed" in said
    assert "Traceback" not in said
    assert (wine / "l.csv").read_text() == "mine"
    assert not list(wine.glob(".*"))


def test_a_closed_pipe_is_no_error(wine):
    words = [sys.executable, "-m", "bistochastic", "cluster", "wine.csv", "-c", "3"]
    worker = subprocess.Popen(
        [*words, *ROLES, "--labels", "-", "-q"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    worker.stdout.close()
    said = worker.stderr.read()
    worker.stderr.close()
    assert worker.wait(timeout=60) in (141, 0)
    assert "Traceback" not in said
