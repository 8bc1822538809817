"""How many clusters: rules on the first graph and on the partitions it gives."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_array

from bistochastic.adaptive import adaptive_neighbors_graph
from bistochastic.cluster.consensus import medoid
from bistochastic.core.errors import InputError, check_choice
from bistochastic.core.parameters import Count, unmasked
from bistochastic.core.protocols import Graph
from bistochastic.core.quiet import quietly
from bistochastic.graph.components import components
from bistochastic.places.host.csr import Csr
from bistochastic.spectrum.ky_fan import MEDIUM, ky_fan

SHARP = 0.85  # a relative gap above it counts as a full one
SMALL = 1e-10  # eigenvalues below it are zero
GRID = (10, 14, 20)
SAMPLED = 5_000  # points that stand for all
TILE = 5_000  # rows that are converted and checked at once
MANY = 100  # eigenvalues of a large graph that a guess looks at


@dataclass(frozen=True, eq=False)
class NumberEstimate:
    """How many clusters there seem to be, and why.

    Attributes
    ----------
    n_clusters : int
        The estimate.
    numbers : array of int of shape (m,)
        The numbers that were looked at.
    scores : array of shape (m,)
        What the rule makes of each; the largest wins.
    rule : str
        The rule.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from bistochastic import estimate_n_clusters
    >>> X, _ = make_blobs(150, centers=4, cluster_std=0.7, random_state=0)
    >>> found = estimate_n_clusters(X, max_clusters=6)
    >>> found.numbers.tolist(), found.n_clusters
    ([2, 3, 4, 5, 6], 4)
    """

    n_clusters: int
    numbers: np.ndarray
    scores: np.ndarray
    rule: str


@quietly
def estimate_n_clusters(
    X: Any,
    *,
    max_clusters: int = 15,
    n_neighbors: int = 15,
    rule: str = "both",
    random_state: int | None = None,
) -> Any:
    """Estimate the number of clusters.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Points; of more than 5,000, so many at random stand for all.
    max_clusters : int, default=15
        The largest number to look at; 2 is the smallest.
    n_neighbors : int, default=15
        Neighbors in the graph whose eigenvalues "gap" looks at.
    rule : {"both", "gap", "stability"}, default="both"
        "gap": the largest relative gap between the c-th and the next eigenvalue of the
        Laplacian of the first graph, as the code of CLR guesses it. "stability": the
        number for which the partitions of `ANCMM` with 10, 14 and 20 neighbors agree
        most. "both": the largest product of the two.
    random_state : int or None, default=None
        Passed on to `ANCMM`.

    Returns
    -------
    NumberEstimate
        The number, and the score of each that was looked at.

    Notes
    -----
    Beyond X itself, a NumPy array (a memory map, too) or a pandas frame, the memory
    is at most that of working on 5,000 points, less than 150 MB for 200 columns, and 4
    bytes for each row of X (8 from 4.3 billion rows on). Other kinds of X, such as
    lists, are made an array of float64 first.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from bistochastic import estimate_n_clusters
    >>> X, _ = make_blobs(150, centers=4, cluster_std=0.7, random_state=0)
    >>> estimate_n_clusters(X, max_clusters=6).n_clusters
    4
    """
    check_choice("rule", rule, ("both", "gap", "stability"))
    Count(2)("max_clusters", max_clusters)
    Count(2)("n_neighbors", n_neighbors)
    X = _sampled(unmasked(X))
    most = min(int(max_clusters), len(X) - 2, len(np.unique(X, axis=0)))
    if most < 2:
        raise InputError(
            f"Too few different points among {len(X)} to tell how many clusters there "
            "are."
        )
    numbers = np.arange(2, most + 1)
    scores = np.ones(numbers.size)
    if rule != "stability":
        scores = scores * _gaps(X, most, min(int(n_neighbors), len(X) - 1))
    if rule != "gap":
        agreement = [_agreement(X, int(c), random_state) for c in numbers]
        scores = scores * np.array(agreement)
    return NumberEstimate(int(numbers[scores.argmax()]), numbers, scores, rule)


def chosen(n: int) -> Any:
    """Return which of n rows stand for all, in increasing order."""
    order = np.arange(n, dtype=np.min_scalar_type(n))  # the fewest bytes that will do
    np.random.default_rng(0).shuffle(order)
    return np.sort(order[:SAMPLED]).astype(np.intp)


def _sampled(X: Any) -> Any:
    """Return the rows that stand for all, in float64.

    All rows are checked, in tiles, so that X is never converted as a whole.
    """
    frame = hasattr(X, "iloc") and isinstance(X.shape[0], Integral)
    if not (frame or isinstance(X, np.ndarray)) or X.ndim != 2 or 0 in X.shape:
        X = check_array(X, dtype=np.float64)
    rows = X.iloc if hasattr(X, "iloc") else X
    for start in range(0, len(X), TILE):
        check_array(rows[start : start + TILE], dtype=np.float64)
    return check_array(rows[chosen(len(X))], dtype=np.float64)


def guessed(S: Graph) -> int:
    """Guess the number of clusters as the code of CLR does.

    Parameters
    ----------
    S : Graph
        Weights.

    Returns
    -------
    int
        Where the largest relative gap between eigenvalues of the Laplacian is, 1 and
        the upper tenth left out. Of more than 3,000 points the 100 smallest eigenvalues
        are looked at.
    """
    if S.n < 4:
        return min(2, S.n)
    if S.n > MEDIUM:
        values = ky_fan(S, MANY, components(S)[1]).values
        last = MANY - 1
    else:
        A = S.entries(0.0).toarray()
        values = np.linalg.eigvalsh(np.diag(A.sum(axis=1)) - A)
        last = max(2, int(0.9 * (S.n - 1)) - 1)
    return int(_relative(values)[1:last].argmax()) + 2


def _gaps(X: Any, most: Any, k: int) -> Any:
    """Return the relative gaps between the c-th and the next eigenvalue, c >= 2."""
    S = Csr(adaptive_neighbors_graph(X, k))
    return _relative(ky_fan(S, most + 1, components(S)[1]).values)[1:]


def _relative(values: Any) -> Any:
    """Return (e_(c + 1) - e_c) / e_(c + 1); large ones are one, later ones win ties."""
    values = np.where(values < SMALL, np.finfo(float).eps, values)
    gaps = (values[1:] - values[:-1]) / values[1:]
    return np.where(gaps > SHARP, 1.0, gaps) + 1e-6 * np.arange(gaps.size)


def _agreement(X: Any, c: int, random_state: Any) -> Any:
    """Return the mean agreement of the partitions by a few numbers of neighbors."""
    from bistochastic.cluster.ancmm import ANCMM

    partitions = [
        ANCMM(int(c), n_neighbors=k, random_state=random_state).fit(X).labels_
        for k in GRID
        if k < len(X) - 1
    ]
    m = len(partitions)
    if m < 2:
        return 1.0
    return float((medoid(partitions)[1].sum() - m) / (m * (m - 1)))
