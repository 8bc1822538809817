"""What tasks of a fit compute on the GPU of the worker that they run on.

A block of the graph is held there as a torch CSR tensor as long as the block lives;
vectors, which travel from worker to worker, are NumPy arrays between tasks.
"""

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from bistochastic.places.torch_device.build import bodies, from_scipy
from bistochastic.places.torch_device.device import TorchDevice
from bistochastic.places.torch_device.measures import nearest_to
from bistochastic.places.torch_device.search import neighbors

PAIRS = 1 << 27  # that are compared one by one
HERE = threading.local()
HELD: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
KINDS = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}


class On:
    """A task that may compute on a device.

    Parameters
    ----------
    task : callable
        The task.
    name : str
        The device, as torch calls it.
    """

    def __init__(self, task: Callable[..., Any], name: str) -> None:
        self._task, self._name = task, name

    def __call__(self, *given: Any) -> Any:
        """Run the task."""
        HERE.place = TorchDevice.named(self._name).place
        try:
            return self._task(*given)
        finally:
            HERE.place = None


def place() -> Any:
    """Return the device of the task that is running, or None."""
    return getattr(HERE, "place", None)


def multiplied(block: Any, v: np.ndarray) -> np.ndarray:
    """Return the rows of S v."""
    S = _held(block, lambda: _matrix(block))
    there = _tensor(v)
    kernels = bodies(S)
    made = kernels.product(S, there) if kernels else S @ there
    return made.cpu().numpy()


def three_term(block: Any, X: np.ndarray, Y: np.ndarray, terms: Any) -> np.ndarray:
    """Return a S Y + b Y + c X."""
    S = _held(block, lambda: _matrix(block))
    wide = (0, -X.shape[1] % 8)  # whole sectors of memory
    pad = torch.nn.functional.pad
    X_, Y_ = (pad(_tensor(part), wide).contiguous() for part in (X, Y))
    kernels = bodies(S)
    if kernels:
        scales = torch.tensor([float(t) for t in terms], dtype=S.dtype).to(S.device)
        kernels.three_term(S, X_, Y_, scales)
    else:
        a, b, c = map(float, terms)
        X_ = a * (S @ Y_) + b * Y_[: len(X_)] + c * X_
    return X_[:, : X.shape[1]].cpu().numpy()


def _matrix(block: Any) -> Any:
    return from_scipy(block.S, place(), KINDS[block.S.dtype])


def nearest(points: Any, Y: np.ndarray, m: int) -> np.ndarray:
    """Find those of the m points nearest to each row of Y that matter.

    Parameters
    ----------
    points : Points
        The points, by coordinates.
    Y : array of shape (rows, d)
        The same points, or others; these are points, too, that other rows of Y may be
        nearer to than to those of `points`.
    m : int
        How many, at most as there are points.

    Returns
    -------
    array of int64 of shape (rows, m)
        The numbers of points, in any order; -1 stands for rows of Y that are nearer.
    """
    X = _held(points, lambda: _tensor(points.X))
    if Y is points.X and 1 < m < len(X):
        others, *_ = neighbors(X, m - 1, "exact", bodies(X))
        own = torch.arange(len(X), device=X.device)[:, None]
        columns = torch.cat([own, others.to(torch.int64)], dim=1)
    elif len(Y) * len(X) <= PAIRS:
        columns, _ = nearest_to(X, _tensor(Y), m)
    else:  # one search for all is faster, and knows its way
        both = torch.cat([_tensor(Y), X])
        columns, *_ = neighbors(both, m, "exact", bodies(X))
        columns = (columns[: len(Y)].to(torch.int64) - len(Y)).clip(min=-1)
    return columns.cpu().numpy()


def _tensor(x: np.ndarray) -> Any:
    x = x if x.flags.writeable else x.copy()  # torch takes no others
    return torch.from_numpy(x).to(place())


def _held(of: Any, made: Callable[[], Any]) -> Any:
    """Return what was put on the device of a thing, as long as that lives."""
    found = HELD.get(of)
    if found is None or found.device.type != place().type:
        found = HELD[of] = made()
    return found
