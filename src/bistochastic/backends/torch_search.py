"""Nearest neighbors on a device: cells of a tree, bounds, then pairs of cells.

Points are divided into cells of equal size, neighbors mostly in one cell or in cells
close by. The distances to the points in some close cells bound the distance of the m-th
neighbor from above. Then pairs of cells are compared, a tile of distances each, and
only points within the bound are kept: no tile is sorted, and none is written to memory.
What is kept is measured again by differences, in doubles. An exact search compares all
pairs of cells that their centers and radii do not rule out; an approximate one compares
a cell with as many close ones as a sample of exact neighbors asks for.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bistochastic.core.errors import InputError

CELL = 128  # points of a cell, at most
FEW = 8192  # points up to which all pairs are measured in doubles
NEAR = 32  # cells whose points bound the distance of the m-th neighbor at first
CLOSE = 16  # one of so many cells is looked at for a better bound
ROOM = 128  # points within the bound that there is room for, by neighbors wanted
TURNS = 3  # of power iterations for the direction in which a cell is divided
TURNS_MORE = 6  # searches of points for which there was no room
SAMPLED = 512  # points whose exact neighbors say how many cells are looked at
SEED = 0
FAR = 1e15  # where the points that fill up cells lie; others are nearer than one
TF32 = 2.0**-8 + 2.0**-11  # of |x| |y|: error of a distance by matrix units
SINGLE = 2.0**-18  # of |x|^2 + |y|^2: the same by singles
BUDGET = 1 << 30  # bytes for tiles, besides the points and the result
DEAR = 1e14  # n^2 d from which on an exact search is not the default
LOWER = 0.95  # recall wanted by default then


@dataclass(frozen=True, eq=False)
class Cells:
    """Points in cells of equal size.

    Attributes
    ----------
    numbers : tensor of int64 of shape (cells, size)
        The points of each cell; n where it is filled up.
    x : tensor of float32 of shape (cells * size, d)
        Their coordinates less the center of the cell, all less than one; 0 where it is
        filled up. Columns of zeros make d a multiple of 16.
    lengths : tensor of float32 of shape (cells * size,)
        |x|^2, less what rounding may have added; FAR^2 where it is filled up.
    centers : tensor of float64 of shape (cells, d)
        Means.
    radii : tensor of float32 of shape (cells,)
        The farthest point of each cell from its center.
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
    unit: float
    n: int

    @property
    def size(self) -> int:
        """Points of a cell."""
        return self.numbers.shape[1]

    def __len__(self) -> int:
        return self.numbers.shape[0]


