"""Which rows lie in which block: the only one that submits tasks about rows."""

import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from bistochastic.core.errors import InputError
from bistochastic.core.quiet import Quiet


class Layout:
    """Which rows lie in which block, and the client that runs tasks on them.

    Parameters
    ----------
    client : distributed.Client
        Runs the tasks.
    sizes : sequence of int
        Rows of each block; some may be 0.
    caller : bool, default=False
        Whether vectors are with the caller, in NumPy arrays, between two products.
    """

    def __init__(
        self, client: Any, sizes: Sequence[int], *, caller: bool = False
    ) -> None:
        self.client = client
        self.sizes = tuple(int(size) for size in sizes)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self.n = int(self.starts[-1])
        self.caller = caller
        self.waiting: weakref.WeakSet[Any] = weakref.WeakSet()
        self._name, self._number = uuid.uuid4().hex[:8], count()
        workers = sorted(client.nthreads())
        number = len(self.sizes)
        if not workers:
            raise InputError(
                "The Dask cluster has no workers, so that nothing would ever be done. "
                "Start some, as by client.cluster.scale(2)."
            )
        self._homes = [workers[k * len(workers) // number] for k in range(number)]

    def __len__(self) -> int:
        return len(self.sizes)

    def slices(self) -> Iterator[slice]:
        """Yield the rows of each block."""
        for a, b in zip(self.starts[:-1], self.starts[1:], strict=True):
            yield slice(int(a), int(b))

    def submit(
        self, name: str, home: int, task: Callable[..., Any], *given: Any
    ) -> Any:
        """Start a task; it is called so on the dashboard.

        It runs where the block `home` is at home, or elsewhere if that worker is gone.
        """
        return self.client.submit(
            Quiet(task),
            *given,
            key=f"bistochastic-{name}-{self._name}-{next(self._number)}",
            workers=[self._homes[home]],
            allow_other_workers=True,
            pure=False,
        )

    def each(self, name: str, task: Callable[..., Any], *given: Any) -> list[Any]:
        """Start a task for each block; lists have an entry for each."""
        return [
            self.submit(
                name, k, task, *(x[k] if isinstance(x, list) else x for x in given)
            )
            for k in range(len(self))
        ]

    def gather(self, futures: Any) -> Any:
        """Return what tasks have made."""
        return self.client.gather(futures)

    def divided(self, values: Any) -> Any:
        """Return an array of n rows in blocks."""
        from bistochastic.places.dask_workers.vectors import BlockArray

        if isinstance(values, BlockArray):
            return values
        values = np.asarray(values)
        if values.ndim == 0:
            return self.full(float(values))
        blocks = [
            self.submit("sent", k, np.array, values[rows])
            for k, rows in enumerate(self.slices())
        ]
        return BlockArray.held(self, blocks, values.shape[1:], values.dtype)

    def full(self, value: float) -> Any:
        """Return a vector of the same numbers."""
        from bistochastic.places.dask_workers.vectors import BlockArray

        blocks = self.each("full", np.full, list(self.sizes), value)
        return BlockArray.held(self, blocks, (), np.dtype(float))

    def out(self, values: Any) -> Any:
        """Return a vector where vectors are: with the caller, or in blocks."""
        return np.asarray(values) if self.caller else values
