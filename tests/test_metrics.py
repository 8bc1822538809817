"""Scores against brute force, scikit-learn, and awkward labels."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from bistochastic import InputError
from bistochastic.metrics import (
    AVERAGES,
    clustering_accuracy,
    normalized_mutual_information,
    purity,
)
from conftest import need

ALL = (clustering_accuracy, normalized_mutual_information, purity)


def brute_force(y, z):
    """Try every way to name clusters after classes."""
    names = range(max(y.max(), z.max()) + 1)
    return max(
        np.mean(np.array(naming)[z] == y) for naming in itertools.permutations(names)
    )


def test_accuracy_equals_brute_force(rng):
    for _ in range(100):
        classes, clusters = rng.integers(1, 6, 2)
        y, z = rng.integers(0, classes, 20), rng.integers(0, clusters, 20)
        np.testing.assert_allclose(clustering_accuracy(y, z), brute_force(y, z))


def test_purity_by_hand():
    y = [0, 0, 0, 1, 1, 2]
    assert purity(y, [0, 0, 1, 1, 1, 1]) == 4 / 6
    assert purity(y, range(6)) == 1.0
    assert purity(y, [5] * 6) == 0.5


@pytest.mark.parametrize("average", AVERAGES)
def test_information_by_every_mean(average, rng):
    for _ in range(20):
        y, z = rng.integers(0, 4, 30), rng.integers(0, 6, 30)
        ours = normalized_mutual_information(y, z, average=average)
        counts = np.histogram2d(y, z, bins=(4, 6))[0] / 30
        p, q = counts.sum(axis=1), counts.sum(axis=0)
        on = counts > 0
        shared = (counts[on] * np.log(counts[on] / np.outer(p, q)[on])).sum()
        entropies = [-(v[v > 0] * np.log(v[v > 0])).sum() for v in (p, q)]
        mean = {
            "max": max(entropies), "min": min(entropies),
            "sqrt": np.prod(entropies) ** 0.5, "mean": np.mean(entropies),
        }[average]  # fmt: skip
        np.testing.assert_allclose(ours, shared / mean)


def test_the_default_divides_by_the_larger_entropy(rng):
    y, z = rng.integers(0, 3, 50), rng.integers(0, 7, 50)
    theirs = normalized_mutual_info_score(y, z, average_method="max")
    np.testing.assert_allclose(normalized_mutual_information(y, z), theirs)
    assert normalized_mutual_information(y, z) < normalized_mutual_info_score(y, z)


@pytest.mark.parametrize("score", ALL)
def test_names_and_order_do_not_matter(score, rng):
    y, z = rng.integers(0, 3, 40), rng.integers(0, 4, 40)
    value = score(y, z)
    assert 0 <= value <= 1
    words = np.array(["x", "yy", "z"])[y]
    mixed = [("a", None, 3.5, ("t",))[i] or "other" for i in z]
    order = rng.permutation(40)
    np.testing.assert_allclose(score(words, mixed), value)
    np.testing.assert_allclose(score(list(y[order]), z[order]), value)
    assert score(y, y) == 1.0
    assert score([1], ["a"]) == 1.0


@pytest.mark.parametrize("score", ALL)
def test_frames_and_tensors(score):
    need("pandas")
    need("torch")
    import pandas as pd
    import torch

    y = pd.Series(["a", "a", "b"], dtype="category")
    assert score(y, torch.tensor([4, 4, 2])) == 1.0


@pytest.mark.parametrize("score", ALL)
@pytest.mark.parametrize(
    ("y", "z", "said"),
    [
        ([0, 1], [0, 1, 2], "2 labels and y_pred 3"),
        ([], [], r"y_true has shape \(0,\)"),
        (np.zeros((2, 2)), [0, 1], "one label for each point"),
        ([0, 1], [0, None], r"y_pred\[1\] is missing"),
        ([0.0, np.nan], [0, 1], r"y_true\[1\] is missing"),
    ],
)
def test_labels_that_cannot_be_compared(score, y, z, said):
    with pytest.raises(InputError, match=said):
        score(y, z)


def test_an_unknown_average():
    with pytest.raises(InputError, match="'sqrt'"):
        normalized_mutual_information([0], [0], average="geometric")
