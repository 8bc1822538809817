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

PART = 128  # points of a part, at most
PARTS = 8  # parts of a cell
FEW = 8192  # points up to which all pairs are measured in doubles
CLOSE = 64  # cells whose points bound the distance of the m-th neighbor
ROOM = 128  # points within the bound that there is room for, or four times m
NARROW = 48  # points that most rows keep, or three times m
AGAIN = 7  # searches for points for which there is no room
GROUP = 1024  # numbers of which the smallest bounds that which is looked for
TURNS = 3  # of power iterations for the direction in which a part is divided
SAMPLED = 64  # parts whose exact neighbors say how many cells are looked at
SEED = 0
FAR = 1e15  # how far the points that fill up parts are; others are nearer than one
TF32 = 2.0**-8 + 2.0**-11  # of |x| |y|: error of a distance by matrix units
SINGLE = 2.0**-18  # of |x|^2 + |y|^2: the same by singles
TINY = 1e-36  # singles below it lose digits
FARTHEST = 1e150  # coordinates beyond it have no squares
OVERFLOW = (
    "Squared distances overflow: the points lie too far apart for doubles. "
    "Divide the columns of X by a number first."
)
BUDGET = 1 << 30  # bytes for tiles, besides the points and the result
DEAR = 1e14  # n^2 d from which on an exact search is not the default
LOWER = 0.95  # recall wanted by default then


@dataclass(frozen=True, eq=False)
class Cells:
    """Points in cells, and these in parts of equal size.

    Attributes
    ----------
    numbers : tensor of int64 of shape (parts, size)
        The points of each part; n where it is filled up. Eight parts are a cell.
    x : tensor of float32 of shape (parts * size, d)
        Their coordinates less the center of the cell, all less than one; 0 where a part
        is filled up. Columns of zeros make d a power of two, or a multiple of 64.
    lengths : tensor of float32 of shape (parts * size,)
        |x|^2, less what rounding may have added; FAR^2 where it is filled up.
    centers, radii : tensor of shape (cells, d) and (cells,)
        Means of cells, and how far their points are from these.
    middles, reaches : tensor of shape (parts, d) and (parts,)
        The same of parts.
    unit : float
        What the coordinates were divided by.
    n : int
        Number of points.
    """

    numbers: torch.Tensor
    x: torch.Tensor
    lengths: torch.Tensor
    centers: torch.Tensor
    radii: torch.Tensor
    middles: torch.Tensor
    reaches: torch.Tensor
    unit: float
    n: int

    @property
    def size(self) -> int:
        """Points of a part."""
        return self.numbers.shape[1]

    def __len__(self) -> int:
        """Return the number of parts."""
        return self.numbers.shape[0]


