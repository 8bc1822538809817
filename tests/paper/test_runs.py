"""Protocols and runs: what is tried, and that a killed run goes on."""

import gzip
import json
import os
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.datasets import load_wine

from bistochastic.core.errors import InputError
from bistochastic.datasets.load import PAPER
from bistochastic.paper import runs, tables
from bistochastic.paper.protocol import DEFAULT, METHODS, Cell, cells, prepared

WINE = load_wine().data
CAN = Cell("paper", "wine", "CAN", "minmax", {"n_neighbors": 40, "candidates": "local"})
ANCMM = Cell("paper", "wine", "ANCMM", "minmax", {"n_neighbors": 30, "alpha": "mean"})


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    monkeypatch.delenv("BISTOCHASTIC_DATA", raising=False)


def test_claims_are_complete():
    held = files("bistochastic.paper").joinpath("claims.toml")
    claims = tomllib.loads(held.read_text())
    methods = claims["source"]["methods"]
    for number in "345":
        rows = claims["tables"][number]["rows"]
        assert set(rows) == set(PAPER)
        assert all(len(row["values"]) == len(methods) for row in rows.values())
        assert all(set(row["bold"]) <= set(methods) for row in rows.values())
    assert claims["tables"]["3"]["rows"]["wine"]["values"][-1] == 98.3
    assert claims["tables"]["5"]["rows"]["yeast"]["values"] == [
        55.3, 55.3, 52.5, 50.7, 45.8, 51.0,
    ]  # fmt: skip


def test_two_cells_give_the_printed_numbers():
    """The paper's Wine row; a claim that happens to be met, to the digit."""
    for cell, printed in ((CAN, (97.2, 89.0, 97.2)), (ANCMM, (98.3, 92.6, 98.3))):
        score = runs.one(cell)["scores"][0]
        found = [score[name] for name in ("ACC", "NMI", "PUR")]
        np.testing.assert_allclose(found, printed, atol=0.06)
        assert score["clusters"] == 3


def test_two_cells_give_the_numbers_that_were_committed():
    kept = Path(__file__).parents[2] / "docs" / "reproduction" / "records.jsonl.gz"
    kept = runs.records(kept)
    free = cells("label-free", "wine", "table", [DEFAULT])[0]
    for cell in (ANCMM, free):
        made = runs.one(cell)
        assert kept[cell.key]["scores"] == made["scores"]
        assert set(kept[cell.key]) == set(made)


def test_the_committed_run_is_whole():
    """Every cell of the protocols has a record, and none has two."""
    folder = Path(__file__).parents[2] / "docs" / "reproduction"
    kept = runs.records(folder / "records.jsonl.gz")
    assert set(kept) == {cell.key for cell in runs.wanted()}
    lines = gzip.decompress((folder / "records.jsonl.gz").read_bytes()).splitlines()
    assert len(lines) == len(kept)


def test_the_committed_tables_are_those_of_the_records():
    folder = Path(__file__).parents[2] / "docs" / "reproduction"
    kept = list(runs.records(folder / "records.jsonl.gz").values())
    for number in (3, 4, 5):
        text = (folder / f"table{number}.md").read_text()
        assert tables.markdown(tables.lines(number, kept)) in text


def test_keys_tell_cells_apart():
    made = [c for p in ("paper", "label-free") for c in cells(p, "wine", "table")]
    assert len({cell.key for cell in made}) == len(made)
    assert {cell.method for cell in made} == set(METHODS)
    free = [cell for cell in made if cell.protocol == "label-free"]
    assert len(free) == len(METHODS)
    assert {cell.preparation for cell in free} == {"zscore"}


@pytest.mark.parametrize("way", ["raw", "255", "minmax", "zscore", "unit"])
def test_preparation_keeps_distances_when_it_turns(way):
    X = np.random.default_rng(0).random((10, 40))
    wide = prepared(way, X)
    assert wide.shape[1] <= 10
    reference = {
        "raw": X,
        "255": X / 255,
        "minmax": (X - X.min(0)) / np.ptp(X, axis=0),
        "zscore": (X - X.mean(0)) / X.std(0),
        "unit": X / np.linalg.norm(X, axis=1, keepdims=True),
    }[way]
    np.testing.assert_allclose(pdist(wide), pdist(reference), rtol=1e-9)


