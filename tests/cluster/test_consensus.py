"""Fits with several numbers of neighbors, and how far they agree."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from bistochastic import (
    ANCMM,
)
from bistochastic.cluster.consensus import grid, medoid, steady


def test_the_number_of_neighbors_that_is_chosen_gives_the_same_labels():
    X, _ = make_moons(250, noise=0.12, random_state=1)
    model = ANCMM(2).fit(X)
    assert model.n_neighbors_ in (14, 20, 28, 40, 56)
    assert 0 < model.stability_ <= 1
    again = ANCMM(2, n_neighbors=model.n_neighbors_).fit(X)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    assert again.stability_ == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_the_number_of_neighbors_gives_the_same_labels_with_ties(seed):
    rng = np.random.default_rng(seed)
    for X, c in ((rng.integers(0, 8, (40, 1)), 3), (rng.integers(0, 4, (200, 2)), 2)):
        model = ANCMM(c).fit(X)
        again = ANCMM(c, n_neighbors=model.n_neighbors_).fit(X)
        np.testing.assert_array_equal(model.labels_, again.labels_)


def test_trials_tell_how_each_number_of_neighbors_came_out():
    X, _ = make_blobs(300, 3, centers=3, cluster_std=2.5, random_state=0)
    model = ANCMM(3).fit(X)
    ks = [trial["n_neighbors"] for trial in model.trials_]
    assert ks == grid(300, 3)
    alone = [ANCMM(3, n_neighbors=k).fit(X).labels_ for k in ks]
    for trial, labels in zip(model.trials_, alone, strict=True):
        index = adjusted_rand_score(model.labels_, labels)
        assert trial["agreement"] == pytest.approx(index)
        assert trial["sizes"] == np.bincount(labels).tolist()
        assert trial["n_components"] == 3
    kept = [trial["n_neighbors"] for trial in model.trials_ if trial["kept"]]
    assert kept == [model.n_neighbors_]
    at = ks.index(model.n_neighbors_)
    others = alone[:at] + alone[at + 1 :]
    np.testing.assert_array_equal(model.agreement_, steady(model.labels_, others))
    assert 0.5 < model.agreement_.mean() < 1


def test_steady_by_hand():
    labels = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    same = labels[::-1].max() - labels  # other names
    merged = np.array([0, 0, 0, 1, 1, 1, 1, 1])  # 1 goes under in 2
    split = np.array([0, 0, 3, 1, 1, 2, 2, 2])
    np.testing.assert_array_equal(steady(labels, [same]), 1)
    np.testing.assert_array_equal(steady(labels, [merged]), [1, 1, 1, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(steady(labels, [split]), [1, 1, 0, 1, 1, 1, 1, 1])
    both = steady(labels, [merged, split])
    np.testing.assert_array_equal(both, [1, 1, 0.5, 0.5, 0.5, 1, 1, 1])
    np.testing.assert_array_equal(steady(labels, []), 1)


def test_neighbors_are_tried_up_to_the_size_of_a_cluster():
    assert grid(100, 10) == [5, 7, 10]
    assert grid(400, 8) == [14, 20, 28, 40]
    assert grid(400, 2) == [14, 20, 28, 40]
    assert grid(10_000, 3) == [20, 28, 40, 56]
    assert grid(100_000, 3) == [14, 20, 28]
    assert grid(1_000_000, 3) == [10, 14, 20]
    assert grid(1_000_000, 100_000) == [5, 7, 10]
    assert grid(5, 3) == [5, 7, 10]


def test_the_medoid_agrees_most_with_the_others():
    a, b = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1, 2])
    best, agreement = medoid([b, a, a])
    assert best in (1, 2)
    assert agreement[1, 2] == 1.0
    assert medoid([a])[0] == 0
    assert medoid([a, a, a])[0] == 1
