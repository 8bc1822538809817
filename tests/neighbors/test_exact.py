"""Distances and neighbors, against their definitions."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs

from bistochastic.neighbors.exact import nearest, nearest_to, squared_distances
from bistochastic.neighbors.points import Points


def brute(X, Y):
    return ((X[:, None] - Y[None]) ** 2).sum(-1)


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_squared_distances(rng, offset, kind):
    X = rng.integers(-50, 50, (60, 4)) / 8.0  # no digits are lost
    X[7] = X[3]
    D = squared_distances(Points.of(kind(X + offset), "euclidean"))
    if kind is np.asarray or offset == 0:
        np.testing.assert_allclose(D, brute(X, X), rtol=1e-9, atol=1e-9)
    assert D[7, 3] == D[3, 7] == 0
    assert (D == D.T).all()
    assert (np.diag(D) == 0).all()


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("d", [2, 30])
def test_neighbors_are_the_nearest_ties_by_number(rng, offset, d):
    X = rng.integers(-4, 4, (80, d)) / 2.0
    columns, costs = nearest(Points.of(X + offset, "euclidean"), 9)
    D = brute(X, X)
    np.fill_diagonal(D, -1)
    assert (columns != np.arange(80)[:, None]).all()
    np.testing.assert_allclose(costs, np.sort(D, axis=1)[:, 1:10], atol=1e-6)
    for i in range(80):
        pairs = list(zip(costs[i], columns[i], strict=True))
        assert pairs == sorted(pairs)
        np.testing.assert_allclose(costs[i], D[i, columns[i]], atol=1e-6)


def test_more_duplicates_than_neighbors():
    X = np.repeat(np.arange(3.0), 20)[:, None]
    columns, costs = nearest(Points.of(X, "euclidean"), 6)
    assert (costs == 0).all()
    assert (columns != np.arange(60)[:, None]).all()


def test_new_rows(rng):
    X, Y = rng.random((40, 3)), rng.random((10, 3))
    points = Points.of(X, "euclidean")
    columns, costs = nearest_to(points, points.like(Y), 4)
    D = brute(Y, X)
    np.testing.assert_array_equal(columns, np.argsort(D, axis=1)[:, :4])
    np.testing.assert_allclose(costs, np.sort(D, axis=1)[:, :4])


def test_the_search_is_exact_on_blobs():
    X, _ = make_blobs(500, 16, centers=5, random_state=0)
    columns, _ = nearest(Points.of(X, "euclidean"), 10)
    D = brute(X, X)
    np.fill_diagonal(D, np.inf)
    np.testing.assert_array_equal(columns, np.argsort(D, axis=1)[:, :10])


def test_ties_at_the_edge_go_to_low_numbers(rng):
    X = rng.integers(0, 3, (60, 2)).astype(float)
    for metric in ("euclidean", "manhattan"):
        points = Points.of(X, metric)
        wide, costs = nearest(points, 30)
        for m in (3, 8, 17):
            narrow, fewer = nearest(points, m)
            np.testing.assert_array_equal(narrow, wide[:, :m])
            np.testing.assert_array_equal(fewer, costs[:, :m])


def test_functions_need_no_triangle_inequality(rng):
    X = rng.random((80, 2))
    columns, costs = nearest(Points.of(X, lambda a, b: ((a - b) ** 2).sum()), 5)
    expected, squares = nearest(Points.of(X, "euclidean"), 5)
    np.testing.assert_array_equal(columns, expected)
    np.testing.assert_allclose(costs, squares**2)


@pytest.mark.parametrize("size", [1.0, 1e-16, 1e-170, 1e150])
def test_directions_of_rows_of_any_length(rng, size):
    X = rng.standard_normal((40, 3))
    expected, _ = nearest(Points.of(X, "cosine"), 5)
    for rows in (X * size, csr_array(X * size)):
        columns, _ = nearest(Points.of(rows, "cosine"), 5)
        np.testing.assert_array_equal(columns, expected)


INTERRUPTED = """
import signal
import numpy as np
from bistochastic.neighbors.exact import nearest
from bistochastic.neighbors.points import Points

class Alarm(BaseException):
    pass

def interrupt(*_):
    raise Alarm

signal.signal(signal.SIGALRM, interrupt)
points = Points.of(np.random.default_rng(0).normal(size=(3000, 2)), "euclidean")
nearest(points, 30)
for moment in np.random.default_rng(1).uniform(1e-4, 2e-2, 150):
    try:  # Python's own locks may hang or raise when interrupted: then again in 5 s
        signal.setitimer(signal.ITIMER_REAL, moment, 5)
        nearest(points, 30, n_jobs=4)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except (Alarm, RuntimeError):
        signal.setitimer(signal.ITIMER_REAL, 0)
print("alive")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="this system has no alarm")
def test_an_interrupt_does_not_end_the_process():
    words = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.stdout == "alive\n", done.stderr


def test_threads_find_the_neighbors_that_one_finds():
    points = Points.of(np.random.default_rng(0).normal(size=(2500, 3)), "euclidean")
    for found, alone in zip(
        nearest(points, 7, n_jobs=4), nearest(points, 7, n_jobs=1), strict=True
    ):
        np.testing.assert_array_equal(found, alone)
