"""The number of clusters, estimated: its accuracy and its memory."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from bistochastic import (
    ANCMM,
    InputError,
    estimate_n_clusters,
)
from bistochastic.cluster import n_clusters as number
from bistochastic.cluster.trials import Trials
from bistochastic.places.host.host import Host
from selection import some


@pytest.mark.parametrize("rule", some(["both", "gap", "stability"], 1))
def test_the_number_of_separated_clusters(rule):
    X, _ = make_blobs(160, 4, centers=5, cluster_std=0.6, random_state=3)
    found = estimate_n_clusters(X, rule=rule, max_clusters=7)
    assert found.numbers.tolist() == [2, 3, 4, 5, 6, 7]
    assert found.scores.shape == (6,)
    if rule != "stability":
        assert found.n_clusters == 5
    model = ANCMM("auto").fit(X)
    assert model.n_clusters_ == 5
    with pytest.raises(InputError, match="estimate_n_clusters"):
        ANCMM("auto", metric="cosine").fit(X)
    with pytest.raises(InputError, match="Too few different points"):
        estimate_n_clusters(X[:3])


def _mapped(X, folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


def _frame(X, folder):
    frame = pytest.importorskip("pandas").DataFrame(X)
    return frame.astype({0: np.float64})  # no one array holds these columns


@pytest.mark.parametrize("kind", [np.array, _mapped, _frame, "auto"])
def test_the_memory_for_the_number_grows_by_4_bytes_a_point(
    kind, monkeypatch, tmp_path
):
    monkeypatch.setattr(number, "SAMPLED", 400)
    monkeypatch.setattr(number, "_agreement", lambda *given: 1.0)  # many small fits
    X, _ = make_blobs(20_000, 8, centers=3, random_state=0)
    X = X.astype(np.float32)
    peaks, sizes = [], (20_000, 400_000)
    for n in (400, *sizes):  # the first time functions are compiled
        Z = np.tile(X, (max(1, n // len(X)), 1))[:n]
        if kind == "auto":
            ask = partial(Trials(ANCMM("auto"), Host()).number, Z)
        else:
            Z = Z if kind is np.array else kind(Z, tmp_path)
            ask = partial(estimate_n_clusters, Z, rule="gap", max_clusters=4)
        tracemalloc.start()
        ask()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] - peaks[1] < 4 * (sizes[1] - sizes[0]) + 100_000


def test_the_points_that_stand_for_all_do_not_change():
    for n in (10, 5_001, 70_000):
        rows = np.sort(np.random.default_rng(0).permutation(n)[:5_000])
        np.testing.assert_array_equal(number.chosen(n), rows)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_points_that_are_not_in_the_sample_are_checked_as_well(value):
    X = np.random.default_rng(0).random((6_000, 2))
    X[np.setdiff1d(np.arange(6_000), number.chosen(6_000))[-1]] = value
    for Z in (X, X.astype(np.float32), X.astype(object), X.tolist()):
        with pytest.raises(ValueError, match="contains"):
            estimate_n_clusters(Z, rule="gap")
