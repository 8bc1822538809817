"""The choice of a search for neighbors, and an approximate one, by faiss."""

import math
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import issparse

from bistochastic.core.errors import InputError
from bistochastic.core.jobs import workers
from bistochastic.core.threads import forked
from bistochastic.descent import descent
from bistochastic.neighbors import (
    FLAT,
    SQUARED,
    between,
    measured,
    nearest,
    nearest_to,
)

RECALL, LOWER = 0.99, 0.95  # by default, of fewer points than this and of more
DEAR = 50_000  # points from which on the higher recall costs as much as the rest
SAME = 1 + 1e-12  # of costs that count as the same
REACH = 30  # powers of two that coordinates may be from one
MANY = 10_000  # points from which on it pays
LISTED = 200_000  # points up to which an inverted file is the faster one
SEED = 0
SAMPLED = 256  # points whose exact neighbors say what the recall is
LISTS = 4  # times the root of n: how many lists
TRAINED = 40  # points a list that its center is trained with
MOST = 256  # lists looked at, at most
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


def neighbors_of(points, m, *, how="auto", n_jobs=None, fast=lambda text: text):
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
    dense = points.metric in SQUARED and not issparse(points.X)
    if isinstance(how, str):
        many = how == "auto" and dense and d > FLAT and n >= MANY
        quick = n <= DEAR and available()
        wanted = 1.0 if not many else RECALL if quick else LOWER
    else:
        wanted = float(how)
        if not dense:
            raise InputError(
                f"neighbors={how}: an approximate search needs dense points and a "
                'metric by coordinates; use neighbors="exact".'
            )
    if wanted == 1.0:
        return Found(*nearest(points, m, n_jobs=n_jobs))
    threads = 1 if forked() else workers(-1 if n_jobs is None else n_jobs)
    columns, recall = approximate(points, m, wanted, threads, fast)
    few = np.flatnonzero((columns < 0).any(axis=1))
    if few.size:  # lists too short
        full, _ = nearest_to(points, points.X[few], columns.shape[1] + 1, n_jobs=n_jobs)
        columns[few] = _others(full, few)
    return Found(*measured(points, columns, m), recall)


def available():
    """Tell whether faiss is installed."""
    return find_spec("faiss") is not None


def approximate(points, m, wanted, threads, fast=lambda text: text):
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

    def recall(found):  # others may be as near as the m-th
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


def _in_reach(X, top):
    """Return X, by a power of two so large that squares are within range of singles."""
    exponent = math.frexp(top)[1]
    return np.ldexp(X, -exponent) if abs(exponent) > REACH else X


def inverted_file(x, m, wanted, threads, asked, recall):
    """Find most of the m nearest other points of every point, by faiss.

    Points lie in lists around centers, and only the lists nearest to a point are looked
    at, as many as the wanted recall takes on a sample.

    Parameters
    ----------
    x : array of float32 of shape (n, d)
        Points.
    m : int
        How many neighbors.
    wanted : float
        Share of the true neighbors that should be found.
    threads : int
        How many.
    asked : array of int
        The sample.
    recall : callable
        Tells the recall of columns found for the sample.

    Returns
    -------
    columns : array of int of shape (n, m)
        The neighbors, in no order; -1 where fewer were found.
    float
        The recall.
    """
    import faiss

    n, d = x.shape
    rng = np.random.default_rng(SEED)
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        lists = min(n, int(LISTS * n**0.5))  # few points have fewer
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, lists)
        index.cp.niter, index.cp.seed = 6, SEED
        index.cp.min_points_per_centroid = 1
        index.cp.max_points_per_centroid = TRAINED
        few = x
        if TRAINED * lists < n:
            few = x[np.sort(rng.choice(n, TRAINED * lists, replace=False))]
        index.train(few)
        del few
        index.add(x)
        index.nprobe = 2
        while True:
            share = recall(_others(index.search(x[asked], m + 1)[1], asked))
            if share >= wanted or index.nprobe >= min(MOST, lists):
                break
            index.nprobe = min(math.ceil(1.4 * index.nprobe), MOST, lists)
        kind = np.int32 if n < 2**31 else np.int64
        columns = index.search(x, m + 1)[1].astype(kind)
    finally:
        faiss.omp_set_num_threads(before)
    return _others(columns, np.arange(n)), share


def _others(columns, rows):
    """Leave out the point itself; where it was not found, the last."""
    own = columns == rows[:, None]
    own[~own.any(axis=1), -1] = True
    return columns[~own].reshape(columns.shape[0], columns.shape[1] - 1)
