"""Nearest neighbors of points that lie in blocks of rows on the workers of Dask.

A task about the rows of one block asks another block: the rows that need it, and only
those, go to where that block lies, and what is found comes back and is merged. All of
it is tasks, so that what is lost with a worker is computed again. An exact search asks
the blocks whose box is not farther from a row than what the row has found. An
approximate one puts the points of each block into lists around centers; a row asks the
blocks that hold the lists with the nearest centers, as many lists as the exact
neighbors of a sample ask for.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np

from bistochastic.core.errors import InputError
from bistochastic.core.quiet import Quiet
from bistochastic.neighbors.choose import (
    DEAR,
    DIGITS,
    LOWER,
    MANY,
    RECALL,
    SAME,
    SAMPLED,
    _in_reach,
)
from bistochastic.neighbors.exact import (
    AFFORDED,
    FLAT,
    LOST,
    _between,
    _in_range,
    _one_by_one,
    _sizes,
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
    SMALL,
    SQUARED,
    Points,
    _check_distance,
    _unit_rows,
    by_columns,
)
from bistochastic.places.dask_workers.blocks import on_device

if TYPE_CHECKING:
    from distributed import Client, Future

GATHERED = 20_000  # rows that are looked at in one place, at most
SLACK = 1 + 1e-9  # of a cost, for rounding
FEWER = 64  # lists of a block that is searched as a whole, at most
FARTHER = 1.3  # times as many lists, if too few neighbors were found
TURNS = 10  # of power iterations for the widest direction
ROWS = 1 << 14  # rows compared with all centers in one go


class Held(Points):
    """Points that tell Dask how large they are."""

    def __sizeof__(self) -> int:
        """Return bytes."""
        return int(self.X.nbytes) + 64


class Table(NamedTuple):
    """The nearest points known so far.

    Attributes
    ----------
    columns : array of int64 of shape (rows, width)
        Their numbers, the nearest first, ties by number; -1 where none is known.
    costs : array of shape (rows, width)
        Their squared distances; infinite where none is known.
    """

    columns: np.ndarray
    costs: np.ndarray


class Asked(NamedTuple):
    """Rows of a block that ask another block.

    Attributes
    ----------
    rows : array of int
        Their numbers within their block.
    Y : array of shape (rows, d)
        Their coordinates.
    lists : array of int of shape (rows, probes), optional
        The lists to look at, within the other block; -1 is none.
    bounds : array of shape (rows,), optional
        Costs beyond which nothing is wanted.
    """

    rows: np.ndarray
    Y: np.ndarray
    lists: np.ndarray | None = None
    bounds: np.ndarray | None = None


class Answer(NamedTuple):
    """What a block found for some rows of another.

    Attributes
    ----------
    rows : array of int
        Their numbers within their block.
    table : Table
        What was found.
    """

    rows: np.ndarray
    table: Table


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


@dataclass(frozen=True)
class Tasks:
    """Submits tasks under names that the dashboard groups.

    Parameters
    ----------
    client : distributed.Client
        Where to.
    """

    client: "Client"

    def __call__(
        self, name: str, function: Callable[..., Any], *arguments: Any
    ) -> "Future":
        """Submit one task.

        Parameters
        ----------
        name : str
            What it does, and perhaps for which blocks, as in "merge 1 2".
        function : callable
            What to call.
        *arguments : object
            What with; futures stand for their results.

        Returns
        -------
        Future
            Of the result.
        """
        verb, *blocks = name.split()
        key = "-".join(["bistochastic", verb, uuid4().hex, *blocks])
        return self.client.submit(Quiet(function), *arguments, key=key, pure=False)

    def gather(self, futures: Sequence["Future"]) -> list[Any]:
        """Return small results."""
        return list(self.client.gather(list(futures)))


@dataclass(frozen=True, eq=False)
class Blocks:
    """Points in blocks.

    Attributes
    ----------
    tasks : Tasks
        Submits tasks.
    points : list of Future
        Points of each block.
    sizes : array of int
        How many rows each block has.
    starts : array of int
        The number of the first row of each block.
    metric : str or callable
        The metric.
    d : int
        Columns.
    """

    tasks: Tasks
    points: list["Future"]
    sizes: np.ndarray
    starts: np.ndarray
    metric: Any
    d: int

    @property
    def n(self) -> int:
        """How many points there are."""
        return int(self.sizes.sum())

    @property
    def full(self) -> list[int]:
        """The blocks that have rows."""
        return [int(b) for b in np.flatnonzero(self.sizes)]


def sample(
    client: "Client",
    blocks: Sequence["Future"],
    sizes: Sequence[int] | np.ndarray,
    number: int,
    seed: int = 0,
) -> np.ndarray:
    """Return some rows, chosen at random.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    blocks : list of Future
        Arrays, the blocks of rows of X.
    sizes : list of int
        How many rows each has.
    number : int
        How many rows; all if there are no more.
    seed : int, default=0
        Of the choice.

    Returns
    -------
    array of shape (number, d)
        The rows in the order of X.
    """
    tasks = Tasks(client)
    return np.concatenate(tasks.gather(_sampled(tasks, blocks, sizes, number, seed)))


def _sampled(
    tasks: Tasks,
    blocks: Sequence["Future"],
    sizes: Sequence[int] | np.ndarray,
    number: int,
    seed: int,
) -> list["Future"]:
    """Return a sample, a future for each block that has a row in it."""
    n = int(np.sum(sizes))
    if n <= number:
        found = [block for block, size in zip(blocks, sizes, strict=True) if size]
        return found or list(blocks[:1])
    rows = np.random.default_rng(seed).choice(n, number, replace=False, shuffle=False)
    return _picked_rows(tasks, blocks, sizes, np.sort(rows))


def _picked_rows(
    tasks: Tasks,
    blocks: Sequence["Future"],
    sizes: Sequence[int] | np.ndarray,
    rows: np.ndarray,
) -> list["Future"]:
    """Return rows of ascending numbers, a future for each block that has any."""
    starts = _starts(sizes)
    ends = np.searchsorted(rows, [*starts, int(np.sum(sizes))])
    return [
        tasks(f"sample {b}", _rows, blocks[b], rows[ends[b] : ends[b + 1]] - starts[b])
        for b in range(len(blocks))
        if ends[b] < ends[b + 1]
    ]


def _rows(block: Any, rows: np.ndarray) -> np.ndarray:
    return (block.X if isinstance(block, Points) else block)[rows]


def _starts(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the number of the first row of each block."""
    sizes = np.asarray(sizes, dtype=np.int64)
    return np.cumsum(sizes) - sizes


