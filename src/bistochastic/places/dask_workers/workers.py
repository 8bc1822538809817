"""The workers of a Dask cluster, as a place."""

import operator
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from bistochastic.core.errors import InputError, InputTypeError, MissingError
from bistochastic.core.parameters import PAIRS
from bistochastic.core.protocols import Made
from bistochastic.neighbors.descent import leaves
from bistochastic.neighbors.exact import moments, norm_of_moments
from bistochastic.neighbors.points import SQUARED, Points
from bistochastic.places.dask_workers import divide, ready_points, search
from bistochastic.places.dask_workers.bridges import BlockLinks, BlockPoints
from bistochastic.places.dask_workers.client import Recorder
from bistochastic.places.dask_workers.inputs import (
    REAL,
    Rows,
    as_declared,
    as_doubles,
    dask_array,
    looked_at,
    stacked,
)
from bistochastic.places.dask_workers.layout import Layout
from bistochastic.places.dask_workers.merging import Pattern, Table
from bistochastic.places.dask_workers.tables import BlockCosts
from bistochastic.places.dask_workers.vectors import BlockArray
from bistochastic.places.parts import Part
from bistochastic.places.torch_device.device import TorchDevice

VECTORS = "bistochastic.vectors"  # where vectors are: "workers" or "caller"
BLOCKS = "bistochastic.blocks"  # "auto", or "chunks" for one block a chunk
FREED = "bistochastic.freed"  # memory that tasks freed: "kept" or "returned"
ROWS = 2_000_000  # of a block, at most, if chunks are as small
SAMPLE = 20_000  # rows that tell what all are like


