"""Most neighbors: a row asks the blocks that hold the nearest lists."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bistochastic.neighbors.choose import (
    DIGITS,
    SAME,
    SAMPLED,
    _in_reach,
)
from bistochastic.neighbors.exact import (
    nearest_to,
)
from bistochastic.neighbors.inverted_file import (
    LISTS,
    SEED,
    TRAINED,
    available,
    without_itself,
)
from bistochastic.neighbors.points import (
    Points,
)
from bistochastic.places.dask_workers.ready_points import largest_of, picked_rows
from bistochastic.places.dask_workers.search_exact import answer_to
from bistochastic.places.dask_workers.search_tasks import (
    SLACK,
    Answer,
    Asked,
    Held,
    NearTable,
    PointBlocks,
    known_of,
    merged_with,
)

if TYPE_CHECKING:
    from distributed import Future
FEWER = 64  # lists of a block that is searched as a whole, at most
FARTHER = 1.3  # times as many lists, if too few neighbors were found
ROWS = 1 << 14  # rows compared with all centers in one go


@dataclass(frozen=True, eq=False)
class Lists:
    """The points of a block in lists around centers.

    Attributes
    ----------
    centers : array of shape (lists, d)
        The centers.
    sizes : array of int of shape (lists,)
        How many points each list has.
    index : faiss.IndexIVFFlat, optional
        Searches the lists; None: the block is searched as a whole.
    n_bytes : int
        How large it is.
    """

    centers: np.ndarray
    sizes: np.ndarray
    index: Any
    n_bytes: int

    def __sizeof__(self) -> int:
        """Return bytes."""
        return self.n_bytes


class Centers(NamedTuple):
    """The centers of all lists of all blocks.

    Attributes
    ----------
    x : array of shape (lists, d)
        The centers, block after block.
    sizes : array of int of shape (lists,)
        How many points each list has.
    starts : array of int of shape (blocks + 1,)
        The first list of each block.
    whole : bool
        Whether blocks are searched as a whole.
    top : float
        The largest coordinate of the points.
    """

    x: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray
    whole: bool
    top: float


# Approximate


def approximate_tables(
    data: PointBlocks, m: int, wanted: float
) -> tuple[dict[int, "Future"], float]:
    """Find most of the nearest points: a table of each block, and the recall."""
    tasks, points, full = data.tasks, data.points, data.full
    top = max(
        tasks.gather([tasks(f"largest {b}", largest_of, points[b]) for b in full])
    )
    rng = np.random.default_rng(SEED)
    rows = np.sort(rng.choice(data.n, min(data.n, SAMPLED), replace=False))
    some = tasks("stack", _stacked, picked_rows(tasks, points, data.sizes, rows))
    asked = tasks("asking", _held, some, points[full[0]])
    Y, (true, costs) = tasks.gather([some, _true(data, some, m)])
    last = costs[:, -1]
    farthest = last[last > 0] ** 0.5
    single = farthest.min(initial=np.inf) > DIGITS * top
    whole = not (single and available())
    total = max(1, int(LISTS * data.n**0.5))
    numbers = np.ceil(total * data.sizes / data.n).astype(int)
    numbers = np.minimum(
        numbers, np.minimum(data.sizes, FEWER) if whole else data.sizes
    )
    lists = {
        b: tasks(f"lists {b}", _listed, points[b], int(numbers[b]), whole, top)
        for b in full
    }
    outlines = [tasks(f"centers {b}", _outline, lists[b]) for b in full]
    starts = np.zeros(len(points) + 1, dtype=np.int64)
    starts[np.array(full) + 1] = numbers[full]
    starts = np.cumsum(starts)
    centers = tasks("centers", _joined, outlines, starts, whole, top)
    homes = _homes(data, lists, without_itself(true, rows), starts, top)
    ranks = _ranks(tasks.gather([centers])[0], Y, homes)
    probes = 1 + int(np.sort(ranks, axis=None)[math.ceil(wanted * ranks.size) - 1])
    while True:
        trial = _probed(data, {-1: asked}, lists, centers, starts, probes, m)
        columns, costs = tasks.gather([trial[-1]])[0]
        near = (costs <= last[:, None] * SAME) & (columns != rows[:, None])
        share = float(np.minimum(near.sum(axis=1), m).mean() / m)
        if share >= wanted or probes >= starts[-1]:
            break
        probes = min(math.ceil(FARTHER * probes), int(starts[-1]))
    asking = {a: points[a] for a in full}
    return _probed(data, asking, lists, centers, starts, probes, m), share


def _true(data: PointBlocks, some: "Future", m: int) -> "Future":
    """Find the nearest of a sample, compared with all points."""
    tasks = data.tasks
    table = tasks("blank", _unknown, some, m + 1)
    for b in data.full:
        given = data.points[b], int(data.starts[b]), some, m + 1
        answer = tasks(f"brute {b}", _brute, *given)
        table = tasks(f"merge {b}", merged_with, table, answer)
    return table


def _stacked(rows: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(rows)


def _held(Y: np.ndarray, points: Points) -> Points:
    return Held(Y, points.metric, points.center)


def _unknown(Y: np.ndarray, width: int) -> NearTable:
    shape = len(Y), width
    return NearTable(np.full(shape, -1, dtype=np.int64), np.full(shape, np.inf))


def _brute(points: Points, start: int, Y: np.ndarray, width: int) -> Answer:
    """Compare some rows with all points of a block."""
    width = min(width, points.X.shape[0])
    columns, costs = nearest_to(points, Y, width, n_jobs=1, brute=True)
    return Answer(np.arange(len(Y)), NearTable(columns.astype(np.int64) + start, costs))


def _listed(points: Points, number: int, whole: bool, top: float) -> Lists:
    """Put the points of a block into lists.

    Parameters
    ----------
    points : Points
        The points.
    number : int
        How many lists.
    whole : bool
        Whether the block will be searched as a whole. Then the centers are some of the
        points.
    top : float
        The largest coordinate of all points.

    Returns
    -------
    Lists
        The lists; of a block searched as a whole, all count as equally long.
    """
    X = points.X
    n, d = X.shape
    rng = np.random.default_rng(SEED)
    if whole:
        rows = np.sort(rng.choice(n, number, replace=False))
        centers = _in_reach(X[rows], top)
        return Lists(centers, np.full(number, n // number), None, centers.nbytes)
    import faiss

    faiss.omp_set_num_threads(1)
    x = _singles(X, top)
    index: Any = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, number)
    index.cp.niter, index.cp.seed = 6, SEED
    index.cp.min_points_per_centroid = 1
    index.cp.max_points_per_centroid = TRAINED
    few = x
    if TRAINED * number < n:
        few = x[np.sort(rng.choice(n, TRAINED * number, replace=False))]
    index.train(few)
    index.add(x)
    sizes = np.array([index.invlists.list_size(i) for i in range(number)])
    centers = index.quantizer.reconstruct_n(0, number)
    return Lists(centers, sizes, index, x.nbytes + 8 * n + 2 * centers.nbytes)


def _singles(X: np.ndarray, top: float) -> np.ndarray:
    return np.ascontiguousarray(_in_reach(X, top), np.float32)


def _outline(lists: Lists) -> tuple[np.ndarray, np.ndarray]:
    return lists.centers, lists.sizes


def _joined(
    outlines: list[tuple[np.ndarray, np.ndarray]],
    starts: np.ndarray,
    whole: bool,
    top: float,
) -> Centers:
    x, sizes = (np.concatenate(parts) for parts in zip(*outlines, strict=True))
    return Centers(x, sizes, starts, whole, top)


def _homes(
    data: PointBlocks,
    lists: dict[int, "Future"],
    columns: np.ndarray,
    starts: np.ndarray,
    top: float,
) -> np.ndarray:
    """Return the list in which each of some points lies."""
    tasks, homes = data.tasks, np.empty(columns.shape, dtype=np.int64)
    block = np.searchsorted(data.starts, columns, side="right") - 1
    there = {b: np.nonzero(block == b) for b in np.unique(block).tolist()}
    found = []
    for b, at in there.items():
        inside = columns[at] - data.starts[b]
        found.append(tasks(f"homes {b}", _home, data.points[b], lists[b], inside, top))
    for (b, at), home in zip(there.items(), tasks.gather(found), strict=True):
        homes[at] = home + starts[b]
    return homes


def _home(points: Points, lists: Lists, rows: np.ndarray, top: float) -> np.ndarray:
    if lists.index is None:
        return np.zeros(rows.size, dtype=np.int64)
    return _closest(lists.centers, _singles(points.X[rows], top), 1)[:, 0]


def _ranks(centers: Centers, Y: np.ndarray, homes: np.ndarray) -> np.ndarray:
    """Return how many centers are nearer to rows than those of given lists."""
    number = len(centers.x)
    order = _closest(centers.x, _like(Y, centers), number)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(number)[None, :], axis=1)
    if centers.whole:  # any list of a block is as good
        widths = np.diff(centers.starts)
        first = centers.starts[:-1][widths > 0]
        best = np.minimum.reduceat(ranks, first, axis=1)
        ranks = np.repeat(best, widths[widths > 0], axis=1)
    return np.take_along_axis(ranks, homes, axis=1)


def _like(X: np.ndarray, centers: Centers) -> np.ndarray:
    """Return points as the centers are."""
    if centers.whole:
        return _in_reach(X, centers.top)
    return _singles(X, centers.top)


def _closest(centers: np.ndarray, x: np.ndarray, number: int) -> np.ndarray:
    """Return the centers nearest to each point, the nearest first."""
    if centers.dtype == np.float32 and available():
        import faiss

        faiss.omp_set_num_threads(1)
        return faiss.knn(x, centers, number)[1]
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=number, algorithm="brute").fit(centers)
    return search.kneighbors(x, return_distance=False)


def _probed(
    data: PointBlocks,
    asking: dict[int, "Future"],
    lists: dict[int, "Future"],
    centers: "Future",
    starts: np.ndarray,
    probes: int,
    m: int,
) -> dict[int, "Future"]:
    """Look at the lists with the nearest centers.

    Parameters
    ----------
    data : PointBlocks
        The points.
    asking : dict of Future
        Points whose neighbors are looked for.
    lists : dict of Future
        Lists of each block.
    centers : Future
        The centers of all of them.
    starts : array of int
        The first list of each block.
    probes : int
        How many lists.
    m : int
        How many neighbors.

    Returns
    -------
    dict of Future
        Tables of m + 1 points, the point itself being one.
    """
    tasks, found = data.tasks, {}
    named = {
        a: tasks(f"probe {a}", _nearest_lists, of, centers, probes, m)
        for a, of in asking.items()
    }
    counts = [tasks(f"count {a}", _counted, named[a], starts) for a in asking]
    for (a, of), count in zip(asking.items(), tasks.gather(counts), strict=True):
        table, first = tasks(f"blank {a}", _unknown, named[a], m + 1), None
        for b in np.argsort(-count, kind="stable").tolist():
            if not count[b]:
                break
            ends = int(starts[b]), int(starts[b + 1])
            asked = tasks(f"ask {a} {b}", _asked_lists, of, named[a], ends, first)
            start, inside = int(data.starts[b]), (data.points[b], lists[b], centers)
            answer = tasks(f"search {a} {b}", _looked_at, *inside, start, asked, m + 1)
            table = tasks(f"merge {a} {b}", merged_with, table, answer)
            first = first or table  # mostly the own block, whose points are nearest
        found[a] = table
    return found


def _nearest_lists(points: Points, centers: Centers, probes: int, m: int) -> np.ndarray:
    """Return the lists to look at for each row, which hold more than m points."""
    tiles = []
    for at in range(0, len(points.X), ROWS):
        x = _like(points.X[at : at + ROWS], centers)
        number = probes
        named = _closest(centers.x, x, number)
        while centers.sizes[named].sum(axis=1).min() <= m and number < len(centers.x):
            number = min(2 * number, len(centers.x))
            named = _closest(centers.x, x, number)
        tiles.append(named.astype(np.int32))
    wide = max(tile.shape[1] for tile in tiles)
    return np.concatenate(
        [
            np.pad(tile, ((0, 0), (0, wide - tile.shape[1])), constant_values=-1)
            for tile in tiles
        ]
    )


def _counted(named: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return how many lists of each block are looked at, over all rows."""
    ends = np.cumsum(np.bincount(named[named >= 0], minlength=int(starts[-1])))
    return np.diff(np.append(0, ends)[starts])