def test_text_is_weighed_as_stated():
    counts = np.array([[2.0, 0, 1, 1], [0, 3, 1, 1], [1, 1, 0, 1]])
    idf = np.log(3 / np.array([2, 2, 2, 3]))
    W = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    np.testing.assert_allclose(pdist(prepared("tfidf", counts)), pdist(W), rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_in_both_protocols(method):
    free = cells("label-free", "wine", "table", [method])
    paper = cells("paper", "wine", "table", [method])[-1]
    for cell in (*free, paper):
        record = runs.one(cell)
        assert len(record["scores"]) == cell.starts
        assert all(0 < score["ACC"] <= 100 for score in record["scores"])
        assert record["wanted"] == 3
        json.dumps(record)


def test_a_killed_run_goes_on_where_it_was(tmp_path, monkeypatch):
    file, wanted = tmp_path / "deep" / "records.jsonl", [CAN, ANCMM]
    calls = []
    one = runs.one

    def counted(cell, folder=None):
        calls.append(cell.key)
        return one(cell, folder)

    monkeypatch.setattr(runs, "one", counted)
    first = runs.run([CAN], file, jobs=1)
    text = file.read_text()
    file.write_text(text + text[: len(text) // 2])  # killed in the middle of a line
    heard = []
    both = runs.run(
        wanted, file, jobs=1, listen=lambda n, r: heard.append((n, r["key"]))
    )
    assert calls == [CAN.key, ANCMM.key]
    assert heard == [(2, ANCMM.key)]
    assert both[CAN.key] == first[CAN.key]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["key"] for line in lines] == [CAN.key, ANCMM.key]
    runs.run(wanted, file, jobs=1)
    assert len(calls) == 2


def test_compressed_records_are_read_and_not_added_to(tmp_path):
    file = tmp_path / "records.jsonl"
    first = runs.run([CAN], file, jobs=1)
    packed = tmp_path / "records.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert runs.run([CAN], packed, jobs=1) == first
    with pytest.raises(InputError, match="gunzip"):
        runs.run([CAN, ANCMM], packed, jobs=1)


def test_records_of_another_version_are_done_again(tmp_path, monkeypatch):
    file = tmp_path / "records.jsonl"
    runs.run([CAN], file, jobs=1)
    monkeypatch.setattr(runs, "VERSION", 2)
    assert runs.records(file) == {}


def test_what_is_reported():
    def record(way, *scores):
        made = [{"ACC": a, "NMI": 1.0, "PUR": 1.0, "clusters": n} for a, n in scores]
        return {"preparation": way, "options": {}, "wanted": 3, "scores": made}

    found = [record("raw", (80.0, 3), (60.0, 3)), record("unit", (90.0, 4), (70.0, 3))]
    chosen = runs.best(found)
    assert (chosen["ACC"], chosen["preparation"]) == (80.0, "raw")
    assert (chosen["runs"], chosen["exact"]) == (4, 3)
    assert (chosen["mean"], chosen["deviation"]) == (70.0, 10.0)
    assert runs.best([record("raw", (50.0, 5))])["ACC"] == 50.0
    with pytest.raises(ValueError, match="labels may not choose"):
        runs.best(found, label_free=True)


WORKERS = """
from bistochastic.paper import runs
todo = runs.wanted(["wine"], ["CAN", "CLR"], ["label-free"], ())
assert len(runs.run(todo, "records.jsonl", jobs=2)) == 2
"""


def test_workers_run_nothing_from_the_working_folder(tmp_path):
    for name in ("argparse", "joblib", "json", "numpy", "pickle", "sklearn"):
        (tmp_path / f"{name}.py").write_text(f"open('mark', 'a').write({name!r})")
    source = str(Path(runs.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-P", "-c", WORKERS],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": source},
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "mark").exists()