def centered(
    client: "Client",
    blocks: Sequence["Future"],
    sizes: Sequence[int] | np.ndarray,
    metric: Any,
) -> list["Future"]:
    """Make the points ready for distances, as ``Points.of`` does, with one center.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    blocks : list of Future
        Arrays, the blocks of rows of X.
    sizes : list of int
        How many rows each has.
    metric : str or callable
        The metric.

    Returns
    -------
    list of Future
        Points of each block. The center is the median of 20,000 rows.
    """
    tasks, sizes = Tasks(client), np.asarray(sizes, dtype=np.int64)
    n, starts, center = int(sizes.sum()), _starts(sizes), None
    if metric == "cosine":
        zero = tasks.gather(
            [tasks(f"zeros {b}", _zero_rows, x) for b, x in enumerate(blocks)]
        )
        found = np.concatenate(
            [start + rows for start, rows in zip(starts, zero, strict=True)]
        )
        if found.size:
            ones = np.ones((int(found[-1]) + 1, 1))
            ones[found] = 0.0
            _unit_rows(ones)  # refuses them by their numbers
    elif callable(metric):
        rows = np.unique([0, n // 2, n - 1])
        three = tasks.gather(_picked_rows(tasks, blocks, sizes, rows))
        _check_distance(_Some(rows, np.concatenate(three), n), metric)
    elif metric in SQUARED:
        some = sample(client, blocks, sizes, GATHERED)
        middle = some.shape[0] // 2
        center = np.concatenate(
            [np.partition(some[:, s], middle, axis=0)[middle] for s in by_columns(some)]
        )
        del some
    points = [
        tasks(f"center {b}", _made_ready, block, metric, center)
        for b, block in enumerate(blocks)
    ]
    if center is not None:
        tops = [tasks(f"largest {b}", _largest, x) for b, x in enumerate(points)]
        top = max(tasks.gather(tops))
        if 0 < top < SMALL:
            Points.of(np.array([[0.0], [top]]), metric)  # refuses them
    return points


class _Some:
    """Some rows of an array, under their numbers there."""

    def __init__(self, rows: np.ndarray, X: np.ndarray, n: int) -> None:
        self.rows, self.X, self.shape = rows, X, (n, X.shape[1])

    def __getitem__(self, row: int) -> np.ndarray:
        return self.X[np.searchsorted(self.rows, row)]


def _zero_rows(block: np.ndarray) -> np.ndarray:
    return np.flatnonzero(~block.any(axis=1))


def _made_ready(block: np.ndarray, metric: Any, center: np.ndarray | None) -> Points:
    if center is not None:
        return Held(block - center, metric, center)
    if callable(metric) or not len(block):
        return Held(block, metric, 0.0)
    made = Points.of(block, metric)
    return Held(made.X, metric, made.center)


def _largest(points: Points) -> float:
    return float(np.abs(points.X).max(initial=0.0))


def neighbors(
    client: "Client",
    points: Sequence["Future"],
    sizes: Sequence[int] | np.ndarray,
    m: int,
    how: Any = "auto",
    dear: float = 0.0,
) -> tuple[list["Future"], float]:
    """Find the m nearest other points of every point, or most of them.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    points : list of Future
        Points of each block, made by ``centered``; more than m of them.
    sizes : list of int
        How many rows each block has.
    m : int
        How many.
    how : {"auto", "exact"} or float, default="auto"
        A number is the wanted recall of an approximate search. "auto": as
        ``search.neighbors_of`` does it.
    dear : float, default=0.0
        The n^2 d up to which "auto" is exact, however many points there are.

    Returns
    -------
    list of Future
        For each block the numbers of the neighbors in all of X, the nearest first, ties
        by number, int64, and their squared distances; both of shape (rows, m).
    float
        Which share of the true neighbors these are, on a sample; 1 if exact.
    """
    tasks, sizes = Tasks(client), np.asarray(sizes, dtype=np.int64)
    first = int(np.flatnonzero(sizes)[0])
    metric, d = tasks.gather([tasks("kind", _kind, points[first])])[0]
    data = Blocks(tasks, list(points), sizes, _starts(sizes), metric, d)
    squared = metric in SQUARED
    if isinstance(how, str):
        many = how == "auto" and squared and d > FLAT and data.n >= MANY
        many = many and float(data.n) ** 2 * d > dear
        quick = data.n <= DEAR and available()
        wanted = 1.0 if not many else RECALL if quick else LOWER
    else:
        wanted = float(how)
        if not squared:
            raise InputError(
                f"neighbors={how}: an approximate search needs dense points and a "
                'metric by coordinates; use neighbors="exact".'
            )
    if wanted == 1.0:
        tables, recall = _exact(data, m, squared), 1.0
    else:
        tables, recall = _approximate(data, m, wanted)
    found = [
        tasks(f"neighbors {a}", _finished, tables[a], int(data.starts[a]), m)
        if a in tables
        else tasks(f"neighbors {a}", _nothing, m)
        for a in range(len(points))
    ]
    return found, recall


def _kind(points: Points) -> tuple[Any, int]:
    return points.metric, points.X.shape[1]


def _nothing(m: int) -> Table:
    return Table(np.empty((0, m), dtype=np.int64), np.empty((0, m)))


def _finished(table: Table, start: int, m: int) -> Table:
    """Leave out the point itself; where it was not found, the last."""
    rows = len(table.columns)
    columns, costs = table.columns[:, : m + 1], table.costs[:, : m + 1]
    own = columns == np.arange(start, start + rows)[:, None]
    own[~own.any(axis=1), -1] = True
    return Table(columns[~own].reshape(rows, m), costs[~own].reshape(rows, m))


# Exact


def _exact(data: Blocks, m: int, squared: bool) -> dict[int, "Future"]:
    """Find the nearest points, the point itself being one: a table of each block."""
    tasks, points = data.tasks, data.points
    width = min(m + 2, data.n)  # one more, to see whether the last is tied
    boxes = None
    if squared:
        sides = [tasks(f"box {b}", _box, points[b]) for b in range(len(points))]
        boxes = tasks("boxes", np.stack, sides)
    tables = {
        a: tasks(f"own {a}", _own, points[a], int(data.starts[a]), width)
        for a in data.full
    }
    asking = {a: points[a] for a in data.full}
    tables = _asked_around(data, asking, tables, boxes, width, slow=False)
    doubts = {a: tasks(f"check {a}", _doubts, points[a], tables[a], m) for a in tables}
    counts = dict(zip(doubts, tasks.gather(list(doubts.values())), strict=True))
    ties = sum(tied for tied, _ in counts.values()) * data.n <= AFFORDED
    again = [a for a, (tied, lost) in counts.items() if lost or (tied and ties)]
    if again:  # as one search does it: other sums, which round otherwise
        rows = {
            a: tasks(f"again {a}", _doubtful, points[a], tables[a], m, ties)
            for a in again
        }
        some = {a: tasks(f"rows {a}", _at, points[a], rows[a]) for a in again}
        known = {a: tasks(f"known {a}", _part, tables[a], rows[a]) for a in again}
        known = _asked_around(data, some, known, boxes, width, slow=True)
        for a in again:
            tables[a] = tasks(f"replace {a}", _replaced, tables[a], rows[a], known[a])
    return tables


def _asked_around(
    data: Blocks,
    asking: dict[int, "Future"],
    tables: dict[int, "Future"],
    boxes: "Future | None",
    width: int,
    slow: bool,
) -> dict[int, "Future"]:
    """Ask all blocks within reach, one after the other.

    Parameters
    ----------
    data : Blocks
        The points.
    asking : dict of Future
        Points of some blocks, all or some of their rows.
    tables : dict of Future
        What is known of their neighbors.
    boxes : Future, optional
        The box of each block; None: all are within reach.
    width : int
        How many neighbors.
    slow : bool
        Whether to look at pairs one by one, and to forget what is known.

    Returns
    -------
    dict of Future
        Tables.
    """
    tasks, found = data.tasks, {}
    reached = [
        tasks(f"reach {a}", _reached, asking[a], tables[a], boxes, len(data.sizes))
        for a in asking
    ]
    for a, counts in zip(asking, tasks.gather(reached), strict=True):
        table = tasks(f"blank {a}", _blank, tables[a]) if slow else tables[a]
        for b in np.argsort(-counts, kind="stable").tolist():
            if not counts[b] or not data.sizes[b] or (b == a and not slow):
                continue
            known = tables[a] if slow else table
            asked = tasks(f"ask {a} {b}", _asked, asking[a], known, boxes, b)
            start, of = int(data.starts[b]), data.points[b]
            answer = tasks(f"search {a} {b}", _answer, of, start, asked, width, slow)
            table = tasks(f"merge {a} {b}", _merged, table, answer)
        found[a] = table
    return found


def _box(points: Points) -> np.ndarray:
    """Return the smallest and the largest coordinates."""
    low = points.X.min(axis=0, initial=np.inf)
    return np.stack([low, points.X.max(axis=0, initial=-np.inf)]).astype(np.float64)


def _own(points: Points, start: int, width: int) -> Table:
    """Return what a block finds in itself."""
    asked = Asked(np.arange(points.X.shape[0]), points.X)
    return _padded(_answer(points, start, asked, width, False).table, width)


def _padded(table: Table, width: int) -> Table:
    """Return a table of a given width."""
    more = ((0, 0), (0, width - table.columns.shape[1]))
    return Table(
        np.pad(table.columns, more, constant_values=-1),
        np.pad(table.costs, more, constant_values=np.inf),
    )


def _blank(table: Table) -> Table:
    return Table(np.full_like(table.columns, -1), np.full_like(table.costs, np.inf))


def _answer(points: Points, start: int, asked: Asked, width: int, slow: bool) -> Answer:
    """Return the points of a block that are nearest to rows of another."""
    X, Y = points.X, asked.Y
    width = min(width, X.shape[0])
    if not len(Y):
        return Answer(asked.rows, _nothing(width))
    if slow:
        columns, costs = _one_by_one(points, Y, width)
        return Answer(
            asked.rows,
            Table(columns.astype(np.int64) + start, _in_range(costs, points)),
        )
    if points.metric in SQUARED and (there := on_device()) is not None:
        columns = there.nearest(points, Y, width)
        return Answer(
            asked.rows, _known(points, start, Y, columns, columns >= 0, width)
        )
    columns, costs = nearest_to(points, Y, width, n_jobs=1)
    if points.metric in SQUARED:  # some were summed up in another order
        costs = _measured(Y, X, columns)
    return Answer(asked.rows, _ordered(columns.astype(np.int64) + start, costs, width))


def _measured(Y: np.ndarray, X: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return squared distances, by differences in doubles."""
    rows = np.repeat(np.arange(len(Y)), columns.shape[1])
    return _between(Y, rows, X, columns.ravel()).reshape(columns.shape)


def _ordered(columns: np.ndarray, costs: np.ndarray, width: int) -> Table:
    """Return the nearest, the nearest first, ties by number."""
    order = np.lexsort((columns, costs), axis=1)[:, :width]
    return Table(
        np.take_along_axis(columns, order, axis=1),
        np.take_along_axis(costs, order, axis=1),
    )


def _merged(table: Table, answer: Answer) -> Table:
    """Return the nearest of what is known and what was found."""
    rows, more = answer
    if not rows.size:
        return table
    best = _ordered(
        np.concatenate([table.columns[rows], more.columns], axis=1),
        np.concatenate([table.costs[rows], more.costs], axis=1),
        table.columns.shape[1],
    )
    return _replaced(table, rows, best)


def _replaced(table: Table, rows: np.ndarray, better: Table) -> Table:
    columns, costs = table.columns.copy(), table.costs.copy()
    columns[rows], costs[rows] = better
    return Table(columns, costs)


def _reached(
    points: Points, table: Table, boxes: np.ndarray | None, blocks: int
) -> np.ndarray:
    """Return how many rows each block is within reach of."""
    return np.array([_near(points, table, boxes, b).size for b in range(blocks)])


def _asked(points: Points, table: Table, boxes: np.ndarray | None, block: int) -> Asked:
    """Return the rows that a block is within reach of."""
    rows = _near(points, table, boxes, block)
    return Asked(rows, points.X[rows])


def _near(
    points: Points, table: Table, boxes: np.ndarray | None, block: int
) -> np.ndarray:
    if boxes is None:
        return np.arange(points.X.shape[0])
    low, high = boxes[block]
    with np.errstate(over="ignore"):  # farther than all others
        gap = np.maximum(np.maximum(low - points.X, points.X - high), 0.0)
        return np.flatnonzero(
            np.einsum("ij,ij->i", gap, gap) <= SLACK * table.costs[:, -1]
        )


def _doubts(points: Points, table: Table, m: int) -> tuple[int, int]:
    """Return how many rows one search would do again: tied ones, others."""
    tied, lost = _doubted(points, table, m)
    return int(np.count_nonzero(tied)), int(np.count_nonzero(lost))


def _doubtful(points: Points, table: Table, m: int, ties: bool) -> np.ndarray:
    """Return the rows that one search would do again."""
    tied, lost = _doubted(points, table, m)
    return np.flatnonzero(tied | lost if ties else lost)


def _doubted(points: Points, table: Table, m: int) -> tuple[np.ndarray, np.ndarray]:
    last = table.costs[:, -1]
    tied = lost = np.zeros(len(last), dtype=bool)
    if table.costs.shape[1] > m + 1:
        tied = last == table.costs[:, m]
    if points.metric in SQUARED:
        lost = (last > 0) & (last < LOST * _sizes(points.X))
    return tied, lost


def _at(points: Points, rows: np.ndarray) -> Points:
    return points.at(rows)


def _part(table: Table, rows: np.ndarray) -> Table:
    return Table(table.columns[rows], table.costs[rows])


# Approximate


def _approximate(
    data: Blocks, m: int, wanted: float
) -> tuple[dict[int, "Future"], float]:
    """Find most of the nearest points: a table of each block, and the recall."""
    tasks, points, full = data.tasks, data.points, data.full
    top = max(tasks.gather([tasks(f"largest {b}", _largest, points[b]) for b in full]))
    rng = np.random.default_rng(SEED)
    rows = np.sort(rng.choice(data.n, min(data.n, SAMPLED), replace=False))
    some = tasks("stack", _stacked, _picked_rows(tasks, points, data.sizes, rows))
    table = tasks("blank", _unknown, some, m + 1)
    for b in full:
        answer = tasks(
            f"brute {b}", _brute, points[b], int(data.starts[b]), some, m + 1
        )
        table = tasks(f"merge {b}", _merged, table, answer)
    asked = tasks("asking", _held, some, points[full[0]])
    Y, (true, costs) = tasks.gather([some, table])
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


def _stacked(rows: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(rows)


def _held(Y: np.ndarray, points: Points) -> Points:
    return Held(Y, points.metric, points.center)


def _unknown(Y: np.ndarray, width: int) -> Table:
    shape = len(Y), width
    return Table(np.full(shape, -1, dtype=np.int64), np.full(shape, np.inf))


def _brute(points: Points, start: int, Y: np.ndarray, width: int) -> Answer:
    """Compare some rows with all points of a block."""
    width = min(width, points.X.shape[0])
    columns, costs = nearest_to(points, Y, width, n_jobs=1, brute=True)
    return Answer(np.arange(len(Y)), Table(columns.astype(np.int64) + start, costs))


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
    data: Blocks,
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
    data: Blocks,
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
    data : Blocks
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
            table = tasks(f"merge {a} {b}", _merged, table, answer)
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
    points: Points, named: np.ndarray, ends: tuple[int, int], table: Table | None
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
        return _answer(points, start, Asked(rows, Y), width, False)
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
    return Answer(rows, _known(points, start, Y, columns, wanted, width))


def _known(
    points: Points,
    start: int,
    Y: np.ndarray,
    columns: np.ndarray,
    wanted: np.ndarray,
    width: int,
) -> Table:
    """Return a table of those points of a block that are wanted."""
    costs = np.full(columns.shape, np.inf)
    costs[wanted] = _between(Y, np.nonzero(wanted)[0], points.X, columns[wanted])
    return _ordered(np.where(wanted, columns + start, -1), costs, width)


# Redistribution


class Cut(NamedTuple):
    """A cut across the widest direction of points.

    Attributes
    ----------
    direction : array of shape (d,)
        The direction.
    at : float
        Points up to here lie on the left.
    left, right : Cut, optional
        Further cuts.
    parts : int
        How many parts lie on the left.
    """

    direction: np.ndarray
    at: float
    left: "Cut | None"
    right: "Cut | None"
    parts: int


def divided(
    client: "Client",
    blocks: Sequence["Future"],
    sizes: Sequence[int] | np.ndarray,
    parts: int,
) -> tuple[list["Future"], list["Future"], np.ndarray]:
    """Divide the rows into compact parts of similar size.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    blocks : list of Future
        Arrays, the blocks of rows of X.
    sizes : list of int
        How many rows each has.
    parts : int
        How many new blocks.

    Returns
    -------
    list of Future
        Arrays, the new blocks.
    list of Future
        The numbers that their rows had, int64, in ascending order.
    array of int64
        How many rows each has; perhaps none, where points are all the same.
    """
    tasks, starts = Tasks(client), _starts(sizes)
    some = _sampled(tasks, blocks, sizes, GATHERED, SEED)
    tree = tasks("tree", _planted, some, parts)
    leaves = [tasks(f"leaf {b}", _routed, x, tree) for b, x in enumerate(blocks)]
    counts = np.array(
        tasks.gather(
            [
                tasks(f"count {b}", np.bincount, x, None, parts)
                for b, x in enumerate(leaves)
            ]
        )
    )
    rows, numbers = [], []
    for part in range(parts):
        pieces = [
            tasks(
                f"piece {b} {part}", _piece, blocks[b], leaves[b], part, int(starts[b])
            )
            for b in np.flatnonzero(counts[:, part]).tolist() or [0]
        ]
        both = tasks(f"assemble {part}", _assembled, pieces)
        rows.append(tasks(f"rows {part}", _item, both, 0))
        numbers.append(tasks(f"numbers {part}", _item, both, 1))
    return rows, numbers, counts.sum(axis=0)


def _planted(rows: list[np.ndarray], parts: int) -> tuple[Cut | None, float]:
    """Return cuts, and the number to divide rows by before."""
    x = np.concatenate(rows).astype(np.float64)
    top = float(np.abs(x).max(initial=0.0)) or 1.0
    return _grown(x / top, parts), top


def _grown(x: np.ndarray, parts: int) -> Cut | None:
    if parts == 1:
        return None
    direction, at = np.zeros(x.shape[1]), 0.0
    low = high = x
    if len(x) > 1:
        direction = _widest(x)
        along = x @ direction
        order = np.argsort(along, kind="stable")
        number = min(max(1, round(len(x) * (parts // 2) / parts)), len(x) - 1)
        at = float(along[order[number - 1]] / 2 + along[order[number]] / 2)
        low, high = x[order[:number]], x[order[number:]]
    less = parts // 2
    return Cut(direction, at, _grown(low, less), _grown(high, parts - less), less)


def _widest(x: np.ndarray) -> np.ndarray:
    """Return the direction in which points vary most, about.

    Of few columns it is that of a column, so that boxes around parts overlap little.
    """
    x = x - x.mean(axis=0)
    if x.shape[1] <= FLAT:
        return np.eye(x.shape[1])[np.argmax(np.einsum("ij,ij->j", x, x))]
    direction: np.ndarray = np.random.default_rng(SEED).standard_normal((x.shape[1],))
    for _ in range(TURNS):
        direction = (x @ direction) @ x
        direction = direction / (float(np.linalg.norm(direction)) or 1.0)
    return direction


def _routed(block: np.ndarray, tree: tuple[Cut | None, float]) -> np.ndarray:
    """Return the part in which each row lies."""
    cuts, top = tree
    leaves = np.zeros(len(block), dtype=np.int32)
    _route(block / top, np.arange(len(block)), cuts, 0, leaves)
    return leaves


def _route(
    x: np.ndarray, rows: np.ndarray, cut: Cut | None, first: int, leaves: np.ndarray
) -> None:
    if cut is None:
        leaves[rows] = first
        return
    left = x[rows] @ cut.direction <= cut.at
    _route(x, rows[left], cut.left, first, leaves)
    _route(x, rows[~left], cut.right, first + cut.parts, leaves)


def _piece(
    block: np.ndarray, leaves: np.ndarray, part: int, start: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a block that lie in a part, and their numbers."""
    rows = np.flatnonzero(leaves == part)
    return block[rows], rows + start


def _assembled(
    pieces: list[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    rows, numbers = zip(*pieces, strict=True)
    return np.concatenate(rows), np.concatenate(numbers)


def _item(both: tuple[np.ndarray, np.ndarray], which: int) -> np.ndarray:
    return both[which]
