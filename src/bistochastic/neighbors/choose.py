"""The choice of a search for neighbors: one policy of recall."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import InputError
from bistochastic.core.jobs import workers
from bistochastic.core.threads import forked
from bistochastic.neighbors.descent import descent
from bistochastic.neighbors.exact import FLAT, between, measured, nearest, nearest_to
from bistochastic.neighbors.inverted_file import (
    SEED,
    available,
    inverted_file,
    without_itself,
)
from bistochastic.neighbors.points import SQUARED

RECALL, LOWER = 0.99, 0.95  # by default, of fewer points than this and of more
DEAR = 50_000  # points from which on the higher recall costs as much as the rest
SAME = 1 + 1e-12  # of costs that count as the same
REACH = 30  # powers of two that coordinates may be from one
MANY = 10_000  # points from which on it pays
LISTED = 200_000  # points up to which an inverted file is the faster one
SAMPLED = 256  # points whose exact neighbors say what the recall is
DIGITS = 1e-6  # of the largest coordinate: nearer neighbors need doubles


@dataclass(frozen=True, eq=False)
class Found:
    """Neighbors of every point.

    Attributes
    ----------
    columns : array of int of shape (n, m)
        The neighbors, the nearest first; the point itself is left out.
    costs : array of shape (n, m)
        Their squared distances.
    recall : float
        Which share of the true neighbors these are, on a sample; 1 if exact.
    """

    columns: Any
    costs: Any
    recall: float = 1.0


def neighbors_of(
    points: Any,
    m: int,
    *,
    how: Any = "auto",
    n_jobs: int | None = None,
    fast: Callable[..., Any] = lambda text: text,
) -> Any:
    """Find the m nearest other points of every point, or most of them.

    Parameters
    ----------
    points : Points
        The points, more than m of them.
    m : int
        How many.
    how : {"auto", "exact"} or float, default="auto"
        A number is the wanted recall of an approximate search. "auto": 0.99 of many
        points in many dimensions, 0.95 of more than 50,000 or without faiss; else
        exact.
    n_jobs : int, optional
        Threads, as scikit-learn counts them; all by default.
    fast : callable, optional
        Returns the compiled body of a text.

    Returns
    -------
    Found
        The neighbors, their distances, and the recall.
    """
    n, d = points.X.shape
    dense = points.metric in SQUARED and not is_sparse(points.X)
    wanted = wanted_recall(how, n, d, dense)
    if wanted == 1.0:
        return Found(*nearest(points, m, n_jobs=n_jobs, fast=fast))
    threads = 1 if forked() else workers(-1 if n_jobs is None else n_jobs)
    columns, recall = approximate(points, m, wanted, threads, fast)
    few = np.flatnonzero((columns < 0).any(axis=1))
    if few.size:  # lists too short
        full, _ = nearest_to(points, points.X[few], columns.shape[1] + 1, n_jobs=n_jobs)
        columns[few] = without_itself(full, few)
    return Found(*measured(points, columns, m, fast), recall)


def wanted_recall(
    how: str | float,
    n: int,
    d: int,
    coordinates: bool,
    *,
    dear: float = 0.0,
    flat: int = FLAT,
) -> float:
    """Return the recall that a search has to reach, on every place.

    Parameters
    ----------
    how : {"auto", "exact"} or float
        What the caller asks for.
    n, d : int
        Number of points and of columns.
    coordinates : bool
        Whether points are dense and compared by coordinates; others are searched
        exactly.
    dear : float, default=0.0
        The n^2 d from which on an exact search takes too long there.
    flat : int, optional
        Columns up to which it never does.

    Returns
    -------
    float
        1 for an exact search.
    """
    if not isinstance(how, str):
        if not coordinates:
            raise InputError(
                f"neighbors={how}: an approximate search needs dense points and a "
                'metric by coordinates; use neighbors="exact".'
            )
        return float(how)
    many = coordinates and d > flat and n >= MANY and float(n) * n * d > dear
    if how == "exact" or not many:
        return 1.0
    return RECALL if n <= DEAR and available() else LOWER


def approximate(
    points: Any,
    m: int,
    wanted: float,
    threads: int,
    fast: Callable[..., Any] = lambda text: text,
) -> tuple[Any, Any]:
    """Find most of the m nearest other points of every point.

    By an inverted file up to 200,000 points, where faiss is installed; else by descent,
    which grows more slowly, and if that falls short by an inverted file.

    Parameters
    ----------
    points : Points
        Points.
    m : int
        How many neighbors.
    wanted : float
        Share of the true neighbors that should be found.
    threads : int
        How many.
    fast : callable, optional
        Returns the compiled body of a text.

    Returns
    -------
    columns : array of int of shape (n, m) or wider
        The neighbors, in no order; -1 where fewer were found.
    recall : float
        The share that was found of a sample.
    """
    n = points.X.shape[0]
    rng = np.random.default_rng(SEED)
    asked = np.sort(rng.choice(n, min(n, SAMPLED), replace=False))
    Y = points.X[asked]
    _, costs = nearest_to(points, Y, m + 1, n_jobs=threads, brute=True)
    last = costs[:, -1]  # of the m-th neighbor, the point itself being the first

    def recall(found: Any) -> Any:
        near = between(points, asked, np.maximum(found, 0)) <= last[:, None] * SAME
        return float(np.minimum((near & (found >= 0)).sum(axis=1), m).mean() / m)

    farthest = last[last > 0] ** 0.5
    top = float(np.abs(points.X).max())
    single = farthest.min(initial=np.inf) > DIGITS * top
    kind = np.float32 if single else np.float64
    x = np.ascontiguousarray(_in_reach(points.X, top), kind)
    if n <= LISTED and single and available():
        return inverted_file(x, m, wanted, threads, asked, recall)
    columns, share = descent(x, m, wanted, lambda found: recall(found[asked]), fast)
    if share < wanted and single and available():
        other = inverted_file(x, m, wanted, threads, asked, recall)
        return other if other[1] > share else (columns, share)
    return columns, share


def _in_reach(X: Any, top: Any) -> Any:
    """Return X, by a power of two so large that squares are within range of singles."""
    exponent = math.frexp(top)[1]
    return np.ldexp(X, -exponent) if abs(exponent) > REACH else X
