"""Points made ready for distances."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.sparse import csr_array

from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import InputError, listed, several

TILE = 1 << 22  # entries copied in one go
SMALLEST = 1e-307  # a number whose inverse is finite
SMALL = 1e-140  # coordinates below it have squares that vanish
SQUARED = ("euclidean", "l2", "sqeuclidean", "cosine")  # by coordinates, squared


@dataclass(frozen=True, eq=False)
class Points:
    """Points made ready for distances.

    Attributes
    ----------
    X : array or sparse matrix of shape (n, d)
        Doubles, or singles of very many points that were given as such: around their
        median, so that differences keep their digits; unit rows for the cosine, since
        2 (1 - cos) is the squared distance of such.
    metric : str or callable
        The metric as given.
    center : array of shape (d,) or float
        What was subtracted.
    """

    X: Any
    metric: Any
    center: Any

    @classmethod
    def of(cls, X: Any, metric: Any) -> Any:
        """Center or normalize the rows of X as the metric allows."""
        if is_sparse(X):
            _check_sparse(metric)
        if metric == "cosine":
            return cls(_unit_rows(X), metric, 0.0)
        if callable(metric) and not is_sparse(X):
            _check_distance(X, metric)
        if metric in SQUARED and not is_sparse(X):
            center = medians(X)
            X = X - center
            check_apart(float(np.abs(X).max()))
            return cls(X, metric, center)
        return cls(_as_wanted(X, metric), metric, 0.0)

    def at(self, rows: Any) -> Any:
        """Return some of the points."""
        return replace(self, X=self.X[rows])

    def host(self) -> Any:
        """Return the points on the CPU."""
        return self

    def stored(self, X: Any) -> Any:
        """Return other rows, dense or sparse, stored as these are."""
        if is_sparse(self.X) == is_sparse(X):
            return X
        return csr_array(X) if is_sparse(self.X) else X.toarray()

    def like(self, X: Any) -> Any:
        """Make other rows, stored as these are, ready in the same way."""
        if self.metric == "cosine":
            return _unit_rows(X)
        if isinstance(self.center, np.ndarray):
            return X.astype(self.X.dtype, copy=False) - self.center
        return _as_wanted(X, self.metric)


def medians(X: Any, ranked: Callable[..., Any] = np.partition) -> Any:
    """Return the median of each column, one of its values.

    Parameters
    ----------
    X : array of shape (n, d)
        Points.
    ranked : callable, default=np.partition
        Puts the number of a given rank in its place along an axis.

    Returns
    -------
    array of shape (d,)
        In the namespace of X.
    """
    middle = X.shape[0] // 2
    found = [ranked(X[:, s], middle, axis=0)[middle, ...] for s in by_columns(X)]
    return array_namespace(X).concat(found)


def check_apart(largest: float) -> None:
    """Refuse centered points whose largest coordinate has a square that vanishes."""
    if 0 < largest < SMALL:
        raise InputError(
            "The points lie so close together that their squared distances vanish. "
            "Multiply X by a number first."
        )


def by_columns(X: Any) -> Any:
    """Yield slices of columns, so many that a copy of them is small."""
    step = max(1, TILE // X.shape[0])
    return (slice(at, at + step) for at in range(0, X.shape[1], step))


def _as_wanted(X: Any, metric: Any) -> Any:
    """Return truth values for the metrics that compare such."""
    from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS

    return X.astype(bool) if metric in PAIRWISE_BOOLEAN_FUNCTIONS else X


def _unit_rows(X: Any) -> Any:
    from sklearn.preprocessing import normalize

    largest = abs(X).max(axis=1)
    largest = largest.toarray().ravel() if is_sparse(largest) else largest
    zero = np.flatnonzero(largest == 0)
    if zero.size:
        raise InputError(
            f"X has {several(zero.size, 'row')} of zeros ({listed(zero)}), which have "
            'no direction; metric="cosine" cannot place them. Remove them.'
        )
    scale = 1.0 / np.maximum(largest, SMALLEST)  # squares neither overflow nor vanish
    return normalize(
        X.multiply(scale[:, None]).tocsr() if is_sparse(X) else X * scale[:, None]
    )


def _check_sparse(metric: Any) -> None:
    """Refuse a metric that cannot compare sparse rows."""
    from sklearn.neighbors import VALID_METRICS_SPARSE

    known = sorted({*VALID_METRICS_SPARSE["brute"], *SQUARED} - {"precomputed"})
    if not callable(metric) and metric not in known:
        raise InputError(
            f"metric={metric!r} cannot compare the rows of a sparse X. Pass "
            f"X.toarray(), or use one of {', '.join(known)}."
        )


def _check_distance(X: Any, metric: Any) -> None:
    """Refuse a function that, by four pairs, is no distance."""
    n = X.shape[0]
    for i, j in ((0, n - 1), (0, n // 2), (n // 2, n - 1), (0, 0)):
        here, there = metric(X[i], X[j]), metric(X[j], X[i])
        good = here >= 0 and abs(here - there) <= 1e-6 * here
        if not good or (i == j and here != 0):
            raise InputError(
                f"metric={metric!r} is no distance: of rows {i} and {j} it is "
                f"{here:.6g}, of {j} and {i} it is {there:.6g}. Eq. (6) needs one that "
                "is symmetric, not negative, and 0 from a point to itself."
            )