class DaskWorkers:
    """The workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        The active client.
    device : str, optional
        The device of every worker that tasks may compute on.
    """

    def __init__(self, client: Any, device: str | None = None) -> None:
        self._client: Any = Recorder(client, device)
        self._device = device
        self._caller = dask_setting(VECTORS, "workers", "caller") == "caller"
        self._chunks: tuple[int, ...] = ()
        self._layout: Any = None

    lazy = True
    gathers = False

    @classmethod
    def active(cls, device: Any = None, *, single: bool = False) -> "DaskWorkers":
        """Find the client that is active, or say that there is none."""
        if single:
            raise InputError(
                'precision="single": graphs on a Dask cluster are of doubles. Leave it '
                "out."
            )
        if find_spec("distributed") is None:
            raise MissingError(
                "X is a Dask collection, which needs dask and distributed: "
                "pip install 'bistochastic[dask]'"
            )
        from distributed import default_client

        try:
            client = default_client()
        except ValueError:
            raise InputError(
                "X lies in Dask, but no client is active. Make one, as by `from "
                "distributed import Client; client = Client()`, or pass X.compute()."
            ) from None
        if client.asynchronous:
            raise InputError(
                "The active Dask client is asynchronous; make one with "
                "asynchronous=False."
            )
        made = cls(client, None if device is None else str(device))
        if device is not None:
            _check_device(made._client, str(device))
        return made

    def checked(self, X: Any, check: Callable[[Any], Any], metric: Any) -> Rows:
        """Look at points block by block and keep them there; nothing is fetched."""
        if metric in PAIRS:
            raise InputError(
                f"metric={metric!r} takes a matrix of one machine; X in Dask holds "
                "points. marcus_mapping takes a graph in Dask."
            )
        return self.guarded(lambda: self._loaded_rows(X))

    def rows(self, data: Rows, index: np.ndarray) -> np.ndarray:
        """Return some rows, fetched."""
        layout = data.layout
        ends = np.searchsorted(index, layout.starts)
        some = [
            index[a:b] - start
            for a, b, start in zip(ends[:-1], ends[1:], layout.starts[:-1], strict=True)
        ]
        made = layout.each("rows", operator.getitem, data.blocks, some)
        return np.concatenate(layout.gather(made))

    def sample(self, data: Rows) -> np.ndarray:
        """Return some rows, fetched."""
        return ready_points.sample(self._client, data.blocks, data.layout.sizes, SAMPLE)

    def vectors(self, data: Rows) -> Any:
        """Return the data as a block of columns, where vectors are."""
        made = BlockArray.held(data.layout, data.blocks, (data.d,))
        return data.layout.out(made)

    def of_vectors(self, V: Any) -> Rows:
        """Return a block of columns as data."""
        held = self._layout.divided(V)
        return Rows(self._layout, held.blocks(), V.shape[1])

    def all_pairs(self, points: BlockPoints, loops: bool) -> BlockCosts:
        """Return the squared distances of all pairs, as a table."""
        return self.candidates(points, points.layout.n - 1, loops, "exact", None)[0]

    def norm_of_costs(self, points: BlockPoints) -> float:
        """Return the Frobenius norm of the squared distances, by sums of blocks."""
        layout = points.layout
        seen = layout.gather(layout.each("norm", _size_of, points.blocks))
        mean = sum(total for total, _ in seen) / layout.n
        top = max(float(np.abs(ends - mean).max()) for _, ends in seen if len(ends))
        parts = layout.gather(
            layout.each("norm", _moments, points.blocks, mean, top or 1.0)
        )
        sums = tuple(sum(part) for part in zip(*parts, strict=True))
        return norm_of_moments(layout.n, top, sums)

    def costs(self, costs: Any) -> BlockCosts:
        """Send costs that the caller has to the workers."""
        if isinstance(costs, BlockCosts):
            return costs
        parts = costs.table(costs.n).parts
        width = max(part.columns.shape[1] for part in parts)
        columns = np.repeat(np.arange(costs.n)[:, None], width, axis=1)
        values = np.full(columns.shape, np.inf)
        for part in parts:
            columns[part.rows, : part.columns.shape[1]] = part.columns
            values[part.rows, : part.columns.shape[1]] = part.values
        return BlockCosts.of(self._layout, columns, values)

    def graph(self, S: Any) -> Any:
        """Return the graph as it is: X holds points."""
        return S

    def _loaded_rows(self, X: Any) -> Rows:
        """Check points and start to load them."""
        X = dask_array(X)
        if X.ndim != 2 or X.shape[1] == 0:
            raise InputError(
                f"X has shape {X.shape}; a row for each point and a column for each "
                "feature are needed, and at least one of both."
            )
        if X.dtype.kind not in REAL:
            raise InputTypeError(
                f"X has element type {X.dtype}; real numbers are needed. Convert it "
                "first, as in X.astype(float)."
            )
        X = as_declared(X, "X", np.ndarray)
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        given, layout = self.loaded(X)
        blocks = layout.each("points", as_doubles, given)
        seen = layout.gather(layout.each("points", looked_at, blocks))
        sizes = [size for size, _ in seen]
        layout = self.layout(sizes)
        self._chunks = tuple(sizes)
        if layout.n == 0:
            raise InputError("X has no rows; at least one point is needed.")
        for start, (_, bad) in zip(layout.starts, seen, strict=False):
            if bad is not None:
                i, j, value = bad
                raise InputError(
                    f"X[{start + i}, {j}] is {value}: Input X contains NaN or "
                    "infinity. Impute it, or leave such rows out."
                )
        made = self._joined(Rows(layout, blocks, X.shape[1]))
        self._layout = made.layout
        return made

    def _joined(self, X: Rows) -> Rows:
        """Join chunks side by side to as many blocks as there are threads, or more.

        What blocks say to one another takes longer than what they do, if they are
        small.
        """
        sizes = X.layout.sizes
        wanted = dask_setting(BLOCKS, "auto", "chunks")
        if wanted == "chunks":
            return X
        threads = sum(self._client.nthreads().values())
        number = max(threads, -(-X.layout.n // ROWS))
        if sum(size > 0 for size in sizes) <= number:
            return X
        middle = X.layout.starts[:-1] + np.array(sizes) / 2
        group = np.minimum(middle * number // X.layout.n, number - 1).astype(int)
        group = np.unique(group, return_inverse=True)[1]
        layout = self.layout(np.bincount(group, sizes).astype(int))
        blocks = [
            layout.submit("joined", k, stacked,
                          *(X.blocks[at] for at in np.flatnonzero(group == k)))
            for k in range(len(layout))
        ]  # fmt: skip
        return Rows(layout, blocks, X.d)

    def loaded(self, X: Any) -> tuple[list[Any], Layout]:
        """Start to load the chunks of a Dask array that has one in a row."""
        layout = self.layout([0] * X.numblocks[0])
        given = self._client.compute([row.ravel()[0] for row in X.to_delayed()])
        self._client.wait(given)  # the scheduler takes a graph later than a task
        return given, layout

    def layout(self, sizes: Any) -> Layout:
        """Return blocks of so many rows."""
        return Layout(self._client, sizes, caller=self._caller)

    def ordered(self, X: Rows, metric: Any) -> tuple[Rows, Any]:
        """Move points so that neighbors mostly lie in the same block."""
        if metric not in SQUARED:
            return X, None
        blocks, numbers, sizes = divide.divided(
            self._client, X.blocks, X.layout.sizes, self._parts(X)
        )
        self._layout = layout = self.layout(sizes)
        both = layout.each("ordered", _inside, blocks, numbers)
        blocks = layout.each("ordered", operator.getitem, both, 0)
        numbers = layout.each("ordered", operator.getitem, both, 1)
        return Rows(layout, blocks, X.d), np.concatenate(layout.gather(numbers))

    def _parts(self, X: Rows) -> int:
        return max(1, sum(size > 0 for size in X.layout.sizes))

    def points(self, X: Rows, metric: Any) -> BlockPoints:
        """Make points ready for distances."""
        layout = X.layout
        made = ready_points.centered(self._client, X.blocks, layout.sizes, metric)
        return BlockPoints(layout, made)

    def candidates(
        self, points: BlockPoints, m: int, loops: bool, how: Any, n_jobs: int | None
    ) -> tuple[BlockCosts, float]:
        """Find the m nearest other points of every point, or most of them."""
        layout = points.layout
        dear = 0.0
        if self._device is not None:  # they compare faster than others make lists
            from bistochastic.places.torch_device.search import DEAR

            dear = DEAR * len(self._client.nthreads())
        found, recall = search.neighbors(
            self._client, points.blocks, layout.sizes, m, how, dear
        )
        starts = [int(start) for start in layout.starts[:-1]]
        tables = layout.each("tables", _table, found, starts, loops)
        return BlockCosts(layout, tables, Pattern(layout, tables)), recall

    def links(self, costs: Any, points: Any) -> BlockLinks:
        """Return what finds the cheapest pairs."""
        return BlockLinks.of(costs, points)

    def guarded(self, made: Callable[[], Made]) -> Made:
        """Return what a function makes; if it is broken off, free the workers."""
        from bistochastic.places.dask_workers.worker_memory import keeping

        try:
            freed = dask_setting(FREED, "kept", "returned") == "kept"
            with keeping(self._client, freed=freed):
                return made()
        except BaseException:
            self._client.free()
            raise

    def labels(self, values: np.ndarray) -> Any:
        """Return labels as a Dask array in the chunks of X."""
        import dask.array as da

        return da.from_array(values, chunks=(self._chunks,))


def _check_device(client: Any, name: str) -> None:
    """Raise if a worker cannot compute on a device."""
    TorchDevice.named("cpu")  # the caller needs torch, too
    for worker, why in client.run(_unfit, name, on_error="return").items():
        if isinstance(why, OSError):  # the worker is gone, and asked for nothing more
            continue
        if isinstance(why, Exception):
            raise why
        if why is not None:
            raise InputError(
                f"The Dask worker {worker} cannot compute on this device. {why}"
            )


def _unfit(name: str) -> str | None:
    """Return why a worker cannot compute on a device; None if it can."""
    try:
        TorchDevice.named(name)
    except InputError as error:
        return str(error)
    return None


def dask_setting(name: str, *allowed: str) -> str:
    """Return what a setting of Dask is; by default the first that is allowed."""
    import dask

    value = dask.config.get(name, allowed[0])
    if value not in allowed:
        raise InputError(
            f"The Dask setting {name} is {value!r}; it must be "
            f"{' or '.join(map(repr, allowed))}."
        )
    return str(value)


def _inside(block: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put neighbors close by one another, so that loops over edges find them soon."""
    order = leaves(block) if len(block) else np.empty(0, int)
    return block[order], numbers[order]


def _size_of(points: Points) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of the rows, and the smallest and the largest of each column."""
    X = points.X
    ends = np.stack([X.min(axis=0), X.max(axis=0)]) if len(X) else X
    return X.sum(axis=0), ends


def _moments(points: Points, mean: np.ndarray, top: float) -> Any:
    return moments(points.X, mean, top)


def _table(found: Any, first: int, loops: bool) -> Table:
    columns, costs = found
    rows = np.arange(len(columns))
    if loops:
        columns = np.concatenate([rows[:, None] + first, columns], axis=1)
        costs = np.concatenate([np.zeros((len(rows), 1)), costs], axis=1)
    return Table.of([Part(rows, columns, costs)], first, len(rows))