def divided(X: torch.Tensor) -> Cells:
    """Divide points into cells, halving along the widest direction time and again.

    Parameters
    ----------
    X : tensor of shape (n, d)
        Points around their median.

    Returns
    -------
    Cells
        At least four fifths full.
    """
    n, d = X.shape
    depth = max(0, math.floor(math.log2(n / (4 * CELL))))
    parts = -(-n // (CELL << depth))  # of the first division: four to eight
    number = parts << depth
    size = -(-n // number)
    place = torch.arange(size * number, device=X.device)
    order, filled = place % n, place >= n  # some twice
    unit = 2.0 ** math.frexp(float(X.abs().max()))[1]
    start = torch.from_numpy(np.random.default_rng(SEED).standard_normal(d))
    for level in range(depth + 1):
        cells = parts << level - 1 if level else 1
        order, filled = _halved(X, order, filled, cells, start.to(X))
    numbers = torch.where(filled, n, order).view(number, size)
    inside = (~filled).view(number, size, 1)
    x = X[order].view(number, size, d).to(torch.float64) / unit
    centers = (x * inside).sum(1) / inside.sum(1).clamp(min=1)
    x = (x - centers[:, None, :]) * inside
    squares = x.square().sum(2)
    radii = (squares.amax(1).sqrt() * (1 + SINGLE)).to(torch.float32)
    lengths = torch.where(inside[:, :, 0], squares * (1 - SINGLE), FAR**2)
    lengths = lengths.to(torch.float32).view(-1)
    wide = (0, -d % 16)
    x = torch.nn.functional.pad(x.view(-1, d).to(torch.float32), wide).contiguous()
    centers = torch.nn.functional.pad(centers, wide)
    return Cells(numbers, x, lengths, centers, radii, unit, n)


def _halved(
    X: torch.Tensor, order: torch.Tensor, filled: torch.Tensor, cells: int, v: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sort the points of each cell along its widest direction."""
    x = X[order].view(cells, -1, X.shape[1])
    x = x - x.mean(1, keepdim=True)
    v = v.expand(cells, -1)
    for _ in range(TURNS):
        along = torch.bmm(x, v[:, :, None])
        v = torch.bmm(along.mT, x)[:, 0]
        v = v / torch.linalg.vector_norm(v, dim=1, keepdim=True).clamp(min=1e-300)
    along = torch.bmm(x, v[:, :, None])[:, :, 0]
    place = torch.sort(along, dim=1, stable=True).indices
    place += torch.arange(cells, device=X.device)[:, None] * along.shape[1]
    return order[place.view(-1)], filled[place.view(-1)]


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
        Compiled bodies of the functions here.
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
    wanted = how
    if isinstance(how, str):
        dear = how == "auto" and float(n) * n * d > DEAR
        wanted = LOWER if dear else 1.0
    kind = torch.int32 if n < 2**31 else torch.int64
    columns = torch.empty((n, m), dtype=kind, device=X.device)
    costs = torch.empty((n, m), dtype=torch.float64, device=X.device)
    if n <= FEW:
        every = torch.arange(n, device=X.device)
        columns[:], costs[:] = all_pairs(X, every, m, budget)
        return columns, _in_range(costs), 1.0
    cells = divided(X)
    sample = None
    if wanted < 1.0:
        sample = _sampled(X, m, budget)
        look = _enough(cells, *sample[:2], wanted)
        plan = [lambda rows, bounds: nearest_cells(cells, rows, look)]
    else:
        plan = [
            lambda rows, bounds: nearest_cells(cells, rows, len(cells) // CLOSE),
            lambda rows, bounds: possible_cells(cells, rows, bounds),
        ]
    text = kernels.within if kernels else within
    lost = []
    for rows in _chunks(cells, m, budget):
        numbers = cells.numbers[rows].view(-1)
        found, open_ = _searched(X, cells, rows, plan, text, m, budget)
        inside = numbers < n
        columns[numbers[inside]] = found[0][inside].to(kind)
        costs[numbers[inside]] = found[1][inside]
        lost.append(numbers[inside & open_])
    again = torch.cat(lost)
    if again.numel():  # ties, or too few cells
        columns[again], costs[again] = (
            part.to(to.dtype)
            for part, to in zip(
                all_pairs(X, again, m, budget), (columns, costs), strict=True
            )
        )
    recall = 1.0
    if sample is not None:
        asked, _, last = sample
        near = costs[asked] <= last[:, None] * (1 + 1e-12)
        recall = float(near.to(torch.float64).mean())
    return columns, _in_range(costs), recall


def _in_range(costs: torch.Tensor) -> torch.Tensor:
    if bool(torch.isfinite(costs).all()):
        return costs
    raise InputError(
        "Squared distances overflow: the points lie too far apart for doubles. "
        "Divide the columns of X by a number first."
    )


def _chunks(cells: Cells, m: int, budget: int) -> Iterator[slice]:
    """Cut the cells into slices whose candidates fit into the budget."""
    room = max(ROOM, 4 * m)
    each = cells.size * room * 32 + len(cells) * 16
    step = max(1, budget // each)
    return (slice(a, a + step) for a in range(0, len(cells), step))


def _searched(
    X: torch.Tensor,
    cells: Cells,
    rows: slice,
    plan: list[Callable[..., Any]],
    text: Callable[..., Any],
    m: int,
    budget: int,
) -> tuple[tuple[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Search for the points of some cells; tell for which it has no end."""
    room = max(ROOM, 4 * m)
    numbers = cells.numbers[rows].view(-1)
    bounds = first_bounds(cells, rows, m, budget)
    for lists in plan:
        found, count = text(cells, rows, bounds, *lists(rows, bounds), room)
        best = measured(X, numbers, _numbers(cells, found, count), m)
        bounds = _better(cells, bounds, best[1])
    for _ in range(TURNS_MORE):  # what was kept is a better bound for the others
        some = (count > room).nonzero()[:, 0]
        if some.shape[0] == 0:
            break
        bounds = torch.where(count > room, bounds, -1.0)
        found, count = text(cells, rows, bounds, *lists(rows, bounds), room)
        again = measured(X, numbers[some], _numbers(cells, found[some], count[some]), m)
        best[0][some], best[1][some] = again
        bounds = _better(cells, bounds, best[1])
    return best, (count > room) | torch.isinf(best[1][:, -1])


def _better(cells: Cells, bounds: torch.Tensor, costs: torch.Tensor) -> torch.Tensor:
    """Return bounds no larger than the cost of the last neighbor that was found."""
    last = (costs[:, -1] / cells.unit**2 * (1 + SINGLE)).to(torch.float32)
    return torch.minimum(last, bounds)


def _numbers(cells: Cells, found: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """Return the numbers of points by their places, n where there is none."""
    width = max(1, min(int(count.max()), found.shape[1]))
    inside = torch.arange(width, device=count.device) < count[:, None]
    places = torch.where(inside, found[:, :width], 0)
    return torch.where(inside, cells.numbers.view(-1)[places], cells.n)


def first_bounds(cells: Cells, rows: slice, m: int, budget: int) -> torch.Tensor:
    """Bound the squared distance of the m-th neighbor, by points in close cells.

    Parameters
    ----------
    cells : Cells
        All points.
    rows : slice
        Cells whose points are asked for.
    m : int
        Which neighbor.
    budget : int
        Bytes for tiles.

    Returns
    -------
    tensor of float32 of shape (points,)
        No less than the distance of the m-th other point; -1 where cells are filled up.
    """
    look = min(NEAR, len(cells))
    x = cells.x.view(len(cells), cells.size, -1)
    step = max(1, budget // (8 * cells.size * cells.size * look))
    made = []
    for a in range(*rows.indices(len(cells))[:2], step):
        some = slice(a, min(a + step, rows.indices(len(cells))[1]))
        _, ids = nearest_cells(cells, some, look)
        ids = ids.view(-1, look)
        shift = (cells.centers[ids] - cells.centers[some][:, None]).to(x.dtype)
        y = (x[ids] + shift[:, :, None, :]).flatten(1, 2)
        here, there = x[some].square().sum(2), y.square().sum(2)
        there[cells.numbers[ids].flatten(1) == cells.n] = FAR**2
        D = torch.baddbmm(there[:, None, :], x[some], y.mT, alpha=-2.0)
        last = D.topk(min(m + 1, D.shape[2]), dim=2, largest=False).values[..., -1]
        near = last + here  # the error grows with |x|^2 + |y|^2 <= 3 (|x|^2 + d)
        made.append((near + SINGLE * (4 * here + 3 * near)).clamp(min=0).view(-1))
    filled = cells.numbers[rows].view(-1) == cells.n
    return torch.cat(made).masked_fill_(filled, -1.0)


def nearest_cells(
    cells: Cells, rows: slice, look: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the closest cells of each, by their centers: starts, and cells."""
    D = _between(cells, cells.centers[rows])
    ids = D.topk(min(look, len(cells)), dim=1, largest=False, sorted=False).indices
    starts = torch.arange(ids.shape[0] + 1, device=D.device) * ids.shape[1]
    return starts, ids.view(-1)


def possible_cells(
    cells: Cells, rows: slice, bounds: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the cells in which points within the bounds can lie: starts, and cells."""
    farthest = bounds.view(-1, cells.size).amax(1)
    reach = farthest.clamp(min=0).sqrt() * (1 + SINGLE) + cells.radii[rows]
    gap = _between(cells, cells.centers[rows]).sqrt() * (1 - SINGLE) - cells.radii
    open_ = (gap <= reach[:, None]) & (farthest >= 0)[:, None]
    starts = torch.nn.functional.pad(open_.sum(1).cumsum(0), (1, 0))
    return starts, open_.nonzero()[:, 1]


def _between(cells: Cells, x: torch.Tensor) -> torch.Tensor:
    """Return squared distances of some centers of cells to all."""
    y = cells.centers
    D = (x @ y.T).mul_(-2.0).add_(x.square().sum(1)[:, None]).add_(y.square().sum(1))
    return D.clamp_(min=0).to(torch.float32)


def within(
    cells: Cells,
    rows: slice,
    bounds: torch.Tensor,
    starts: torch.Tensor,
    ids: torch.Tensor,
    room: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the points within bounds, in some cells for each cell.

    Parameters
    ----------
    cells : Cells
        All points.
    rows : slice
        Cells whose points are asked for.
    bounds : tensor of float32 of shape (points,)
        Squared distances.
    starts, ids : tensor of int
        The cells to compare with: ``ids[starts[a] : starts[a + 1]]`` for the a-th.
    room : int
        How many are kept of a point.

    Returns
    -------
    found : tensor of int64 of shape (points, room)
        Places of points, in no order; rounding lets in some more.
    count : tensor of int64 of shape (points,)
        How many there are, perhaps more than there is room for.
    """
    size, x = cells.size, cells.x.view(len(cells), cells.size, -1)
    first = rows.indices(len(cells))[0]
    pairs = torch.repeat_interleave(
        torch.arange(starts.shape[0] - 1, device=x.device), starts.diff()
    )
    step = max(1, (1 << 22) // size**2)
    kept = []
    for a in range(0, ids.shape[0], step):
        here, there = pairs[a : a + step], ids[a : a + step]
        shift = cells.centers[there] - cells.centers[first + here]
        gap = x[first + here] - shift[:, None, :].to(x.dtype)
        length = cells.lengths.view(-1, size)[there]
        D = torch.baddbmm(length[:, None, :], gap, x[there].mT, alpha=-2.0)
        limit = bounds.view(-1, size)[here]
        away = gap.square().sum(2)
        away -= SINGLE * away.sqrt() * (away.sqrt() + cells.radii[there][:, None])
        limit = torch.where(limit >= 0, limit - away, -math.inf)
        b, i, j = torch.nonzero(D <= limit[:, :, None], as_tuple=True)
        kept.append(torch.stack([here[b] * size + i, there[b] * size + j]))
    row, place = torch.cat(kept, dim=1)
    order = torch.argsort(row, stable=True)
    row, place = row[order], place[order]
    count = torch.bincount(row, minlength=bounds.shape[0])
    begin = count.cumsum(0) - count
    at = torch.arange(row.shape[0], device=row.device) - begin[row]
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
    step = max(1, budget // (32 * n))
    mode = "donot_use_mm_for_euclid_dist"
    made = []
    for a in range(0, Y.shape[0], step):
        D = torch.cdist(Y[a : a + step].to(torch.float64), whole, compute_mode=mode)
        last = D.topk(m, dim=1, largest=False).values[:, -1:]
        nearer, tied = D < last, D == last
        rest = m - nearer.sum(1, keepdim=True)
        kept = nearer | (tied & (tied.cumsum(1) <= rest))
        columns = kept.nonzero()[:, 1].view(-1, m)  # by number
        costs = (whole[columns] - Y[a : a + step, None, :]).square().sum(2)
        costs, order = torch.sort(costs, dim=1, stable=True)
        made.append((torch.gather(columns, 1, order), costs))
    columns, costs = (torch.cat(part) for part in zip(*made, strict=True))
    return columns, costs


def _sampled(
    X: torch.Tensor, m: int, budget: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return some points, their exact neighbors, and the last of these distances."""
    chosen = np.random.default_rng(SEED).choice(
        X.shape[0], min(SAMPLED, X.shape[0]), replace=False
    )
    asked = torch.from_numpy(np.sort(chosen)).to(X.device)
    columns, costs = all_pairs(X, asked, m, budget)
    return asked, columns, costs[:, -1]


def _enough(
    cells: Cells, asked: torch.Tensor, true: torch.Tensor, wanted: float
) -> int:
    """Return how many close cells hold the wanted share of the true neighbors."""
    flat = cells.numbers.view(-1)
    cell = torch.empty(cells.n + 1, dtype=torch.int64, device=flat.device)
    cell[flat] = torch.arange(flat.shape[0], device=flat.device) // cells.size
    ranks = []
    for here, there in zip(cell[asked].split(64), cell[true].split(64), strict=True):
        D = _between(cells, cells.centers[here])
        ranks.append((D[:, None, :] < D.gather(1, there)[:, :, None]).sum(2).view(-1))
    ranks = torch.cat(ranks).sort().values
    return int(ranks[math.ceil(wanted * (ranks.shape[0] - 1))]) + 1
