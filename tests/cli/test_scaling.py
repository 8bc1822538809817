"""The command line: scale, and weights as cooler's users expect them."""

import json

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import csr_array, save_npz

pytest.importorskip("typer")
from bistochastic.cli.console import INPUT, OUTPUT, SHORT, USAGE
from bistochastic.io import read_matrix
from commands import run

S = csr_array(np.array([[4.0, 2, 0], [2, 1, 3], [0, 3, 9]]))
HUB = csr_array(np.array([[0.0, 0, 1], [0, 0, 1], [1, 1, 0]]))


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_npz("s.npz", S)
    mmwrite("hub.mtx", HUB)
    return tmp_path


def test_scale_says_how_it_went(place):
    done = run("scale", "s.npz", "--out", "m.npz", "--weights", "-")
    assert "Support: total" in done.stderr
    assert "Scaling u from" in done.stderr
    np.testing.assert_allclose(read_matrix("m.npz")[0].sum(axis=1), 1, atol=1e-9)
    lines = done.stdout.splitlines()
    assert lines[0] == "row,weight"
    u = np.array([float(line.split(",")[1]) for line in lines[1:]])
    np.testing.assert_allclose(u * (S @ u), 1, atol=1e-9)


@pytest.mark.parametrize("name", ["m.mtx", "m.npy"])
def test_other_files(place, name):
    run("scale", "s.npz", "--out", name)
    found = read_matrix(name)[0]
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-9)
    assert "--force" in run("scale", "s.npz", "--out", name, code=OUTPUT).stderr


def test_a_matrix_as_text_and_from_standard_input(place):
    pytest.importorskip("pyarrow")
    text = "a,b,c\n" + "\n".join(",".join(map(str, row)) for row in S.toarray())
    (place / "s.csv").write_text(text)
    done = run("scale", "s.csv", "--weights", "-", "-q")
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == list(
        "rabc"
    ) or [line.split(",")[0] for line in done.stdout.splitlines()] == [
        "row",
        "a",
        "b",
        "c",
    ]
    facts = run("scale", "-", "--format", "csv", "--json", stdin=text).stdout
    assert json.loads(facts)["converged"]


def test_no_support_is_explained_and_cured(place):
    done = run("scale", "hub.mtx", code=INPUT)
    said = " ".join(done.stderr.split())
    assert "no doubly stochastic matrix has its zeros" in said
    assert "--unsupported regularize" in said
    facts = json.loads(
        run("scale", "hub.mtx", "--unsupported", "regularize", "--json").stdout
    )
    assert (facts["support"], facts["converged"]) == ("none", True)
    assert facts["shift"] > 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["s.npz", "--out", "m.csv"], USAGE, "name it .npz"),
        (["s.npz", "--out", "m.cool"], USAGE, "only a COOL file"),
        (["s.npz", "--weights", "u.json"], USAGE, "name it .csv"),
        (["s.npz", "--method", "magic"], USAGE, "magic"),
        (["s.npz", "--column", "start"], USAGE, "no name for weights"),
        (["wide.npy"], INPUT, "shape"),
        (["skew.npy"], INPUT, "symmetric"),
        (["minus.npy"], INPUT, "negative"),
    ],
)
def test_what_cannot_be_scaled_is_said(place, words, code, said):
    np.save("wide.npy", np.ones((2, 3)))
    np.save("skew.npy", np.array([[1.0, 2], [3, 1]]))
    np.save("minus.npy", np.array([[1.0, -2], [-2, 1]]))
    assert said in " ".join(run("scale", *words, code=code).stderr.split())


def test_integers_of_another_byte_order(place):
    np.save("b.npy", np.array([[4, 2], [2, 1]], dtype=">i4"))
    assert json.loads(run("scale", "b.npy", "--json").stdout)["converged"]


def test_falling_short_has_a_number_of_its_own(place):
    done = run("scale", "s.npz", "--method", "alternating", "--max-iter", 1, code=SHORT)
    assert "Note" in done.stderr


@pytest.fixture
def contacts(place):
    cooler = pytest.importorskip("cooler")
    import pandas as pd

    rng = np.random.default_rng(1)
    n = 60
    far = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    A = rng.poisson(400 / (1 + far))
    A = np.triu(A) + np.triu(A, 1).T
    A[[4, 17]] = A[:, [4, 17]] = 0
    i, j = np.nonzero(np.triu(A))
    bins = pd.DataFrame(
        {"chrom": "chr1", "start": 10 * np.arange(n), "end": 10 * np.arange(1, n + 1)}
    )
    pixels = pd.DataFrame({"bin1_id": i, "bin2_id": j, "count": A[i, j]})
    cooler.create_cooler("a.cool", bins, pixels)
    return cooler


def test_weights_are_those_that_cooler_reads(place, contacts):
    done = run("scale", "a.cool", "--out", "b.cool")
    assert "2 rows (5, 18)" in done.stdout
    held = contacts.Cooler("b.cool")
    M = held.matrix(balance=True)[:]
    kept = ~np.isnan(held.bins()["weight"][:].to_numpy())
    np.testing.assert_array_equal(np.flatnonzero(~kept), [4, 17])
    M = np.nan_to_num(np.triu(M, 2) + np.tril(M, -2))
    np.testing.assert_allclose(M.sum(axis=0)[kept], 1, atol=1e-9)
    facts = held.open("r")["bins/weight"].attrs
    assert facts["ignore_diags"] == 2
    assert facts["converged"]
    assert not facts["divisive_weights"]
    bias, _ = contacts.balance_cooler(
        contacts.Cooler("a.cool"), min_nnz=0, mad_max=0, ignore_diags=2, tol=1e-20,
        max_iters=2000,
    )  # fmt: skip
    np.testing.assert_allclose(bias[kept], held.bins()["weight"][:][kept], rtol=1e-6)


def test_weights_in_place(place, contacts):
    before = contacts.Cooler("a.cool").pixels()[:]
    assert "--force" in run("scale", "a.cool", "--out", "a.cool", code=OUTPUT).stderr
    assert "weight" not in contacts.Cooler("a.cool").bins().columns
    run("scale", "a.cool", "--out", "a.cool", "--force", "--column", "marcus")
    held = contacts.Cooler("a.cool")
    assert "marcus" in held.bins().columns
    assert held.pixels()[:].equals(before)
    run("scale", "a.cool", "--weights", "w.csv", "--ignore-diags", 0, "--min-nnz", 5)
    lines = (place / "w.csv").read_text().splitlines()
    assert lines[1].startswith("chr1:0-10,")
    assert lines[5] == "chr1:40-50,"
