"""Approximate searches: their recall, their distances, and one round by hand."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from bistochastic import ANCMM, InputError
from bistochastic.neighbors import choose, inverted_file
from bistochastic.neighbors.choose import neighbors_of
from bistochastic.neighbors.exact import nearest
from bistochastic.neighbors.points import Points
from conftest import need
from selection import some


@pytest.fixture(params=["lists", "descent"])
def way(request, monkeypatch):
    """Search by an inverted file, or by descent."""
    if request.param == "lists":
        need("faiss")
    else:
        monkeypatch.setattr(choose, "LISTED", 0)
    return request.param


@pytest.mark.parametrize("wanted", some([0.95, 0.8, 0.99], 1))
@pytest.mark.usefixtures("way")
def test_the_recall_is_what_was_wanted(wanted):
    X, _ = make_blobs(6000, 12, centers=10, cluster_std=4.0, random_state=0)
    points = Points.of(X, "euclidean")
    found = neighbors_of(points, 10, how=wanted)
    columns, _ = nearest(points, 10)
    hits = [
        len(np.intersect1d(a, b)) for a, b in zip(found.columns, columns, strict=True)
    ]
    assert np.mean(hits) / 10 == pytest.approx(found.recall, abs=0.03)
    assert found.recall >= wanted
    assert (np.diff(found.costs, axis=1) >= 0).all()
    assert (found.columns != np.arange(6000)[:, None]).all()
    gaps = points.X[found.columns] - points.X[:, None]
    np.testing.assert_allclose(found.costs, (gaps**2).sum(axis=2), rtol=1e-12)


@pytest.mark.usefixtures("way")
def test_duplicates_and_tiny_lists():
    X = np.repeat(np.random.default_rng(0).random((40, 8)), 30, axis=0)
    found = neighbors_of(Points.of(X, "euclidean"), 50, how=0.9)
    assert (found.columns >= 0).all()
    assert (found.columns != np.arange(1200)[:, None]).all()


def test_few_points_are_searched_exactly():
    X, _ = make_blobs(500, 12, random_state=0)
    points = Points.of(X, "euclidean")
    for how in ("auto", "exact"):
        found = neighbors_of(points, 5, how=how)
        assert found.recall == 1.0
        np.testing.assert_array_equal(found.columns, nearest(points, 5)[0])


@pytest.mark.usefixtures("way")
def test_the_same_clusters_from_most_of_the_neighbors():
    X, y = make_blobs(4000, 10, centers=8, cluster_std=2.0, random_state=1)
    model = ANCMM(8, n_neighbors=12, neighbors=0.9).fit(X)
    exact = ANCMM(8, n_neighbors=12, neighbors="exact").fit(X)
    assert adjusted_rand_score(model.labels_, exact.labels_) > 0.99
    assert 0.9 <= model.history_[0]["recall"] <= 1.0
    assert exact.history_[0]["recall"] == 1.0
    assert model.n_components_ == 8
    again = ANCMM(8, n_neighbors=12, neighbors=0.9).fit(X)
    np.testing.assert_array_equal(model.labels_, again.labels_)
    assert adjusted_rand_score(y, model.labels_) > 0.98


@pytest.mark.parametrize("options", [{}, {"refine": None}, {"refine": "triangles"}])
def test_an_order_in_which_neighbors_stand_close_by(monkeypatch, options):
    X, _ = make_blobs(400, 3, centers=5, cluster_std=2.0, random_state=1)
    plain = ANCMM(5, n_neighbors=10, **options).fit(X)
    monkeypatch.setattr("bistochastic.cluster.problem.ORDERED", 100)
    model = ANCMM(5, n_neighbors=10, **options).fit(X)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    for name in ("scaling_", "alpha_"):
        np.testing.assert_allclose(
            getattr(model, name), getattr(plain, name), rtol=1e-6
        )
    S, T = model.affinity_matrix_, plain.affinity_matrix_
    np.testing.assert_allclose(S.toarray(), T.toarray(), atol=1e-6)
    assert (S != S.T).nnz == 0
    pairs = [
        {tuple(sorted(pair)) for pair in m.bridges_.tolist()} for m in (model, plain)
    ]
    assert pairs[0] == pairs[1]
    np.testing.assert_array_equal(
        model.predict(X[:50] + 0.1), plain.predict(X[:50] + 0.1)
    )
    if not options:
        return
    ours, theirs = model.approximation(X), plain.approximation(X)
    assert ours.epsilon == pytest.approx(theirs.epsilon, rel=1e-5)


def test_what_cannot_be_searched_approximately(monkeypatch):
    X, _ = make_blobs(300, 8, random_state=0)
    for data, options in ((csr_array(X), {}), (X, {"metric": "manhattan"})):
        with pytest.raises(InputError, match="needs dense points"):
            ANCMM(3, neighbors=0.9, **options).fit(data)
    with pytest.raises(InputError, match=r"neighbors=1\.5"):
        ANCMM(3, neighbors=1.5).fit(X)


def test_without_faiss(monkeypatch):
    X, _ = make_blobs(2000, 8, random_state=0)
    monkeypatch.setattr(choose, "available", lambda: False)
    monkeypatch.setattr(choose, "MANY", 100)
    model = ANCMM(3, n_neighbors=10).fit(X)
    assert 0.95 <= model.history_[0]["recall"] <= 1.0
    assert model.n_components_ == 3


def test_neighbors_that_singles_cannot_tell_apart():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((20, 8)), 100, axis=0)
    X += 1e-9 * rng.standard_normal(X.shape)
    points = Points.of(X, "euclidean")
    found = neighbors_of(points, 10, how=0.95)
    assert found.recall >= 0.95
    hits = (found.columns[:, :, None] == nearest(points, 10)[0][:, None, :]).any(axis=1)
    assert hits.mean() > 0.93


def test_singles_stay_singles(monkeypatch, tmp_path):
    monkeypatch.setattr("bistochastic.cluster.validation.MANY", 1000)
    X, y = make_blobs(3000, 8, centers=6, cluster_std=2.0, random_state=0)
    X = X.astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = ANCMM(6, n_neighbors=10).fit(mapped)
    double = ANCMM(6, n_neighbors=10).fit(X.astype(float))
    assert model._points.X.dtype == np.float32
    assert double._points.X.dtype == np.float64
    np.testing.assert_array_equal(model.labels_, double.labels_)
    assert model.affinity_matrix_.dtype == np.float64
    for new in (X[:200], X[:200].astype(float)):
        np.testing.assert_array_equal(model.predict(new), model.labels_[:200])
    assert adjusted_rand_score(y, model.labels_) > 0.99
    monkeypatch.undo()
    few = ANCMM(6, n_neighbors=10).fit(X)  # so few are computed in doubles
    assert few._points.X.dtype == np.float64


def test_threads_are_limited_and_given_back():
    from numba import get_num_threads

    X, _ = make_blobs(8000, 3, centers=4, random_state=0)
    before = get_num_threads()
    seen = []

    class Asked(ANCMM):
        def _learn(self, X, place):
            seen.append(get_num_threads())
            return super()._learn(X, place)

    one = Asked(4, n_neighbors=15, n_jobs=1).fit(X)
    every = ANCMM(4, n_neighbors=15).fit(X)
    assert seen == [1]
    assert get_num_threads() == before
    np.testing.assert_array_equal(one.labels_, every.labels_)


@pytest.mark.parametrize("unit", some([1e60, 1e-60, 1e20, 1e-24], 2))
@pytest.mark.usefixtures("way")
def test_the_search_does_not_depend_on_the_unit(unit):
    """Singles end at 1e38: squares of such coordinates left their range."""
    X, _ = make_blobs(3000, 12, centers=5, random_state=0)
    plain = neighbors_of(Points.of(X, "euclidean"), 10, how=0.9)
    scaled = neighbors_of(Points.of(X * unit, "euclidean"), 10, how=0.9)
    assert scaled.recall > 0.9
    assert (plain.columns == scaled.columns).mean() > 0.999


def test_neighbors_as_near_as_the_last_count_as_found():
    X = np.random.default_rng(1).integers(0, 3, (3000, 8)).astype(float)
    found = neighbors_of(Points.of(X, "euclidean"), 15, how=0.95)
    assert found.recall >= 0.95
    truth = neighbors_of(Points.of(X, "euclidean"), 15, how="exact")
    assert (found.costs[:, -1] <= truth.costs[:, -1]).mean() > 0.5
    near = found.costs <= truth.costs[:, -1:]
    assert abs(near.mean() - found.recall) < 0.03


def test_a_search_that_falls_short_is_told(monkeypatch):
    need("faiss")
    monkeypatch.setattr(inverted_file, "MOST", 2)
    X = np.random.default_rng(0).normal(size=(3000, 40))
    with pytest.warns(UserWarning, match="search found"):
        ANCMM(2, n_neighbors=10, neighbors=0.99).fit(X)


CHILD = """
import multiprocessing, numpy as np
from sklearn.datasets import make_blobs
from bistochastic import ANCMM
X, _ = make_blobs(10_000, 12, centers=5, random_state=0)
ANCMM(5, n_neighbors=15).fit(X)
def again():
    model = ANCMM(5, n_neighbors=15).fit(X)
    assert (model.predict(X[:100]) == model.labels_[:100]).all()
child = multiprocessing.get_context("fork").Process(target=again)
child.start()
child.join(120)
print("ended", child.exitcode)
child.kill()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.thorough
def test_a_forked_child_does_not_hang():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD], capture_output=True, text=True
    )
    assert done.stdout == "ended 0\n", done.stderr


@pytest.mark.parametrize("n", some([2, 17, 3, 5, 10], 2))
@pytest.mark.usefixtures("way")
def test_few_points_have_neighbors_too(n):
    X = np.random.default_rng(n).normal(size=(n, 8))
    model = ANCMM(2, neighbors=0.9).fit(X)
    np.testing.assert_array_equal(model.labels_, ANCMM(2).fit(X).labels_)
