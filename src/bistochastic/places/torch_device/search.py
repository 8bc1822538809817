"""Nearest neighbors on a device: cells of a tree, bounds, then pairs of cells.

A tree divides the points into cells, and each cell into eight parts of equal size,
neighbors mostly in one part or in cells close by. The points of its own cell, and the
nearest one of every part of other cells close by, bound the distance of the m-th
neighbor of a point from above. Then a part is compared with cells, a tile of distances
at a time, and only points within the bound are kept: no tile is sorted, and none is
written to memory. What is kept is measured again by differences, in doubles. An exact
search compares a part with all cells that centers and radii do not rule out; an
approximate one with as many close ones as the exact neighbors of a sample ask for.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from bistochastic.core.errors import InputError
from bistochastic.neighbors.choose import wanted_recall
from bistochastic.places.torch_device.cells import PARTS, SEED, SINGLE, Cells, divided
from bistochastic.places.torch_device.measures import (
    BUDGET,
    CLOSE,
    TINY,
    all_pairs,
    closest_cells,
    first_bounds,
    from_middles,
    measured,
    minima,
    possible_cells,
    within,
)

FEW = 8192  # points up to which all pairs are measured in doubles
ROOM = 128  # points within the bound that there is room for, or four times m
NARROW = 48  # points that most rows keep, or three times m
AGAIN = 7  # searches for points for which there is no room
SAMPLED = 64  # parts whose exact neighbors say how many cells are looked at
FARTHEST = 1e150  # coordinates beyond it have no squares
OVERFLOW = (
    "Squared distances overflow: the points lie too far apart for doubles. "
    "Divide the columns of X by a number first."
)
DEAR = 1e14  # n^2 d from which on an exact search is not the default


def neighbors(
    X: torch.Tensor, m: int, how: Any, kernels: Any = None, budget: int = BUDGET
) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Find the m nearest other points of every point, or most of them.

    Parameters
    ----------
    X : tensor of shape (n, d)
        Points around their median, more than m of them.
    m : int
        How many.
    how : {"auto", "exact"} or float
        A number is the wanted recall of an approximate search; "auto" is that of 0.95
        where n^2 d is beyond 1e14.
    kernels : module, optional
        Compiled bodies of `within` and `minima`.
    budget : int, optional
        Bytes for tiles.

    Returns
    -------
    columns : tensor of int32 or int64 of shape (n, m)
        The neighbors, the nearest first, ties by number.
    costs : tensor of float64 of shape (n, m)
        Their squared distances.
    recall : float
        Which share of the true neighbors these are, on a sample; 1 if exact.
    """
    n, d = X.shape
    kind = torch.int32 if n < 2**31 else torch.int64
    if n <= FEW:
        every = torch.arange(n, device=X.device)
        columns, costs = all_pairs(X, every, m, budget)
        return columns.to(kind), _in_range(costs), 1.0
    wanted = wanted_recall(how, n, d, True, dear=DEAR, flat=0)
    if float(X.abs().max()) > FARTHEST:
        raise InputError(OVERFLOW)
    search = _Search(X, divided(X), m, kernels, budget)
    every = torch.arange(len(search.cells), device=X.device)
    if wanted == 1.0:
        return *search.run(every, possible_cells, kind), 1.0
    rng = np.random.default_rng(SEED)
    chosen = rng.choice(len(every), min(SAMPLED, len(every)), replace=False)
    some = torch.from_numpy(np.sort(chosen)).to(X.device)
    true = search.found(some, possible_cells)
    look = search.enough(some, true[0], wanted)
    columns, costs = search.run(every, partial(closest_cells, look=look), kind)
    asked = search.cells.numbers[some].view(-1)
    real = asked < n
    near = costs[asked[real]] <= true[1][real, -1:] * (1 + 1e-12)
    return columns, costs, float(near.to(torch.float64).mean())


