"""Where a fit runs: a torch device, its points, its search and its memory."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from array_api_compat import is_torch_array
from scipy.sparse import csr_array

from bistochastic.core.arrays import on_cpu
from bistochastic.core.errors import (
    DeviceMemoryError,
    InputError,
    InputTypeError,
    MissingError,
)
from bistochastic.neighbors.choose import Found
from bistochastic.neighbors.points import SMALL, Points, by_columns
from bistochastic.places.parts import Part, Pattern
from bistochastic.places.tables import DenseCosts, TableCosts

Made = TypeVar("Made")
BUDGET = 1 << 30  # bytes for tiles, besides points, graph and embedding
GRADIENTS = "X requires gradients, and they are not passed on. Call it with X.detach()."
SMALLER = 4, 3  # by which factor it shrinks where memory runs out, and how often


@dataclass(eq=False)
class Device:
    """A torch device.

    Attributes
    ----------
    place : torch.device
        Which one.
    kind : torch.dtype
        Numbers of the graph.
    budget : int
        Bytes for tiles.
    """

    place: Any
    kind: Any
    budget: int = BUDGET

    @classmethod
    def named(cls, name: Any, *, single: bool = False) -> "Device":
        """Find a device, or say why there is none."""
        if find_spec("torch") is None:
            raise MissingError(
                f"device={str(name)!r} needs torch, which is not installed: "
                "pip install 'bistochastic[gpu]'"
            )
        import torch

        try:
            place = torch.device(name)
        except (RuntimeError, TypeError):
            raise InputError(
                f"device={name!r} is no device of torch; it is None, or a name such as "
                "'cuda', 'cuda:1' or 'cpu'."
            ) from None
        if place.type == "cuda" and not torch.cuda.is_available():
            raise InputError(
                f"device={str(place)!r}, but torch {torch.__version__} sees no GPU "
                "here: there is none, its driver is missing, or torch was built "
                "without CUDA. Leave device out to run on the CPU."
            )
        if place.type == "cuda" and (place.index or 0) >= torch.cuda.device_count():
            raise InputError(
                f"device={str(place)!r}, but torch sees only "
                f"{torch.cuda.device_count()} here, numbered from 0."
            )
        if place.type not in ("cuda", "cpu"):
            raise InputError(
                f"device={str(place)!r}: doubles and sparse products are needed, which "
                "torch has on 'cuda' and 'cpu' devices."
            )
        return cls(place, torch.float32 if single else torch.float64)

    def array(self, X: Any) -> Any:
        """Return points as a tensor on the device, singles or doubles."""
        import torch

        if isinstance(X, np.ndarray) and not (
            X.flags.writeable and min(X.strides) >= 0
        ):
            X = X.copy()  # torch takes no others
        X = torch.as_tensor(X, device=self.place)
        return X if X.dtype in (torch.float32, torch.float64) else X.double()

    def order(self, X: Any) -> Any:
        """Return an order of points in which neighbors mostly stand close by."""
        from bistochastic.places.torch_device import search as torch_search

        numbers = torch_search.divided(X).numbers.view(-1)
        return numbers[numbers < X.shape[0]]

    def neighbors(self, points: Points, m: int, how: Any) -> Found:
        """Find the m nearest other points of every point, or most of them."""
        from bistochastic.places.torch_device import csr as torch_csr
        from bistochastic.places.torch_device import search as torch_search

        return Found(
            *torch_search.neighbors(
                points.X, m, how, torch_csr.bodies(points.X), self.budget
            )
        )

    def costs(self, costs: Any) -> Any:
        """Return costs, wherever they are, on the device."""
        import torch

        from bistochastic.places.torch_device.csr import TorchCsr

        if isinstance(costs, DenseCosts):
            return DenseCosts(torch.as_tensor(costs.native()).to(self.place, self.kind))
        parts = []
        for part in costs.parts:
            rows, columns = (
                torch.as_tensor(x, device=self.place) for x in (part.rows, part.columns)
            )
            values = torch.as_tensor(part.values).to(self.place, self.kind)
            known = None if part.pattern is None else Pattern(columns)
            parts.append(Part(rows, columns, values, known))
        return TableCosts(parts, costs.n, TorchCsr, self.budget // 32)

    def graph(self, S: Any) -> Any:
        """Return a graph that is held on the CPU, or on a device, on this one."""
        import torch

        from bistochastic.places.host.dense import Dense
        from bistochastic.places.torch_device.csr import TorchCsr, from_scipy

        if isinstance(S, Dense):
            return Dense(torch.as_tensor(S.native()).to(self.place, self.kind))
        if isinstance(S, TorchCsr):
            return TorchCsr(S.native().to(self.place, self.kind))
        return TorchCsr(from_scipy(S.native(), self.place, self.kind))

    def patiently(self, made: Callable[[], Made]) -> Made:
        """Return what a function makes; where memory runs out, by smaller tiles."""
        import torch

        factor, turns = SMALLER
        for turn in range(turns + 1):
            try:
                return made()
            except torch.OutOfMemoryError as error:
                if turn == turns:
                    raise DeviceMemoryError(self._full(error)) from None
                self.budget //= factor
            torch.cuda.empty_cache()
        raise AssertionError  # not reached

    def _full(self, error: Exception) -> str:
        import torch

        said = f"Out of memory on device={str(self.place)!r}, with tiles of "
        said += f"{self.budget / 2**20:.0f} MiB at last."
        if self.place.type == "cuda":
            free, total = torch.cuda.mem_get_info(self.place)
            said += f" It has {total / 2**30:.1f} GiB, of which {free / 2**30:.1f} "
            peak = torch.cuda.max_memory_allocated(self.place) / 2**30
            said += f"GiB are free now; at most {peak:.1f} GiB were in use here."
        return (
            f"{said} Fit fewer points, lower n_neighbors or n_clusters, pass "
            'precision="single", or leave device out.'
        )


@dataclass(frozen=True, eq=False)
class TorchPoints(Points):
    """Points on a device, made ready for distances by coordinates."""

    @classmethod
    def of(cls, X: Any, metric: Any) -> "TorchPoints":
        """Center or normalize the rows of X as the metric allows."""
        import torch

        if metric == "cosine":  # to the bit as new points are made ready
            unit = Points.of(on_cpu(X), metric).X
            return cls(torch.as_tensor(unit, device=X.device), metric, 0.0)
        middle = X.shape[0] // 2
        center = torch.cat(  # medians that are values
            [torch.sort(X[:, s], dim=0).values[middle] for s in by_columns(X)]
        )
        X = X - center
        if 0 < float(X.abs().max()) < SMALL:
            raise InputError(
                "The points lie so close together that their squared distances "
                "vanish. Multiply X by a number first."
            )
        return cls(X, metric, center)

    def at(self, rows: Any) -> "TorchPoints":
        """Return some of the points."""
        import torch

        return replace(self, X=self.X[torch.as_tensor(rows, device=self.X.device)])

    def host(self) -> Points:
        """Return the points on the CPU."""
        center = self.center
        center = on_cpu(center) if is_torch_array(center) else center
        return Points(on_cpu(self.X), self.metric, center)


def nearest_to(points: TorchPoints, Y: Any, m: int) -> Any:
    """Find the m points nearest to each row of Y, made ready like these."""
    from bistochastic.places.torch_device import search

    found = search.nearest_to(points.X, Y, m)
    return tuple(on_cpu(part) for part in found)


def device_of(name: Any, X: Any, *, single: bool = False) -> Device | None:
    """Return the device that is asked for, or that a tensor lies on; None for none.

    Parameters
    ----------
    name : str, torch.device or None
        What the caller asks for.
    X : object
        The data.
    single : bool, default=False
        Whether the graph is one of singles.

    Returns
    -------
    Device or None
        None is the CPU, by NumPy and compiled loops.
    """
    if name is None and is_torch_array(X) and X.device.type != "cpu":
        name = X.device
    return None if name is None else Device.named(name, single=single)


def as_tensor(values: np.ndarray, device: Any) -> Any:
    """Return an array as a tensor on a device."""
    import torch

    return torch.as_tensor(values, device=device)


def fetched(X: Any) -> Any:
    """Return a tensor as a NumPy array, or a SciPy CSR array if it is compressed."""
    import torch

    _check_data(X)
    if X.is_floating_point() and X.dtype not in (torch.float32, torch.float64):
        X = X.double()
    if X.layout is torch.strided:
        return on_cpu(X.resolve_conj().resolve_neg())
    X = X.coalesce() if X.layout is torch.sparse_coo else X
    X = X.to_sparse_csr()
    parts = (X.values(), X.col_indices(), X.crow_indices())
    return csr_array(tuple(map(on_cpu, parts)), shape=tuple(X.shape))


def _check_data(X: Any) -> None:
    if X.requires_grad:
        raise InputTypeError(GRADIENTS)
    if X.is_meta:
        raise InputTypeError("X is a tensor on the meta device, without data.")


def checked_tensor(X: Any) -> Any:
    """Return a tensor of points that can be used, or say why it cannot."""
    import torch

    _check_data(X)
    if X.layout is not torch.strided:
        raise InputTypeError(
            f"X is a tensor of layout {X.layout}; points are dense. Pass X.to_dense()."
        )
    if X.is_complex():
        raise InputTypeError(f"X has element type {X.dtype}; real numbers are needed.")
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(
            f"X has shape {tuple(X.shape)}; a row for each point and a column for each "
            "feature are needed, and at least one of both."
        )
    X = X if X.dtype in (torch.float32, torch.float64) else X.double()
    bad = ~torch.isfinite(X)
    if bool(bad.any()):
        i, j = (int(k[0]) for k in torch.nonzero(bad, as_tuple=True))
        raise InputError(
            f"X[{i}, {j}] is {float(X[i, j])}: Input X contains NaN or infinity. "
            "Impute it, or leave such rows out."
        )
    return X
