"""Rows of some points of every aggregate: enough to try a number of neighbors on them.

To choose among numbers of neighbors, their first graphs are needed on aggregates only.
These are sums over points, which a few points of each aggregate tell well enough.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from scipy.sparse import csr_array, diags_array

from bistochastic.core.arrays import on_cpu
from bistochastic.graph.aggregates import Aggregates
from bistochastic.graph.refine import SCALE, local_scales, nth_cost, rescaled
from bistochastic.graph.simplex import first_weights
from bistochastic.places.host.csr import Csr
from bistochastic.places.host.gathering import indicators, symmetric
from bistochastic.places.parts import Part
from bistochastic.places.tables import TableCosts

ROWS = 16  # points of an aggregate that speak for it
MUTUAL = 2 / 3  # pairs of a symmetrized graph to those that either row has


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Candidates of some points of every aggregate, on the host.

    Attributes
    ----------
    table : Table
        Their candidates; only their rows are there.
    shares : array of shape (n,)
        How many points each of them stands for; 0 for the others.
    scales : array of shape (n,)
        The local scale of every point.
    held : Aggregates
        The aggregates.
    loops : bool
        Whether a point is its own candidate.
    """

    table: Any
    shares: np.ndarray
    scales: np.ndarray
    held: Aggregates
    loops: bool

    @classmethod
    def of(cls, costs: Any, held: Aggregates, m: int, maker: Any) -> "SampledRows":
        """Choose points, of every aggregate the same shares of near and far ones.

        Parameters
        ----------
        costs : Costs
            Of all points, wherever they are.
        held : Aggregates
            The aggregates.
        m : int
            How many candidates are needed.
        maker : GraphMaker
            Tells whether a point is its own neighbor.

        Returns
        -------
        SampledRows
            The points and their candidates.
        """
        loops = maker.self_neighbor is True
        near = costs.table(SCALE + loops)
        scales = on_cpu(near.reduce(partial(nth_cost, loops=loops)))
        shares = _shares(held, scales)
        table = _rows(costs.table(m), shares > 0)
        return cls(table, shares, local_scales(scales), held, loops)

    def gathered(self, k: int, local: bool) -> tuple[Csr, Csr]:
        """Return the sums of the first weights between aggregates.

        Parameters
        ----------
        k : int
            Number of neighbors.
        local : bool
            Whether distances are measured by local scales.

        Returns
        -------
        weights : Csr
            Symmetric; rows sum to about the sizes of the aggregates.
        pairs : Csr
            How many pairs of points each entry stands for, about.
        """
        table = self.table.table(k + 1)
        if local:
            table = table.remade(rescaled, self.scales)
        rows, W = _matrix(table.weigh(partial(first_weights, k=k)), self.held)
        each = np.repeat(self.shares[rows], np.diff(W.indptr))
        weights = self._sums(rows, W, W.data * each, 1.0 / k)
        return weights, self._sums(rows, W, 2 * MUTUAL * each, 2 * MUTUAL)

    def _sums(self, rows: Any, W: csr_array, values: Any, own: float) -> Csr:
        """Return the sums of values on the pattern of W, the mean of both ways."""
        groups, sizes = self.held.groups[rows], self.held.sizes
        matrix = csr_array((values, W.indices, W.indptr), shape=W.shape)
        sums = csr_array(indicators(groups, sizes.size).T) @ matrix
        if not self.loops:  # so that there is support
            sums = csr_array(sums + diags_array(sizes * own))
        return Csr(symmetric(sums))


def _matrix(rows: TableCosts, held: Aggregates) -> tuple[np.ndarray, csr_array]:
    """Return the points, and their positive weights to points of each aggregate."""
    found = []
    for part in rows.parts:
        kept = part.values > 0
        columns = held.groups[part.columns[kept]]
        found.append((part.rows, kept.sum(axis=1), columns, part.values[kept]))
    each = zip(*found, strict=True)
    points, number, columns, values = (np.concatenate(some) for some in each)
    ends = np.concatenate([[0], np.cumsum(number)])
    shape = (points.size, held.sizes.size)
    return points, csr_array((values, columns, ends), shape=shape)


def _shares(held: Aggregates, scales: np.ndarray) -> np.ndarray:
    """Return how many points each chosen one stands for, by rank of its scale."""
    groups, sizes = held.groups, held.sizes.astype(np.int64)
    top = float(scales.max()) or 1.0
    order = np.argsort(groups + scales * (0.5 / top))  # by groups, then by scales
    starts, number = np.cumsum(sizes) - sizes, np.minimum(sizes, ROWS)
    shares = np.zeros(groups.size)
    for part in range(int(number.max())):  # the middle one of each of equal parts
        place = starts + (2 * part + 1) * sizes // (2 * number)
        some = part < number
        shares[order[place[some]]] = (sizes / number)[some]
    return shares


def _rows(table: Any, kept: np.ndarray) -> TableCosts:
    """Return some rows of a table, on the host."""
    parts = []
    for rows, columns, values in table.listed():
        rows = on_cpu(rows)
        here = np.flatnonzero(kept[rows])
        if here.size:
            xp = array_namespace(values)
            index = xp.asarray(here, device=device(values))
            columns, values = (
                on_cpu(xp.take(each, index, axis=0)) for each in (columns, values)
            )
            parts.append(Part(rows[here], columns, values.astype(np.float64)))
    return TableCosts(parts, kept.size)
