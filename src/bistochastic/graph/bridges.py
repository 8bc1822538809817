"""Bridges and cuts: graphs with exactly as many components as wanted.

A component that is too small, or one too many, is joined to another by the cheapest
pair of points; a component that must be divided is cut where least weight is lost.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bistochastic.core.arrays import on_cpu
from bistochastic.graph.components import numbered
from bistochastic.neighbors.exact import nearest_to

BRIDGE = 0.5  # of the largest weight of a row: the weight of a bridge


@dataclass(frozen=True, eq=False)
class Links:
    """Finds the cheapest pair of points between parts, by plain costs.

    Attributes
    ----------
    n : int
        Number of points.
    tables : sequence of (rows, columns, costs)
        The candidates of some points and their costs, in ascending order; columns are
        None if the candidates are all points, in order. Arrays of any namespace.
    points : Points or None
        Where to look on for points whose candidates all lie in their own part.
    nearest : callable
        Finds, of some points, those nearest to rows made ready like them.
    """

    n: int
    tables: Any
    points: Any = None
    nearest: Callable[..., Any] = nearest_to

    @cached_property
    def twins(self) -> Any:
        """The group of each point if points at cost 0 form groups; None if none do."""
        found = []
        for rows, columns, costs in self.tables:
            same = costs == 0
            if columns is not None:
                same &= columns != rows[:, None]
            i, j = array_namespace(costs).nonzero(same)
            i, j = on_cpu(rows[i]), on_cpu(j if columns is None else columns[i, j])
            found.append((i[i != j], j[i != j]))
        i, j = (np.concatenate(ends) for ends in zip(*found, strict=True))
        return grouped(i, j, self.n)

    def ranks(self) -> Any:
        """Return the rank of each point by the sum of the roots of its costs."""
        sums = np.zeros(self.n)
        for rows, _, costs in self.tables:
            roots = np.sqrt(np.abs(np.where(np.isfinite(costs), costs, 0.0)))
            sums[rows] = roots.sum(axis=1)
        return np.argsort(np.argsort(sums, kind="stable"))

    def within(self, index: Any) -> Any:
        """Return the links among some of the points only."""
        place = np.full(self.n, -1)
        place[index] = np.arange(index.size)
        made: list[Any] = []
        for table in self.tables:
            given: Any = (x if x is None else on_cpu(x) for x in table)
            rows, columns, costs = given
            kept = place[rows] >= 0
            if columns is None:
                made.append((place[rows[kept]], None, costs[np.ix_(kept, index)]))
                continue
            columns = place[columns[kept]]
            costs = np.where(columns >= 0, costs[kept], np.inf)
            made.append((place[rows[kept]], np.maximum(columns, 0), costs))
        points = None if self.points is None else self.points.at(index)
        return Links(index.size, made, points, self.nearest)

    def leaving(self, labels: Any, wanted: Any) -> Any:
        """Return the cheapest pair that leaves each part.

        Parameters
        ----------
        labels : array of int of shape (n,)
            The part of each point, 0 to q - 1, q at least 2.
        wanted : array of bool of shape (q,)
            The parts to search for.

        Returns
        -------
        cost, inside, outside : array of shape (q,)
            Cost and ends of the pair; infinite if no candidates link the part, or it
            is not wanted. Of tied pairs that with the lowest numbers, whatever the
            length of the tables.
        """
        q = int(labels.max()) + 1
        here, there, cost, asked = self._outward(labels, wanted)
        # a pair can be known from either end
        ends, others = np.concatenate([here, there]), np.concatenate([there, here])
        prices = np.tile(cost, 2)
        if self.points is None or asked.size == 0:
            best = self._cheapest(labels, q, ends, others, prices)
        else:
            best = self._looked_further(labels, q, ends, others, prices, asked)
        best[0][~wanted] = np.inf
        return best

    def _outward(self, labels: Any, wanted: Any) -> Any:
        """Return the cheapest pair that leaves its part, for points that matter.

        And the points of wanted parts for which there is none.
        """
        pairs, asked = [], []
        for rows, columns, costs in self.tables:
            xp = array_namespace(costs)
            part, wants = (
                xp.asarray(x, device=device(costs)) for x in (labels, wanted)
            )
            mine = part[rows]
            if columns is None:
                cost = xp.where(mine[:, None] != part[None, :], costs, xp.inf)
                there = xp.argmin(cost, axis=1)
                cost = xp.min(cost, axis=1)
            else:
                out = (part[columns] != mine[:, None]) & xp.isfinite(costs)
                place = xp.argmax(xp.astype(out, xp.int8), axis=1)[:, None]
                there = xp.take_along_axis(columns, place, axis=1)[:, 0]
                cost = xp.take_along_axis(costs, place, axis=1)[:, 0]
                cost = xp.where(xp.any(out, axis=1), cost, xp.inf)
            known = xp.isfinite(cost)
            kept = known & (wants[mine] | wants[part[there]])
            pairs.append([on_cpu(x[kept]) for x in (rows, there, cost)])
            asked.append(on_cpu(rows[~known & wants[mine]]))
        made = [np.concatenate(part) for part in zip(*pairs, strict=True)]
        return *made, np.sort(np.concatenate(asked))

    def _cheapest(
        self, labels: Any, q: int, ends: Any, others: Any, prices: Any
    ) -> Any:
        """Return the cheapest of many pairs for each part; ties go to low numbers."""
        order = np.lexsort((others, ends, prices, labels[ends]))
        parts, first = np.unique(labels[ends][order], return_index=True)
        cost, inside, outside = np.full(q, np.inf), np.zeros(q, int), np.zeros(q, int)
        chosen = order[first]
        cost[parts] = prices[chosen]
        inside[parts], outside[parts] = ends[chosen], others[chosen]
        return cost, inside, outside

    def _looked_further(
        self, labels: Any, q: int, ends: Any, others: Any, prices: Any, asked: Any
    ) -> Any:
        """Search for points whose candidates all lie in their own part."""
        for part in np.unique(labels[asked]):
            rows = asked[labels[asked] == part]
            rest = np.flatnonzero(labels != part)
            found, cost = self.nearest(self.points.at(rest), self.points.at(rows).X, 1)
            ends = np.concatenate([ends, rows])
            others = np.concatenate([others, rest[found[:, 0]]])
            prices = np.concatenate([prices, cost[:, 0]])
        return self._cheapest(labels, q, ends, others, prices)


def grouped(i: Any, j: Any, n: int) -> Any:
    """Return the group of each of n points, given pairs; None if there are none."""
    if i.size == 0:
        return None
    same = csr_array((np.ones(i.size), (i, j)), shape=(n, n))
    return connected_components(same, directed=False)[1]


def reunited(labels: Any, twins: Any) -> tuple[Any, Any]:
    """Choose pairs that join components which share points at cost 0.

    Parameters
    ----------
    labels : array of int of shape (n,)
        Components.
    twins : array of int of shape (n,)
        Groups of points that cannot be told apart.

    Returns
    -------
    pairs : list of (int, int)
        What to join.
    labels : array of int of shape (n,)
        The components afterwards.
    """
    _, first = np.unique(twins * (labels.max() + 1) + labels, return_index=True)
    i, j = first[:-1], first[1:]  # one point of each group in each component, in order
    split = twins[i] == twins[j]
    i, j = i[split], j[split]
    if i.size == 0:
        return [], labels
    q = int(labels.max()) + 1
    links = csr_array((np.ones(i.size), (labels[i], labels[j])), shape=(q, q))
    whole = connected_components(links, directed=False)[1]
    pairs = list(zip(i.tolist(), j.tolist(), strict=True))
    return pairs, numbered(whole)[labels]


def bridges(
    labels: Any,
    links: Any,
    *,
    floor: int = 1,
    most: int | None = None,
    sizes: Any = None,
) -> tuple[Any, Any]:
    """Choose pairs of points that join components.

    Those smaller than `floor` are joined first, the smallest first; then, while there
    are more than `most`, the cheapest pair. Where no candidates are known between
    components, they stay apart.

    Parameters
    ----------
    labels : array of int of shape (n,)
        Components.
    links : Links
        Finds cheapest pairs.
    floor : int, default=1
        Smallest size of a component that may stay.
    most : int, optional
        How many components may stay.
    sizes : array of shape (n,), optional
        Numbers of points, if rows stand for aggregates.

    Returns
    -------
    pairs : list of (int, int)
        What to join.
    labels : array of int of shape (n,)
        The components afterwards.
    """
    pairs: list[Any] = []
    points = sizes
    while True:
        sizes = np.bincount(labels, points)
        small = np.flatnonzero(sizes < floor)
        many = most is not None and sizes.size > most
        if sizes.size == 1 or not (small.size or many):
            return pairs, labels
        largest = np.arange(sizes.size) == sizes.argmax()
        cost, inside, outside = links.leaving(
            labels, sizes < floor if small.size else ~largest
        )
        small = small[np.isfinite(cost[small])]
        if small.size:
            chosen = small[np.lexsort((cost[small], sizes[small]))]
        elif many and np.isfinite(cost).any():
            chosen = np.array([int(np.argmin(cost))])
        else:
            return pairs, labels  # nothing is known to join them to
        joined, labels = _merged(chosen, labels, sizes, inside, outside, cost, floor)
        pairs += joined


def _merged(
    chosen: Any,
    labels: Any,
    sizes: Any,
    inside: Any,
    outside: Any,
    cost: Any,
    floor: int,
) -> Any:
    """Join the chosen components in turn, unless they have grown in the meantime."""
    parent = np.arange(sizes.size)
    size = sizes.copy()

    def root(part: Any) -> Any:
        while parent[part] != part:
            part = parent[part]
        return part

    joined: list[Any] = []
    for part in chosen:
        mine, other = root(part), root(labels[outside[part]])
        grown = size[mine] >= floor and joined
        if mine == other or grown or not np.isfinite(cost[part]):
            continue
        joined.append((int(inside[part]), int(outside[part])))
        parent[mine] = other
        size[other] += size[mine]
    roots = numbered(np.array([root(part) for part in range(sizes.size)]))
    return joined, roots[labels]  # parts are numbered by first appearance, too


def sweep(S: Any, v: Any, floor: int, groups: Any = None) -> Any:
    """Divide a connected graph where least weight is cut for its smaller side.

    Parameters
    ----------
    S : csr_array of shape (n, n)
        Symmetric weights.
    v : array of shape (n,)
        Second eigenvector; points are divided by its values.
    floor : int
        Smallest size of a side, if there is a way.
    groups : array of int of shape (n,), optional
        Points that must stay together, at least two groups of them.

    Returns
    -------
    array of bool of shape (n,)
        One of the sides.
    """
    n = S.shape[0]
    groups = np.arange(n) if groups is None else groups
    mean = np.bincount(groups, v) / np.bincount(groups)
    order = np.lexsort((np.arange(n), groups, mean[groups]))
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    entries = S.tocoo()
    i, j = (rank[x] for x in entries.coords)
    upper = i < j
    lost = np.zeros(n + 1)
    np.add.at(lost, i[upper] + 1, entries.data[upper])
    np.add.at(lost, j[upper] + 1, -entries.data[upper])
    lost = np.cumsum(lost)[1:n]  # weight between the first t and the rest, t = 1 ...
    size = np.minimum(np.arange(1, n), n - np.arange(1, n))
    allowed = groups[order[:-1]] != groups[order[1:]]
    large = allowed & (size >= floor)
    score = np.where(large if large.any() else allowed, lost / size, np.inf)
    side = np.zeros(n, dtype=bool)
    side[order[: int(np.argmin(score)) + 1]] = True
    return side
