"""Distances from points to cells and to one another, tile by tile."""

import math
from collections.abc import Callable
from typing import Any

import torch

from bistochastic.places.torch_device.cells import PARTS, SINGLE, Cells

CLOSE = 64  # cells whose points bound the distance of the m-th neighbor
GROUP = 1024  # numbers of which the smallest bounds that which is looked for
TF32 = 2.0**-8 + 2.0**-11  # of |x| |y|: error of a distance by matrix units
TINY = 1e-36  # singles below it lose digits
BUDGET = 1 << 30  # bytes for tiles, besides the points and the result


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
    D = from_middles(cells, rows)
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
    gap = from_middles(cells, rows) * (1 - SINGLE) - cells.radii
    possible = (gap <= reach[:, None]) & (farthest >= 0)[:, None]
    starts = torch.nn.functional.pad(possible.sum(1).cumsum(0), (1, 0))
    return starts, possible.nonzero()[:, 1]


def from_middles(cells: Cells, rows: torch.Tensor) -> torch.Tensor:
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


def mth_smallest(D: torch.Tensor, m: int) -> torch.Tensor:
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
        last = mth_smallest(D, m)
        nearer, tied = D < last, D == last
        rest = m - nearer.sum(1, keepdim=True)
        kept = nearer | (tied & (tied.cumsum(1) <= rest))
        columns = kept.nonzero()[:, 1].view(-1, m)  # by number
        costs = (whole[columns] - Y[a : a + step, None, :]).square().sum(2)
        costs, order = torch.sort(costs, dim=1, stable=True)
        made.append((torch.gather(columns, 1, order), costs))
    columns, costs = (torch.cat(part) for part in zip(*made, strict=True))
    return columns, costs