def _asked_lists(
    points: Points, named: np.ndarray, ends: tuple[int, int], table: NearTable | None
) -> Asked:
    """Return the rows that need lists of one block, and which."""
    inside = (named >= ends[0]) & (named < ends[1])
    counts = inside.sum(axis=1)
    rows = np.flatnonzero(counts)
    inside, counts = inside[rows], counts[rows]
    lists = np.full((rows.size, counts.max(initial=1)), -1, dtype=np.int32)
    lists[np.arange(lists.shape[1]) < counts[:, None]] = named[rows][inside] - ends[0]
    bounds = None if table is None else table.costs[rows, -1]
    Y = points.X if rows.size == len(points.X) else points.X[rows]
    return Asked(rows, Y, lists, bounds)


def _looked_at(
    points: Points, lists: Lists, centers: Centers, start: int, asked: Asked, width: int
) -> Answer:
    """Return the nearest points in some lists of a block."""
    rows, Y, named, bounds = asked
    if lists.index is None or named is None:
        return answer_to(points, start, Asked(rows, Y), width, False)
    import faiss

    faiss.omp_set_num_threads(1)
    old, number = lists.index, len(lists.centers)
    index: Any = faiss.IndexIVFFlat(old.quantizer, Y.shape[1], number)
    index.replace_invlists(old.invlists, False)  # other threads use them, too
    index.nprobe = named.shape[1]
    far, columns = index.search_preassigned(
        _singles(Y, centers.top), width, named, None
    )
    wanted = columns >= 0
    if bounds is not None:
        limit = _in_reach(bounds**0.5 * SLACK + DIGITS * centers.top, centers.top)
        wanted &= far <= limit[:, None] ** 2
        some = np.flatnonzero(wanted.any(axis=1))
        rows, Y, wanted, columns = rows[some], Y[some], wanted[some], columns[some]
    return Answer(rows, known_of(points, start, Y, columns, wanted, width))
