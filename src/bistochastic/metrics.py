"""How well a clustering agrees with known classes: ACC, NMI and PUR of the paper.

All take the known labels first, then the found ones, and give fractions between 0
and 1. Labels may be numbers, strings or any other hashable things; what they are called
does not matter, only who shares one.
"""

from typing import Any

import numpy as np

from bistochastic.core.errors import InputError, check_choice

AVERAGES = {"max": "max", "min": "min", "sqrt": "geometric", "mean": "arithmetic"}


def clustering_accuracy(y_true: Any, y_pred: Any) -> float:
    """Return the share of points in the right cluster, under the best naming (ACC).

    Every cluster is named after at most one class and every class after at most one
    cluster, so that the most points agree (the Hungarian method). Clusters beyond the
    number of classes have no name: their points count as wrong.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Known classes and found clusters, of any number each.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from bistochastic.metrics import clustering_accuracy
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 1, 0])
    0.75
    """
    from scipy.optimize import linear_sum_assignment

    table = _contingency(y_true, y_pred)
    pairs = linear_sum_assignment(table, maximize=True)
    return float(table[pairs].sum() / table.sum())


def normalized_mutual_information(
    y_true: Any, y_pred: Any, *, average: str = "max"
) -> float:
    """Return the mutual information over a mean of the two entropies (NMI).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Known classes and found clusters, of any number each.
    average : {"max", "min", "sqrt", "mean"}, default="max"
        What to divide by: the larger entropy, as the code of this family of papers
        does; the smaller; the root of the product; or the arithmetic mean, which is
        scikit-learn's default.

    Returns
    -------
    float
        Between 0 and 1; 1 also where both have one cluster only.

    Examples
    --------
    >>> from bistochastic.metrics import normalized_mutual_information
    >>> round(normalized_mutual_information([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.6667
    """
    from sklearn.metrics import normalized_mutual_info_score

    check_choice("average", average, AVERAGES)
    codes = _codes(y_true, y_pred)
    value = normalized_mutual_info_score(*codes, average_method=AVERAGES[average])
    return float(value)


def purity(y_true: Any, y_pred: Any) -> float:
    """Return the share of points that are in the largest class of their cluster (PUR).

    Many small clusters are pure: compare it only at the same number of clusters.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Known classes and found clusters, of any number each.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from bistochastic.metrics import purity
    >>> purity([0, 0, 1, 1], [0, 1, 2, 3])
    1.0
    """
    table = _contingency(y_true, y_pred)
    return float(table.max(axis=0).sum() / table.sum())


def _contingency(y_true: Any, y_pred: Any) -> Any:
    """Count the points of each class (row) in each cluster (column)."""
    rows, columns = _codes(y_true, y_pred)
    table = np.zeros((rows.max() + 1, columns.max() + 1), dtype=np.int64)
    np.add.at(table, (rows, columns), 1)
    return table


def _codes(y_true: Any, y_pred: Any) -> list[Any]:
    """Return the labels of both as numbers, by first appearance."""
    codes = [_numbered(y, name) for y, name in ((y_true, "y_true"), (y_pred, "y_pred"))]
    first, second = map(len, codes)
    if first != second:
        raise InputError(
            f"y_true has {first} labels and y_pred {second}; they must be of the same "
            "points."
        )
    return codes


def _numbered(labels: Any, name: str) -> Any:
    if hasattr(labels, "detach"):  # a tensor, on any device
        labels = labels.detach().cpu().numpy()
    shape = np.shape(labels) if hasattr(labels, "shape") else (len(list(labels)),)
    if len(shape) != 1 or shape[0] == 0:
        raise InputError(
            f"{name} has shape {tuple(shape)}; one label for each point is needed."
        )
    numbers: dict[Any, int] = {}
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    for i, label in enumerate(values):
        if label is None or label != label:
            raise InputError(f"{name}[{i}] is missing; leave such points out of both.")
        numbers.setdefault(label, len(numbers))
    return np.array([numbers[label] for label in values])