@dataclass(frozen=True, eq=False)
class _Search:
    """A search among points in cells."""

    X: torch.Tensor
    cells: Cells
    m: int
    kernels: Any
    budget: int

    def run(
        self, every: torch.Tensor, lists: Callable[..., Any], kind: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return neighbors and costs of all points, in the order of the data."""
        n = self.cells.n
        columns = torch.empty((n, self.m), dtype=kind, device=self.X.device)
        costs = torch.empty((n, self.m), dtype=torch.float64, device=self.X.device)
        room = max(ROOM, 4 * self.m)
        each = 16 * self.cells.size * room + 32 * len(self.cells.centers)
        lost = []
        for rows in every.split(max(1, self.budget // each)):
            numbers = self.cells.numbers[rows].view(-1)
            *found, open_ = self.looked(rows, lists)
            inside = numbers < n
            columns[numbers[inside]] = found[0][inside].to(kind)
            costs[numbers[inside]] = found[1][inside]
            lost.append(numbers[open_])
        some = torch.cat(lost)
        same = costs[some, -1] == 0  # more duplicates than there was room for
        rest = some[~same]
        if rest.shape[0]:
            others, far = self._all(rest)
            columns[rest], costs[rest] = others.to(kind), far
        if bool(same.any()):
            alike, firsts = self._duplicates(costs[:, -1])
            columns[alike], costs[alike] = firsts.to(kind), 0.0
            rest = some[same & ~torch.isin(some, alike)]
            others, far = self._all(rest)
            columns[rest], costs[rest] = others.to(kind), far
        return columns, _in_range(costs)

    def _all(self, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return all_pairs(self.X, numbers, self.m, self.budget)

    def _duplicates(self, last: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return points that have m duplicates and more, and the first m of these.

        Parameters
        ----------
        last : tensor of shape (n,)
            The cost of the m-th neighbor; 0 for such points.
        """
        m, numbers = self.m, (last == 0).nonzero()[:, 0]
        _, group = torch.unique(self.X[numbers], dim=0, return_inverse=True)
        size = torch.bincount(group)
        whole = size[group] > m  # of others the squares vanished
        numbers, group = numbers[whole], group[whole]
        order = torch.argsort(group, stable=True)  # by group, then by number
        size = torch.where(size > m, size, 0)
        start = (size.cumsum(0) - size)[group]
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device=order.device)
        at = torch.arange(m, device=order.device)[None, :]
        at = at + (at >= (place - start)[:, None])  # not the point itself
        return numbers, numbers[order[start[:, None] + at]]

    def found(
        self, rows: torch.Tensor, lists: Callable[..., Any]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the neighbors of the points of some parts, and their costs."""
        columns, costs, lost = self.looked(rows, lists)
        some = lost.nonzero()[:, 0]
        if some.shape[0]:
            numbers = self.cells.numbers[rows].view(-1)[some]
            columns[some], costs[some] = self._all(numbers)
        return columns, costs

    def looked(
        self, rows: torch.Tensor, lists: Callable[..., Any]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return neighbors and costs for some parts, and for which points not all."""
        cells, m = self.cells, self.m
        room = max(ROOM, 4 * m)
        text: Any = self.kernels.within if self.kernels else within
        numbers = cells.numbers[rows].view(-1)
        bounds = self.bounds(rows)
        columns = torch.zeros((len(numbers), m), dtype=torch.int64, device=rows.device)
        costs = torch.full(columns.shape, math.inf, device=rows.device).double()
        tied = torch.zeros_like(numbers, dtype=torch.bool)
        for plan in (lists, possible_cells):  # all that are possible, where too few
            asked = torch.isinf(costs[:, -1]) & (numbers < cells.n)
            limit = torch.where(asked, bounds, -1.0)
            for _ in range(AGAIN):
                some = (limit >= 0).nonzero()[:, 0]
                if some.shape[0] == 0:
                    break
                kept, count = text(cells, rows, limit, *plan(cells, rows, limit), room)
                made = self._nearest(numbers[some], kept[some], count[some])
                columns[some], costs[some] = made
                # where there was no room, what was kept is a better bound
                last = (costs[:, -1] / cells.unit**2 * (1 + SINGLE)).to(torch.float32)
                last = torch.minimum(limit, last).clamp(min=TINY)
                full, same = count > room, costs[:, -1] == 0
                tied |= full & same  # no bound is better
                limit = torch.where(full & ~same, last, -1.0)
            tied |= limit >= 0
        lost = (tied | torch.isinf(costs[:, -1])) & (numbers < cells.n)
        return columns, costs, lost

    def bounds(self, rows: torch.Tensor) -> torch.Tensor:
        """Return bounds for the points of some parts, by tiles."""
        cells = self.cells
        text = self.kernels.minima if self.kernels else minima
        wide = PARTS * (cells.size + CLOSE)
        step = max(1, self.budget // (8 * cells.size * wide))
        made = [first_bounds(cells, some, self.m, text) for some in rows.split(step)]
        return torch.cat(made)

    def _nearest(
        self, numbers: torch.Tensor, kept: torch.Tensor, count: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Measure what was kept; most rows kept few."""
        m, X, cells = self.m, self.X, self.cells
        columns = torch.empty((len(numbers), m), dtype=torch.int64, device=X.device)
        costs = torch.empty((len(numbers), m), dtype=torch.float64, device=X.device)
        narrow = min(max(NARROW, 3 * m), kept.shape[1])
        few = count <= narrow
        for which, width in ((few, narrow), (~few, kept.shape[1])):
            step = max(1, self.budget // (16 * width * (X.shape[1] + 4)))
            for some in which.nonzero()[:, 0].split(step):
                places = kept[some][:, :width]
                inside = torch.arange(width, device=X.device) < count[some][:, None]
                inside &= places >= 0  # fewer where parts were too many
                places = torch.where(inside, places, 0)
                others = cells.numbers.view(-1)[places]
                others = torch.where(inside, others, cells.n)
                columns[some], costs[some] = measured(X, numbers[some], others, m)
        return columns, costs

    def enough(self, rows: torch.Tensor, true: torch.Tensor, wanted: float) -> int:
        """Return how many close cells hold the wanted share of true neighbors."""
        cells = self.cells
        flat = cells.numbers.view(-1)
        cell = torch.empty(cells.n + 1, dtype=torch.int64, device=flat.device)
        each = cells.size * PARTS
        cell[flat] = torch.arange(flat.shape[0], device=flat.device) // each
        D = from_middles(cells, rows)
        inside = cells.numbers[rows] < cells.n
        there = cell[true.clamp(max=cells.n - 1)].view(len(rows), -1)
        sorted_, _ = D.sort(dim=1)
        ranks = torch.searchsorted(sorted_, D.gather(1, there))
        ranks = ranks.view(len(rows), cells.size, -1)[inside].view(-1).sort().values
        return int(ranks[math.ceil(wanted * (ranks.shape[0] - 1))]) + 1


def _in_range(costs: torch.Tensor) -> torch.Tensor:
    if bool(torch.isfinite(costs).all()):
        return costs
    raise InputError(OVERFLOW)
