"""Most of the nearest neighbors by an inverted file of faiss."""

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

SEED = 0  # of the generator that draws samples and centers
LISTS = 2  # times the root of n: how many lists
TRAINED = 40  # points a list that its center is trained with
MOST = 256  # lists looked at, at most
STEP = 1.2  # times as many lists, until the recall is reached


def available() -> Any:
    """Tell whether faiss is installed."""
    return find_spec("faiss") is not None


def inverted_file(
    x: Any, m: int, wanted: float, threads: int, asked: Any, recall: Callable[..., Any]
) -> tuple[Any, Any]:
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
            share = recall(without_itself(index.search(x[asked], m + 1)[1], asked))
            if share >= wanted or index.nprobe >= min(MOST, lists):
                break
            index.nprobe = min(math.ceil(STEP * index.nprobe), MOST, lists)
        kind = np.int32 if n < 2**31 else np.int64
        columns = index.search(x, m + 1)[1].astype(kind)
    finally:
        faiss.omp_set_num_threads(before)
    return without_itself(columns, np.arange(n)), share


def without_itself(columns: Any, rows: Any) -> Any:
    """Leave out the point itself; where it was not found, the last."""
    own = columns == rows[:, None]
    own[~own.any(axis=1), -1] = True
    return columns[~own].reshape(columns.shape[0], columns.shape[1] - 1)
