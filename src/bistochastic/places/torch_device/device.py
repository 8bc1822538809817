"""Where a fit runs: a torch device, its points, its search and its memory."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from bistochastic.core.arrays import is_sparse, on_cpu
from bistochastic.core.errors import (
    DeviceMemoryError,
    InputError,
    MissingError,
)
from bistochastic.core.protocols import Made
from bistochastic.graph.bridges import Links
from bistochastic.neighbors.choose import MANY, Found
from bistochastic.neighbors.exact import nearest_to as nearest_on_host
from bistochastic.neighbors.exact import norm_of_costs, squared_distances
from bistochastic.neighbors.points import SQUARED, Points, check_apart, medians
from bistochastic.places.given_pairs import all_pairs
from bistochastic.places.host.host import Host, table_of
from bistochastic.places.parts import Part, Pattern
from bistochastic.places.tables import DenseCosts, TableCosts
from bistochastic.places.torch_device.inputs import checked_tensor, fetched

BUDGET = 1 << 30  # bytes for tiles, besides points, graph and embedding
SMALLER = 4, 3  # by which factor it shrinks where memory runs out, and how often


@dataclass(eq=False)
class TorchDevice:
    """A device of torch.

    Attributes
    ----------
    place : torch.device
        Which one.
    kind : torch.dtype
        Numbers of the graph.
    tensor : torch.device or None
        Where X lies if it is a tensor: labels are one, too.
    budget : int
        Bytes for tiles.
    """

    place: Any
    kind: Any
    tensor: Any = None
    budget: int = BUDGET
    lazy = True
    gathers = True

    @classmethod
    def named(cls, name: Any, *, single: bool = False, X: Any = None) -> "TorchDevice":
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
        tensor = X.device if is_torch_array(X) else None
        return cls(place, torch.float32 if single else torch.float64, tensor)

    def checked(self, X: Any, check: Callable[[Any], Any], metric: Any) -> Any:
        """Return points on the device if the search here knows the metric.

        All else is looked at and searched on the host.
        """
        if self.tensor is not None:
            X = checked_tensor(X) if metric in SQUARED else check(fetched(X))
        else:
            X = check(X)
        if metric not in SQUARED or is_sparse(X):
            return X
        X = self.array(X)
        return X if X.shape[0] >= MANY else X.double()

    def rows(self, data: Any, index: Any) -> Any:
        """Return some rows on the host."""
        return on_cpu(data[index])

    def sample(self, data: Any) -> Any:
        """Return all rows."""
        return data

    def ordered(self, data: Any, metric: Any) -> tuple[Any, Any]:
        """Put neighbors close by, cell after cell."""
        if not is_torch_array(data):
            return data, None
        order = self.order(data)
        return data[order], on_cpu(order)

    def points(self, data: Any, metric: Any) -> Points:
        """Make points ready for distances."""
        return (TorchPoints if is_torch_array(data) else Points).of(data, metric)

    def vectors(self, data: Any) -> Any:
        """Return the data as they are."""
        return data

    def of_vectors(self, V: Any) -> Any:
        """Return the block as it is."""
        return V

    def all_pairs(self, points: Points, loops: bool) -> Any:
        """Return the squared distances of all pairs, with every digit of the host."""
        return self.costs(all_pairs(squared_distances(points.host()), loops))

    def candidates(
        self, points: Points, m: int, loops: bool, how: Any, n_jobs: int | None
    ) -> tuple[Any, float]:
        """Find the m nearest other points of every point, or most of them."""
        if not isinstance(points, TorchPoints):
            costs, recall = Host().candidates(points, m, loops, how, n_jobs)
            return self.costs(costs), recall
        found = self.neighbors(points, m, how)
        return self.costs(table_of(found.columns, found.costs, loops)), found.recall

    def norm_of_costs(self, points: Points) -> float:
        """Return the Frobenius norm of the squared distances of all pairs."""
        return norm_of_costs(points)

    def links(self, costs: Any, points: Points | None) -> Links:
        """Return what finds the cheapest pairs."""
        here = isinstance(points, TorchPoints)
        search = nearest_to if here else nearest_on_host
        return Links(costs.n, costs.listed(), points, search)

    def labels(self, labels: np.ndarray) -> Any:
        """Return the labels, as a tensor where X is if X is one."""
        if self.tensor is None:
            return labels
        import torch

        return torch.as_tensor(labels, device=self.tensor)

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
        from bistochastic.places.torch_device.cells import divided

        numbers = divided(X).numbers.view(-1)
        return numbers[numbers < X.shape[0]]

    def neighbors(self, points: Points, m: int, how: Any) -> Found:
        """Find the m nearest other points of every point, or most of them."""
        from bistochastic.places.torch_device import search
        from bistochastic.places.torch_device.build import bodies

        return Found(*search.neighbors(points.X, m, how, bodies(points.X), self.budget))

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
        from bistochastic.places.torch_device.build import from_scipy
        from bistochastic.places.torch_device.csr import TorchCsr

        if isinstance(S, Dense):
            return Dense(torch.as_tensor(S.native()).to(self.place, self.kind))
        if isinstance(S, TorchCsr):
            return TorchCsr(S.native().to(self.place, self.kind))
        return TorchCsr(from_scipy(S.native(), self.place, self.kind))

    def guarded(self, made: Callable[[], Made]) -> Made:
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
        center = medians(X, lambda X, rank, axis: torch.sort(X, dim=axis).values)
        X = X - center
        check_apart(float(X.abs().max()))
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
    from bistochastic.places.torch_device import measures

    found = measures.nearest_to(points.X, Y, m)
    return tuple(on_cpu(part) for part in found)
