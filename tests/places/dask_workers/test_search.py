"""The search in blocks on workers finds what one search of all points finds."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from bistochastic.core.errors import InputError
from bistochastic.neighbors.exact import nearest
from bistochastic.neighbors.points import Points
from conftest import local_cluster
from selection import some

distributed = pytest.importorskip(
    "distributed", reason="dask is not installed; make test-extras installs it"
)

from bistochastic.places.dask_workers import (  # noqa: E402
    divide,
    ready_points,
    search,
    search_exact,
    search_lists,
    search_tasks,
)

SIZES = [50, 0, 3, 147, 100]


def rows_of(X, a, b):
    return X[a:b]


def in_blocks(client, X, sizes):
    ends = np.append(0, np.cumsum(sizes))
    assert ends[-1] == len(X)
    return [client.submit(rows_of, X, a, b, pure=False) for a, b in pairwise(ends)]


def found_in(client, X, sizes, m, how="exact", metric="euclidean"):
    points = ready_points.centered(client, in_blocks(client, X, sizes), sizes, metric)
    found, recall = search.neighbors(client, points, sizes, m, how)
    tables = client.gather(found)
    assert [len(columns) for columns, _ in tables] == list(sizes)
    columns, costs = (np.concatenate(part) for part in zip(*tables, strict=True))
    assert columns.dtype == np.int64
    assert costs.dtype == np.float64
    return columns, costs, recall


def same_as_one_search(client, X, sizes, m, metric="euclidean"):
    columns, costs, recall = found_in(client, X, sizes, m, metric=metric)
    others, theirs = nearest(Points.of(X, metric), m)
    np.testing.assert_array_equal(columns, others)
    np.testing.assert_array_equal(costs, theirs)
    assert recall == 1.0


def clouds(d, n=300):
    rng = np.random.default_rng(d)
    X = rng.standard_normal((n, d))
    copies = X.copy()
    copies[rng.choice(n, n // 2, replace=False)] = X[rng.integers(0, 10, n // 2)]
    clumps = 1e4 * rng.random((10, d))[rng.integers(0, 10, n)] + 1e-3 * X
    return {
        "normal": X,
        "sorted": X[np.argsort(X[:, 0])],
        "copies": copies,
        "grid": rng.integers(0, 3, (n, d)).astype(float),
        "same": np.zeros((n, d)),
        "clumps": clumps,
        "tiny": np.r_[X[: n // 2], 3e-22 * X[n // 2 :]],
        "singles": copies.astype(np.float32),
    }


@pytest.mark.parametrize("d", some([5, 2, 10], 1))
@pytest.mark.parametrize("kind", clouds(2))
def test_it_finds_what_one_search_finds_to_the_bit(client, kind, d):
    same_as_one_search(client, clouds(d)[kind], SIZES, 15)


@pytest.mark.parametrize("m", some([1, 60, 299, 3, 298], 3))
def test_any_number_of_neighbors_is_found(client, m):
    for kind in ("normal", "grid"):
        same_as_one_search(client, clouds(5)[kind], SIZES, m)


@pytest.mark.parametrize("metric", ["cosine", "cityblock", "sqeuclidean", "chebyshev"])
@pytest.mark.parametrize("kind", some(["copies", "normal", "grid"], 1))
def test_other_metrics_give_the_same(client, kind, metric):
    if (kind, metric) == ("grid", "cosine"):
        pytest.skip("unit rows make ties that rounding breaks")
    same_as_one_search(client, clouds(5)[kind], SIZES, 7, metric)


def test_directions_that_are_tied_but_for_rounding_cost_the_same(client):
    X = clouds(5)["grid"] + 1.0
    _, costs, _ = found_in(client, X, SIZES, 7, metric="cosine")
    _, theirs = nearest(Points.of(X, "cosine"), 7)
    np.testing.assert_allclose(costs, theirs, rtol=1e-12, atol=1e-30)


def largest_gap(x, y):
    return np.abs(x - y).max()


def test_a_function_is_a_metric_too(client):
    X = clouds(3, 60)["normal"]
    same_as_one_search(client, X, [20, 0, 40], 5, largest_gap)


def test_blocks_out_of_reach_are_not_asked(client, monkeypatch):
    X = clouds(3)["normal"]
    X[150:] += 1000.0
    asked = []
    plain = search_tasks.Tasks.__call__

    def noted(self, name, *rest):
        asked.append(name)
        return plain(self, name, *rest)

    monkeypatch.setattr(search_tasks.Tasks, "__call__", noted)
    same_as_one_search(client, X, [80, 70, 75, 75], 5)
    pairs = {tuple(name.split()[1:]) for name in asked if name.startswith("search")}
    assert pairs == {("0", "1"), ("1", "0"), ("2", "3"), ("3", "2")}


@pytest.mark.parametrize("kind", ["normal", "grid"])
def test_ties_without_end_are_left_as_they_are(client, kind, monkeypatch):
    monkeypatch.setattr(search_exact, "AFFORDED", 0)
    X = clouds(2)[kind]
    columns, costs, _ = found_in(client, X, SIZES, 9)
    others, theirs = nearest(Points.of(X, "euclidean"), 9)
    np.testing.assert_array_equal(columns, others)
    np.testing.assert_array_equal(costs, theirs)


def share_of(columns, X, m):
    true, _ = nearest(Points.of(X, "euclidean"), m)
    same = [np.intersect1d(a, b).size for a, b in zip(columns, true, strict=True)]
    return np.mean(same) / m


@pytest.mark.parametrize("order", ["mixed", "sorted"])
@pytest.mark.parametrize("wanted", some([0.9, 0.99], 1))
def test_an_approximate_search_finds_as_many_as_wanted(client, order, wanted):
    pytest.importorskip("faiss")
    X, y = make_blobs(20_000, 16, centers=10, cluster_std=5.0, random_state=0)
    if order == "sorted":
        X = X[np.argsort(y, kind="stable")]
    columns, costs, recall = found_in(
        client, X, [5000, 7000, 0, 3000, 5000], 15, wanted
    )
    assert recall >= wanted
    assert share_of(columns, X, 15) >= wanted - 0.01
    proper(X, columns, costs)


def proper(X, columns, costs):
    """Check that these are distances of others, in order, none of them twice."""
    center = Points.of(X, "euclidean").center
    gaps = (X - center)[:, None] - (X - center)[columns]
    np.testing.assert_allclose(costs, (gaps**2).sum(axis=2), rtol=1e-12)
    assert (np.diff(costs, axis=1) >= 0).all()
    assert (columns != np.arange(len(X))[:, None]).all()
    assert (np.diff(np.sort(columns, axis=1), axis=1) > 0).all()


def test_without_faiss_whole_blocks_are_searched(client, monkeypatch):
    monkeypatch.setattr(search_lists, "available", lambda: False)
    X, y = make_blobs(3000, 8, centers=6, random_state=0)
    X = X[np.argsort(y, kind="stable")]
    columns, costs, recall = found_in(client, X, [500] * 6, 10, 0.95)
    assert recall >= 0.95
    assert share_of(columns, X, 10) >= 0.94
    proper(X, columns, costs)


def test_points_too_close_for_singles_are_searched_in_doubles(client):
    rng = np.random.default_rng(0)
    X = 1e-7 * rng.random((2000, 8)) + rng.integers(0, 2, (2000, 1))
    columns, costs, recall = found_in(client, X, [700, 1300], 10, 0.95)
    assert recall >= 0.95
    assert share_of(columns, X, 10) >= 0.94
    proper(X, columns, costs)


def test_lists_too_short_are_no_reason_to_find_fewer(client):
    pytest.importorskip("faiss")
    X = np.random.default_rng(0).standard_normal((400, 8))
    X[0] = 100.0
    columns, costs, _ = found_in(client, X, [100, 300], 60, 0.5)
    assert (columns >= 0).all()
    proper(X, columns, costs)


def test_an_approximate_search_of_very_few_points_finds_them(client):
    X = np.random.default_rng(0).standard_normal((9, 8))
    columns, costs, recall = found_in(client, X, [1, 6, 2], 8, 0.9)
    assert recall == 1.0
    proper(X, columns, costs)


def test_lists_can_be_sent_to_another_worker():
    pytest.importorskip("faiss")
    X = np.random.default_rng(0).standard_normal((500, 8))
    points, top = Points(X, "euclidean", 0.0), 5.0
    lists = search_lists._listed(points, 10, False, top)
    outline = search_lists._outline(lists)
    centers = search_lists._joined([outline], np.array([0, 10]), False, top)
    named = search_lists._nearest_lists(points, centers, 10, 5)
    asked = search_lists._asked_lists(points, named, (0, 10), None)
    there = pickle.loads(pickle.dumps(lists))
    answer = search_lists._looked_at(points, there, centers, 0, asked, 6)
    found = search._finished(answer.table, 0, 5)
    np.testing.assert_array_equal(found.columns, nearest(points, 5)[0])


def test_few_points_and_few_columns_are_searched_exactly(client):
    for n, d in ((500, 10), (12_000, 2)):
        X = np.random.default_rng(0).random((n, d))
        columns, _, recall = found_in(client, X, [n // 2, n - n // 2], 5, "auto")
        assert recall == 1.0
        others, _ = nearest(Points.of(X, "euclidean"), 5)
        np.testing.assert_array_equal(columns, others)


def test_many_points_are_searched_approximately(client):
    pytest.importorskip("faiss")
    X = np.random.default_rng(0).random((12_000, 8))
    columns, _, recall = found_in(client, X, [6000, 6000], 5, "auto")
    assert 0.99 <= recall
    assert share_of(columns, X, 5) >= 0.98


def test_a_sample_is_rows_in_order(client):
    X = np.arange(600.0).reshape(300, 2)
    blocks = in_blocks(client, X, SIZES)
    for number in (300, 1000):
        every = ready_points.sample(client, blocks, SIZES, number)
        np.testing.assert_array_equal(every, X)
    some = ready_points.sample(client, blocks, SIZES, 40, seed=1)
    assert some.shape == (40, 2)
    assert (np.diff(some[:, 0]) > 0).all()
    assert np.isin(some[:, 0], X[:, 0]).all()
    other = ready_points.sample(client, blocks, SIZES, 40, seed=2)
    assert (some != other).any()


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "cityblock", "jaccard"])
def test_points_are_made_ready_as_one_array_is(client, metric):
    X = np.random.default_rng(0).standard_normal((300, 4)) + 5.0
    blocks = in_blocks(client, X, SIZES)
    points = client.gather(ready_points.centered(client, blocks, SIZES, metric))
    one = Points.of(X, metric)
    filled = [part.X for part in points if len(part.X)]
    np.testing.assert_array_equal(np.concatenate(filled), one.X)
    for part in points:
        assert isinstance(part, Points)
        assert part.metric == metric
        np.testing.assert_array_equal(part.center, one.center)


def error_of(function, *arguments):
    with pytest.raises(InputError) as caught:
        function(*arguments)
    return str(caught.value)


def test_rows_of_zeros_are_named_by_their_numbers(client):
    X = np.ones((300, 2))
    X[[10, 51, 290]] = 0.0
    blocks = in_blocks(client, X, SIZES)
    said = error_of(ready_points.centered, client, blocks, SIZES, "cosine")
    assert said == error_of(Points.of, X, "cosine")
    assert "290" in said


def test_points_too_close_together_are_refused(client):
    X = 1e-150 * np.random.default_rng(0).random((300, 2))
    blocks = in_blocks(client, X, SIZES)
    said = error_of(ready_points.centered, client, blocks, SIZES, "euclidean")
    assert said == error_of(Points.of, X, "euclidean")


def no_distance(x, y):
    return float(x[0] - y[0])


def test_a_function_that_is_no_distance_is_refused(client):
    X = np.arange(600.0).reshape(300, 2)
    blocks = in_blocks(client, X, SIZES)
    said = error_of(ready_points.centered, client, blocks, SIZES, no_distance)
    assert said == error_of(Points.of, X, no_distance)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_distances_that_overflow_are_refused(client):
    X = 1e200 * np.random.default_rng(0).standard_normal((300, 2))
    said = error_of(found_in, client, X, SIZES, 5)
    points = Points.of(X, "euclidean")
    assert said == error_of(nearest, points, 5)


def test_an_approximate_search_needs_coordinates(client):
    X = np.random.default_rng(0).random((300, 2))
    said = error_of(found_in, client, X, SIZES, 5, 0.9, "cityblock")
    assert "approximate" in said


@pytest.mark.parametrize("parts", some([1, 5, 2, 8], 2))
def test_parts_hold_all_rows_once(client, parts):
    X, _ = make_blobs(3000, 3, centers=8, random_state=0)
    sizes = [1000, 0, 1, 1999]
    blocks = in_blocks(client, X, sizes)
    rows, numbers, counts = divide.divided(client, blocks, sizes, parts)
    rows, numbers = client.gather(rows), client.gather(numbers)
    assert [len(part) for part in rows] == counts.tolist()
    np.testing.assert_array_equal(np.sort(np.concatenate(numbers)), np.arange(3000))
    for part, number in zip(rows, numbers, strict=True):
        np.testing.assert_array_equal(part, X[number])
        assert number.dtype == np.int64
        assert (np.diff(number) > 0).all()
    assert counts.min() > 0.95 * 3000 / parts
    assert counts.max() < 1.05 * 3000 / parts + 1
    if parts > 1:
        within = sum(((part - part.mean(axis=0)) ** 2).sum() for part in rows)
        assert within < 0.8 * ((X - X.mean(axis=0)) ** 2).sum()


def test_a_sample_divides_many_rows_evenly(client, monkeypatch):
    monkeypatch.setattr(divide, "GATHERED", 2000)
    X = np.random.default_rng(0).random((20_000, 2)).astype(np.float32)
    blocks = in_blocks(client, X, [5000] * 4)
    rows, _, counts = divide.divided(client, blocks, [5000] * 4, 6)
    assert counts.sum() == 20_000
    assert np.ptp(counts) < 0.2 * 20_000 / 6
    assert client.gather(rows)[0].dtype == np.float32


def test_rows_that_are_all_the_same_leave_parts_empty(client):
    X = np.ones((300, 2))
    blocks = in_blocks(client, X, SIZES)
    rows, numbers, counts = divide.divided(client, blocks, SIZES, 4)
    assert counts.sum() == 300
    assert {part.shape[1] for part in client.gather(rows)} == {2}
    numbers = np.concatenate(client.gather(numbers))
    np.testing.assert_array_equal(np.sort(numbers), np.arange(300))


def test_it_works_in_processes_and_survives_the_loss_of_one():
    pytest.importorskip("faiss")
    X, _ = make_blobs(4000, 8, centers=5, cluster_std=5.0, random_state=0)
    sizes = [1500, 1000, 0, 1500]
    with (
        local_cluster(processes=True) as cluster,
        distributed.Client(cluster) as client,
    ):
        blocks = in_blocks(client, X, sizes)
        rows, numbers, counts = divide.divided(client, blocks, sizes, 3)
        points = ready_points.centered(client, rows, counts, "euclidean")
        found, recall = search.neighbors(client, points, counts, 8, 0.9)
        distributed.wait(found)
        before = np.concatenate([columns for columns, _ in client.gather(found)])
        lost = next(iter(client.scheduler_info()["workers"]))
        client.restart_workers([lost])
        columns = np.concatenate([columns for columns, _ in client.gather(found)])
        np.testing.assert_array_equal(columns, before)
        order = np.concatenate(client.gather(numbers))
        exact, _ = search.neighbors(client, points, counts, 8, "exact")
        true = np.concatenate([columns for columns, _ in client.gather(exact)])
    assert recall >= 0.9
    assert share_of(columns, X[order], 8) >= 0.89
    others, _ = nearest(Points.of(X[order], "euclidean"), 8)
    np.testing.assert_array_equal(true, others)
