"""The host: data in NumPy and SciPy, work by NumPy and compiled loops."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_torch_array

from bistochastic.core.arrays import is_sparse
from bistochastic.core.protocols import Costs, Graph, Made
from bistochastic.graph.bridges import Links
from bistochastic.neighbors.choose import neighbors_of
from bistochastic.neighbors.descent import leaves
from bistochastic.neighbors.exact import norm_of_costs, squared_distances
from bistochastic.neighbors.points import SQUARED, Points
from bistochastic.places.given_pairs import all_pairs
from bistochastic.places.host.csr import compiled
from bistochastic.places.parts import Part, Pattern
from bistochastic.places.tables import TableCosts


@dataclass(frozen=True)
class Host:
    """The machine itself.

    Attributes
    ----------
    tensor : torch.device or None
        Where X lies if it is a tensor: labels are one, too.
    """

    tensor: Any = None
    lazy = False
    gathers = True

    @classmethod
    def of(cls, X: Any) -> "Host":
        """Return the place for data that are on the host, or are brought here."""
        return cls(X.device if is_torch_array(X) else None)

    def checked(self, X: Any, check: Callable[[Any], Any], metric: Any) -> Any:
        """Return NumPy or SciPy arrays that `check` has looked at."""
        if self.tensor is not None:
            from bistochastic.places.torch_device.inputs import fetched

            X = fetched(X)
        return check(X)

    def rows(self, data: Any, index: Any) -> Any:
        """Return some rows."""
        return data[index]

    def sample(self, data: Any) -> Any:
        """Return all rows."""
        return data

    def ordered(self, data: Any, metric: Any) -> tuple[Any, Any]:
        """Put neighbors close by: what a loop over edges needs is then in the cache."""
        if metric not in SQUARED or is_sparse(data):
            return data, None
        order = leaves(data)
        return data[order], order

    def points(self, data: Any, metric: Any) -> Points:
        """Make points ready for distances."""
        return Points.of(data, metric)

    def vectors(self, data: Any) -> Any:
        """Return the data as they are."""
        return data

    def of_vectors(self, V: Any) -> Any:
        """Return the block as it is."""
        return V

    def all_pairs(self, points: Any, loops: bool) -> Costs:
        """Return the squared distances of all pairs, Eq. (6)."""
        return all_pairs(squared_distances(points), loops)

    def candidates(
        self, points: Any, m: int, loops: bool, how: Any, n_jobs: int | None
    ) -> tuple[Costs, float]:
        """Find the m nearest other points of every point, or most of them."""
        n = points.X.shape[0]
        fast = partial(compiled, entries=n * m, bodies="ON_TABLES")
        found = neighbors_of(points, m, how=how, n_jobs=n_jobs, fast=fast)
        return table_of(found.columns, found.costs, loops), found.recall

    def norm_of_costs(self, points: Any) -> float:
        """Return the Frobenius norm of the squared distances of all pairs."""
        return norm_of_costs(points)

    def costs(self, costs: Costs) -> Costs:
        """Return the costs as they are."""
        return costs

    def graph(self, S: Graph) -> Graph:
        """Return the graph as it is."""
        return S

    def links(self, costs: Any, points: Any) -> Links:
        """Return what finds the cheapest pairs."""
        return Links(costs.n, costs.listed(), points)

    def guarded(self, made: Callable[[], Made]) -> Made:
        """Return what a function makes."""
        return made()

    def labels(self, labels: np.ndarray) -> Any:
        """Return the labels, as a tensor if X is one."""
        if self.tensor is None:
            return labels
        import torch

        return torch.as_tensor(labels, device=self.tensor)


def table_of(columns: Any, costs: Any, loops: bool, **options: Any) -> TableCosts:
    """Return neighbors as costs, the point itself first if it counts.

    Parameters
    ----------
    columns : array of int of shape (n, m)
        The neighbors of every point, the nearest first.
    costs : array of shape (n, m)
        Their squared distances.
    loops : bool
        Whether a point is its own candidate, at cost 0.
    **options : object
        Passed on to `TableCosts`.

    Returns
    -------
    TableCosts
        The table.
    """
    xp = array_namespace(costs)
    n = costs.shape[0]
    rows = xp.arange(n, dtype=columns.dtype, device=device(costs))
    if loops:
        columns = xp.concat([rows[:, None], columns], axis=1)
        costs = xp.concat([xp.zeros_like(costs[:, :1]), costs], axis=1)
    return TableCosts([Part(rows, columns, costs, Pattern(columns))], n, **options)