def divided(X: torch.Tensor) -> Cells:
    """Divide points into cells, halving along the widest direction time and again.

    Parameters
    ----------
    X : tensor of shape (n, d)
        Points around their median, more than FEW.

    Returns
    -------
    Cells
        Parts are at least four fifths full.
    """
    n, d = X.shape
    depth = max(3, math.floor(math.log2(n / (4 * PART))))
    first = -(-n // (PART << depth))  # into how many the first division is
    number = first << depth
    size = -(-n // number)
    place = torch.arange(size * number, device=X.device)
    order, filled = place % n, place >= n  # some twice
    unit = math.ldexp(1.0, math.frexp(float(X.abs().max()))[1])
    start = torch.from_numpy(np.random.default_rng(SEED).standard_normal(d)).to(X)
    for level in range(depth + 1):
        many = first << level - 1 if level else 1
        order, filled = _halved(X, order, filled, many, start, unit)
    numbers = torch.where(filled, n, order).view(number, size)
    inside = (~filled)[:, None]
    x = X[order].to(torch.float64) / unit
    middles, reaches, _ = _around(x, inside, number)
    centers, radii, x = _around(x, inside, number // PARTS)
    squares = x.square().sum(1)
    lengths = torch.where(filled, FAR**2, squares * (1 - SINGLE)).to(torch.float32)
    wide = (
        0,
        max(16, 1 << (d - 1).bit_length() if d <= PART else -(-d // 64) * 64) - d,
    )
    pad = torch.nn.functional.pad
    x = pad(x.to(torch.float32), wide).contiguous()
    places = (pad(middle, wide).contiguous() for middle in (centers, middles))
    centers, middles = places
    return Cells(numbers, x, lengths, centers, radii, middles, reaches, unit, n)


def _halved(
    X: torch.Tensor,
    order: torch.Tensor,
    filled: torch.Tensor,
    many: int,
    v: torch.Tensor,
    unit: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sort the points of each of many pieces along its widest direction."""
    x = (X[order] / unit).view(many, -1, X.shape[1])
    x = x - x.mean(1, keepdim=True)
    v = v.expand(many, -1)
    for _ in range(TURNS):
        along = torch.bmm(x, v[:, :, None])
        v = torch.bmm(along.mT, x)[:, 0]
        v = v / torch.linalg.vector_norm(v, dim=1, keepdim=True).clamp(min=1e-300)
    along = torch.bmm(x, v[:, :, None])[:, :, 0]
    place = torch.sort(along, dim=1, stable=True).indices
    place += torch.arange(many, device=X.device)[:, None] * along.shape[1]
    return order[place.view(-1)], filled[place.view(-1)]


def _around(
    x: torch.Tensor, inside: torch.Tensor, many: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the means of many pieces, their radii, and the points less the means."""
    x, inside = x.view(many, -1, x.shape[1]), inside.view(many, -1, 1)
    means = (x * inside).sum(1) / inside.sum(1).clamp(min=1)
    x = (x - means[:, None, :]) * inside
    radii = (x.square().sum(2).amax(1).sqrt() * (1 + SINGLE)).to(torch.float32)
    return means, radii, x.view(-1, x.shape[2])


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
    wanted = how
    if isinstance(how, str):
        dear = how == "auto" and float(n) * n * d > DEAR
        wanted = LOWER if dear else 1.0
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
        D = _from_middles(cells, rows)
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


def first_bounds(
    cells: Cells, rows: torch.Tensor, m: int, text: Callable[..., Any]
) -> torch.Tensor:
    """Bound the squared distance of the m-th neighbor, by points in close cells.

    Parameters
    ----------
    cells : Cells
        All points.
    rows : tensor of int64 of shape (r,)
        Parts whose points are asked for.
    m : int
        Which neighbor.
    text : callable
        `minima`, or a body of it.

    Returns
    -------
    tensor of float32 of shape (r * size,)
        No less than the distance of the m-th other point; -1 where parts are filled up.
    """
    size, each = cells.size, cells.size * PARTS
    own = rows // PARTS
    x = cells.x.view(len(cells), size, -1)[rows]
    y = cells.x.view(-1, each, x.shape[2])[own]
    away = cells.lengths.view(-1, each)[own]
    D = torch.baddbmm(away[:, None, :], x, y.mT, alpha=-2.0)
    D += x.square().sum(2)[:, :, None]
    D += 4 * TF32 * cells.radii[own].square()[:, None, None]  # torch may use tf32
    look = min(CLOSE, len(cells.centers))
    _, ids = nearest_cells(cells, rows, look)
    ids = ids.view(len(rows), look)
    others = ids[ids != own[:, None]].view(len(rows), look - 1)
    if look > 1:
        least = text(cells, rows, others).view(len(rows), size, -1)
        D = torch.cat([D, least], dim=2)
    last = D.topk(min(m + 1, D.shape[2]), dim=2, largest=False).values[..., -1]
    return (
        last.clamp(min=TINY).masked_fill(cells.numbers[rows] == cells.n, -1.0).view(-1)
    )


def minima(cells: Cells, rows: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Return the distance of the nearest point in each part of some cells.

    Parameters
    ----------
    cells : Cells
        All points.
    rows : tensor of int64 of shape (r,)
        Parts whose points are asked for.
    ids : tensor of int64 of shape (r, look)
        Cells to look at, for each.

    Returns
    -------
    tensor of float32 of shape (r * size, look * PARTS)
        Squared distances, or a little more.
    """
    size, d = cells.size, cells.x.shape[1]
    x = cells.x.view(len(cells), size, d)[rows]
    shift = (cells.centers[ids] - cells.centers[rows // PARTS][:, None]).to(x.dtype)
    made = []
    for at in range(ids.shape[1]):
        gap = x - shift[:, at, None, :]
        away = gap.square().sum(2)[:, :, None]
        y = cells.x.view(-1, size * PARTS, d)[ids[:, at]]
        length = cells.lengths.view(-1, size * PARTS)[ids[:, at]]
        D = torch.baddbmm(length[:, None, :], gap, y.mT, alpha=-2.0)
        least = D.view(len(rows), size, PARTS, size).amin(3)
        spread = cells.radii[ids[:, at]].square() + cells.radii[rows // PARTS].square()
        made.append(least + away + 4 * SINGLE * (away + spread[:, None, None]))
    return torch.cat(made, dim=2).view(-1, ids.shape[1] * PARTS)


def nearest_cells(
    cells: Cells, rows: torch.Tensor, look: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the closest cells of parts, their own among them: starts, and cells."""
    D = _from_middles(cells, rows)
    D.scatter_(1, (rows // PARTS)[:, None], -1.0)
    ids = D.topk(min(look, D.shape[1]), dim=1, largest=False, sorted=False).indices
    starts = torch.arange(ids.shape[0] + 1, device=D.device) * ids.shape[1]
    return starts, ids.view(-1)


def closest_cells(
    cells: Cells, rows: torch.Tensor, bounds: torch.Tensor, look: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the closest cells of parts that are asked for: starts, and cells."""
    asked = bounds.view(-1, cells.size).amax(1) >= 0
    _, ids = nearest_cells(cells, rows, look)
    ids = ids.view(len(rows), -1)
    starts = torch.nn.functional.pad((asked * ids.shape[1]).cumsum(0), (1, 0))
    return starts, ids[asked].view(-1)


def possible_cells(
    cells: Cells, rows: torch.Tensor, bounds: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the cells in which points within the bounds can lie: starts, and cells."""
    farthest = bounds.view(-1, cells.size).amax(1)
    reach = farthest.clamp(min=0).sqrt() * (1 + SINGLE) + cells.reaches[rows]
    gap = _from_middles(cells, rows) * (1 - SINGLE) - cells.radii
    possible = (gap <= reach[:, None]) & (farthest >= 0)[:, None]
    starts = torch.nn.functional.pad(possible.sum(1).cumsum(0), (1, 0))
    return starts, possible.nonzero()[:, 1]


def _from_middles(cells: Cells, rows: torch.Tensor) -> torch.Tensor:
    """Return the distances of the middles of parts to the centers of cells."""
    x, y = cells.middles[rows], cells.centers
    D = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")  # no rounding
    return D.to(torch.float32)


def within(
    cells: Cells,
    rows: torch.Tensor,
    bounds: torch.Tensor,
    starts: torch.Tensor,
    ids: torch.Tensor,
    room: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the points within bounds, in some cells for each part.

    Parameters
    ----------
    cells : Cells
        All points.
    rows : tensor of int64 of shape (r,)
        Parts whose points are asked for.
    bounds : tensor of float32 of shape (r * size,)
        Squared distances; -1 for points that are not asked for.
    starts, ids : tensor of int
        The cells to compare with: ``ids[starts[a] : starts[a + 1]]`` for the a-th part.
    room : int
        How many are kept of a point.

    Returns
    -------
    found : tensor of int of shape (r * size, room)
        Places of points, in no order; rounding lets in some more.
    count : tensor of int of shape (r * size,)
        How many there are, perhaps more than there is room for.
    """
    size, d = cells.size, cells.x.shape[1]
    each = size * PARTS
    pairs = torch.repeat_interleave(
        torch.arange(len(rows), device=rows.device), starts.diff()
    )
    step = max(1, (1 << 22) // (size * each))
    kept = []
    for a in range(0, ids.shape[0], step):
        here, there = pairs[a : a + step], ids[a : a + step]
        shift = cells.centers[there] - cells.centers[rows[here] // PARTS]
        gap = cells.x.view(-1, size, d)[rows[here]] - shift[:, None, :].to(
            torch.float32
        )
        length = cells.lengths.view(-1, each)[there]
        y = cells.x.view(-1, each, d)[there]
        D = torch.baddbmm(length[:, None, :], gap, y.mT, alpha=-2.0)
        away = gap.square().sum(2)
        own, other = cells.radii[rows[here] // PARTS], cells.radii[there]
        away -= SINGLE * (away + (own.square() + other.square())[:, None])
        limit = bounds.view(-1, size)[here]
        limit = torch.where(limit >= 0, limit - away, -math.inf)
        b, i, j = torch.nonzero(D <= limit[:, :, None], as_tuple=True)
        kept.append(torch.stack([here[b] * size + i, there[b] * each + j]))
    none = torch.empty((2, 0), dtype=torch.int64, device=rows.device)
    row, place = torch.cat([none, *kept], dim=1)
    order = torch.argsort(row, stable=True)
    row, place = row[order], place[order]
    count = torch.bincount(row, minlength=bounds.shape[0])
    at = torch.arange(row.shape[0], device=row.device) - (count.cumsum(0) - count)[row]
    found = torch.zeros(
        (bounds.shape[0], room), dtype=torch.int64, device=bounds.device
    )
    found[row[at < room], at[at < room]] = place[at < room]
    return found, count


def measured(
    X: torch.Tensor, rows: torch.Tensor, found: torch.Tensor, m: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Measure the distances of points by differences; keep the m nearest others.

    Parameters
    ----------
    X : tensor of shape (n, d)
        Points.
    rows : tensor of int64 of shape (r,)
        Some of them; what is not below n is no point.
    found : tensor of int64 of shape (r, w)
        Others for each; what is not below n is no point.
    m : int
        How many to keep.

    Returns
    -------
    columns : tensor of int64 of shape (r, m)
        The nearest first, ties by number.
    costs : tensor of float64 of shape (r, m)
        Squared distances; infinite where there are fewer.
    """
    n = X.shape[0]
    if found.shape[1] <= m:
        found = torch.nn.functional.pad(found, (0, m + 1 - found.shape[1]), value=n)
    costs = torch.empty(found.shape, dtype=torch.float64, device=X.device)
    step = max(1, (1 << 26) // (found.shape[1] * X.shape[1]))
    for a in range(0, rows.shape[0], step):
        some = slice(a, a + step)
        here = X[rows[some].clamp(max=n - 1)].to(torch.float64)
        gap = X[found[some].clamp(max=n - 1)] - here[:, None, :]
        costs[some] = gap.square_().sum(2)
    costs.masked_fill_((found >= n) | (found == rows[:, None]), math.inf)
    near, order = costs.topk(m + 1, dim=1, largest=False)
    tied = ((near[:, -1] == near[:, -2]) & torch.isfinite(near[:, -1])).nonzero()[:, 0]
    kept = torch.gather(found, 1, order[:, :m])
    costs_kept = near[:, :m]
    if tied.shape[0]:  # the lowest numbers
        numbers, order = torch.sort(found[tied], dim=1)
        costs, again = torch.sort(costs[tied].gather(1, order), dim=1, stable=True)
        kept[tied] = numbers.gather(1, again[:, :m])
        costs_kept[tied] = costs[:, :m]
    kept, order = torch.sort(kept, dim=1)
    costs_kept, again = torch.sort(costs_kept.gather(1, order), dim=1, stable=True)
    return kept.gather(1, again), costs_kept


def all_pairs(
    X: torch.Tensor, rows: torch.Tensor, m: int, budget: int = BUDGET
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the m nearest other points of some by comparing with all, in doubles.

    Parameters
    ----------
    X : tensor of shape (n, d)
        Points.
    rows : tensor of int64 of shape (r,)
        Some of them.
    m : int
        How many.
    budget : int, optional
        Bytes for tiles.

    Returns
    -------
    columns : tensor of int64 of shape (r, m)
        The nearest first, ties by number.
    costs : tensor of float64 of shape (r, m)
        Squared distances.
    """
    columns, costs = nearest_to(X, X[rows], m + 1, budget)
    own = columns == rows[:, None]
    own[~own.any(1), -1] = True  # more than m duplicates pushed it out
    return columns[~own].view(-1, m), costs[~own].view(-1, m)


def _mth(D: torch.Tensor, m: int) -> torch.Tensor:
    """Return the m-th smallest number of each row.

    The smallest of groups bound it, and leave few numbers to choose from.
    """
    n = D.shape[1]
    groups = n // GROUP
    if groups <= 4 * m:
        return D.topk(m, dim=1, largest=False).values[:, -1:]
    least = D[:, : groups * GROUP].view(len(D), groups, GROUP).amin(2)
    bound = least.topk(m, dim=1, largest=False).values[:, -1:]
    near = D <= bound
    count = near.sum(1)
    if int(count.max()) > GROUP:  # ties
        return D.topk(m, dim=1, largest=False).values[:, -1:]
    row, column = near.nonzero(as_tuple=True)
    at = torch.arange(len(row), device=D.device) - (count.cumsum(0) - count)[row]
    few = torch.full((len(D), int(count.max())), math.inf, device=D.device).to(D.dtype)
    few[row, at] = D[row, column]
    return few.topk(m, dim=1, largest=False).values[:, -1:]


def nearest_to(
    X: torch.Tensor, Y: torch.Tensor, m: int, budget: int = BUDGET
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the m points nearest to each row of Y by comparing with all, in doubles.

    Parameters
    ----------
    X : tensor of shape (n, d)
        Points, at least m of them.
    Y : tensor of shape (r, d)
        Others.
    m : int
        How many.
    budget : int, optional
        Bytes for tiles.

    Returns
    -------
    columns : tensor of int64 of shape (r, m)
        The nearest first, ties by number.
    costs : tensor of float64 of shape (r, m)
        Squared distances.
    """
    n = X.shape[0]
    whole = X.to(torch.float64)
    step = max(1, budget // max(32 * n, 24 * m * X.shape[1]))
    mode = "donot_use_mm_for_euclid_dist"
    none = torch.empty((0, m), dtype=torch.float64, device=X.device)
    made = [(none.to(torch.int64), none)]
    for a in range(0, Y.shape[0], step):
        D = torch.cdist(Y[a : a + step].to(torch.float64), whole, compute_mode=mode)
        last = _mth(D, m)
        nearer, tied = D < last, D == last
        rest = m - nearer.sum(1, keepdim=True)
        kept = nearer | (tied & (tied.cumsum(1) <= rest))
        columns = kept.nonzero()[:, 1].view(-1, m)  # by number
        costs = (whole[columns] - Y[a : a + step, None, :]).square().sum(2)
        costs, order = torch.sort(costs, dim=1, stable=True)
        made.append((torch.gather(columns, 1, order), costs))
    columns, costs = (torch.cat(part) for part in zip(*made, strict=True))
    return columns, costs
