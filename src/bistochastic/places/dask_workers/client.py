"""The client of a Dask cluster, and what is said when the cluster is out of reach."""

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from bistochastic.core.errors import ClusterError

QUIET = 1 << 20  # bytes up to which an array does not make a task large


class Recorder:
    """A client that knows which tasks it has started, and says if it is cut off.

    Whatever Dask raises when the client is closed, the scheduler goes away or tasks are
    cancelled becomes a `ClusterError`.

    Parameters
    ----------
    client : distributed.Client
        The client.
    device : str, optional
        The device that tasks may compute on.
    """

    def __init__(self, client: Any, device: str | None = None) -> None:
        self._client = client
        self._device = device
        self._made: weakref.WeakSet[Any] = weakref.WeakSet()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        return partial(self._asked, found) if callable(found) else found

    def _asked(self, method: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Return what a method of the client returns."""
        if self._client.status != "running":
            raise ClusterError(_why(self._client))
        try:
            return method(*given, **options)
        except Exception as error:  # a client that is being closed raises anything
            if self._client.status == "running" and not isinstance(error, _cut_off()):
                raise
            raise ClusterError(_why(self._client, error)) from error

    def submit(self, task: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Start a task."""
        if self._device is not None:
            from bistochastic.places.dask_workers.worker_device import On

            task = On(task, self._device)
        with _large(given):
            made = self._asked(self._client.submit, task, *given, **options)
        self._made.add(made)
        return made

    def compute(self, given: list[Any]) -> list[Any]:
        """Start to make what is delayed."""
        made: list[Any] = self._asked(self._client.compute, given)
        self._made.update(made)
        return made

    def wait(self, futures: list[Any]) -> None:
        """Wait until tasks are done, or have failed."""
        from distributed import wait

        self._asked(wait, futures)

    def free(self) -> None:
        """Let go of what is still held, after a fit that was broken off."""
        for made in list(self._made):
            made.release()


def _cut_off() -> tuple[type[Exception], ...]:
    """Return what Dask raises, not a task, when what is asked for does not come."""
    from concurrent.futures import CancelledError

    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError

    return CancelledError, ClosedClientError, CommClosedError


def _why(client: Any, error: Exception | None = None) -> str:
    """Say what became of the cluster, and what to do."""
    from concurrent.futures import CancelledError

    if client.status in ("closing", "closed"):
        return (
            "The Dask client is closed, and what is asked for needs its workers. Make "
            "a client and call again. What a fitted model leaves on workers goes with "
            "them: fetch it, or save the model, before the client is closed."
        )
    if client.status == "running" and isinstance(error, CancelledError):
        return (
            "Dask cancelled tasks that were waited for, as client.restart() and "
            "client.cancel() do. Call again when the cluster is up."
        )
    return (
        "The connection to the Dask scheduler is lost, and with it all that its "
        "workers hold. See that a scheduler is running, make a client of it and call "
        "again."
    )


def _large(given: Any) -> AbstractContextManager[Any]:
    """Silence the warning about a large task; no worker could make it by itself."""
    if not any(isinstance(x, np.ndarray) and x.nbytes > QUIET for x in given):
        return nullcontext()
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"})
