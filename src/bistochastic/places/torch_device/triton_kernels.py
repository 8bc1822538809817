"""Bodies for GPUs, in Triton, of functions that stand as texts in torch elsewhere.

Triton comes with torch on Linux. Where it is missing, the texts run.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from bistochastic.places.torch_device import cells as cell_texts
from bistochastic.places.torch_device import measures

TILE = cell_texts.PART
_TOO_LARGE: set[tuple[int, int, int]] = set()
INDICES = 32  # entries of a row looked at in one go
FAR = tl.constexpr(cell_texts.FAR**2)
LOSS = tl.constexpr(measures.TF32)
SINGLE = tl.constexpr(2 * cell_texts.SINGLE)
PARTS = tl.constexpr(cell_texts.PARTS)


def within(
    cells: Any,
    rows: torch.Tensor,
    bounds: torch.Tensor,
    starts: torch.Tensor,
    ids: torch.Tensor,
    room: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the points within bounds: first in which parts there are such, then which.

    Tiles of distances by matrix units say the first, a program for a part of points;
    the few parts that are left for a point are looked at by differences.
    """
    n, device = bounds.shape[0], bounds.device
    kind = torch.int32 if cells.x.shape[0] < 2**31 else torch.int64
    parts, found = (torch.full((n, room), -1, dtype=kind, device=device) for _ in "12")
    number, count = (torch.empty(n, dtype=torch.int32, device=device) for _ in "12")
    _compare(cells, rows, starts, ids, bounds, parts, number, room, keep=True)
    d = cells.x.shape[1]
    with torch.cuda.device_of(bounds):
        _picked[(n,)](
            cells.x, cells.lengths, cells.centers, cells.radii, rows, parts, number,
            bounds, found, count, cells.size, room, room, d,
            K=min(d, 32), TILE=TILE, num_warps=2 if d <= 16 else 4,
        )  # fmt: skip
    return found, count


def minima(cells: Any, rows: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Return the distance of the nearest point in each part of some cells."""
    number, look = ids.shape
    wide = look * cell_texts.PARTS
    out = torch.empty((number * cells.size, wide), device=ids.device)
    starts = torch.arange(number + 1, device=ids.device) * look
    _compare(cells, rows, starts, ids, out, out, out, wide, keep=False)
    return out


def _compare(
    cells: Any, rows: torch.Tensor, starts: torch.Tensor, ids: torch.Tensor,
    bounds: torch.Tensor, found: torch.Tensor, count: torch.Tensor, room: int,
    *, keep: bool,
) -> None:  # fmt: skip
    d = cells.x.shape[1]
    given = (
        cells.x, cells.lengths, cells.centers, cells.radii, rows, starts, ids,
        bounds, found, count, cells.size, room, d,
    )  # fmt: skip
    fitting = [(d, 3), (d, 2), (d, 1)] if d <= TILE else []
    for K, stages in [*fitting, (min(d, 32), 1)]:  # what fits into a multiprocessor
        if (d, K, stages) in _TOO_LARGE:
            continue
        try:
            with torch.cuda.device_of(bounds):
                _compared[(rows.shape[0],)](
                    *given, K=K, TILE=TILE, KEEP=keep,
                    num_warps=4 if d <= 32 else 8, num_stages=stages,
                )  # fmt: skip
            return
        except triton.runtime.errors.OutOfResources:
            _TOO_LARGE.add((d, K, stages))
    raise RuntimeError("no tile fits into the shared memory of this device")


@triton.jit
def _gap(z, centers, cell, own, d: tl.constexpr, k):  # type: ignore[no-untyped-def]
    shift = tl.load(centers + cell * d + k) - tl.load(centers + own * d + k)
    return z - shift.to(tl.float32)[None, :]


@triton.jit(do_not_specialize=["size", "room"])
def _compared(  # type: ignore[no-untyped-def]
    x, lengths, centers, radii, rows, starts, ids, bounds, found, count, size, room,
    d: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    q = tl.program_id(0)
    part = tl.load(rows + q).to(tl.int64)
    own = part // PARTS
    i = tl.arange(0, TILE)
    k = tl.arange(0, K)
    inside = i < size
    row = q * size + i
    here = (part * size + i) * d
    if KEEP:
        bound = tl.load(bounds + row, mask=inside, other=-1.0)
        bound = tl.where(bound >= 0, bound, float("-inf"))
        number = tl.zeros([TILE], dtype=tl.int32)
    ours = tl.load(radii + own)
    z = tl.load(x + here[:, None] + k[None, :], mask=inside[:, None], other=0.0)
    begin = tl.load(starts + q)
    for t in range(begin, tl.load(starts + q + 1)):
        cell = tl.load(ids + t).to(tl.int64)
        if d == K:
            gap = _gap(z, centers, cell, own, d, k)  # from the other center
            away = tl.sum(gap * gap, 1)
        else:
            away = tl.zeros([TILE], dtype=tl.float32)
            for a in range(0, d, K):
                z = tl.load(
                    x + here[:, None] + (a + k)[None, :], mask=inside[:, None], other=0
                )
                gap = _gap(z, centers, cell, own, d, a + k)
                away += tl.sum(gap * gap, 1)
        radius = tl.load(radii + cell)
        loss = LOSS * tl.sqrt(away) * radius
        loss += SINGLE * (away + radius * radius + ours * ours)
        for s in range(PARTS):
            place = (cell * PARTS + s) * size + i
            there = x + place[:, None] * d + k[None, :]
            product = tl.zeros([TILE, TILE], dtype=tl.float32)
            if d == K:
                y = tl.load(there, mask=inside[:, None], other=0)
                product = tl.dot(gap, tl.trans(y), product, input_precision="tf32")
            else:
                for a in range(0, d, K):
                    z = tl.load(
                        x + here[:, None] + (a + k)[None, :],
                        mask=inside[:, None],
                        other=0,
                    )
                    gap = _gap(z, centers, cell, own, d, a + k)
                    y = tl.load(there + a, mask=inside[:, None], other=0)
                    product = tl.dot(gap, tl.trans(y), product, input_precision="tf32")
            length = tl.load(lengths + place, mask=inside, other=FAR)
            least = tl.min(length[None, :] - 2.0 * product, 1)
            if KEEP:
                near = least <= bound - away + loss
                to = found + row.to(tl.int64) * room + number
                other = tl.zeros([TILE], dtype=tl.int64) + (cell * PARTS + s)
                other = other.to(found.dtype.element_ty)
                tl.store(to, other, mask=near & (number < room))
                number += near.to(tl.int32)
            else:
                to = found + row.to(tl.int64) * room + (t - begin) * PARTS + s
                tl.store(to, least + away + 2 * loss, mask=inside)
    if KEEP:
        tl.store(count + row, number, mask=inside)


@triton.jit(do_not_specialize=["size", "room", "most"])
def _picked(  # type: ignore[no-untyped-def]
    x, lengths, centers, radii, rows, parts, number, bounds, found, count,
    size, room, most, d: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, TILE)
    k = tl.arange(0, K)
    inside = i < size
    part = tl.load(rows + r // size).to(tl.int64)
    own = part // PARTS
    here = (part * size + r % size) * d
    bound = tl.load(bounds + r)
    many = tl.load(number + r)
    total = 0
    for t in range(tl.minimum(many, most)):
        other = tl.load(parts + r * most + t).to(tl.int64)
        cell = other // PARTS
        place = other * size + i
        away = tl.zeros([TILE], dtype=tl.float32)
        for a in range(0, d, K):
            z = tl.load(x + here + a + k)
            shift = tl.load(centers + cell * d + a + k)
            shift = (shift - tl.load(centers + own * d + a + k)).to(tl.float32)
            y = tl.load(
                x + place[:, None] * d + (a + k)[None, :], mask=inside[:, None], other=0
            )
            gap = (z - shift)[None, :] - y
            away += tl.sum(gap * gap, 1)
        ours, theirs = tl.load(radii + own), tl.load(radii + cell)
        limit = bound + SINGLE * (bound + ours * ours + theirs * theirs)
        real = tl.load(lengths + place, mask=inside, other=FAR) < FAR
        kept = (real & (away <= limit)).to(tl.int32)
        at = total + tl.cumsum(kept, 0) - 1
        point = place.to(found.dtype.element_ty)
        tl.store(found + r * room + at, point, mask=(kept > 0) & (at < room))
        total += tl.sum(kept, 0)
    total = tl.where(many > most, tl.maximum(total, room + 1), total)
    tl.store(count + r, total)


def product(S: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return S v, the same bits every time."""
    v = v.contiguous()
    out = v.new_empty((S.shape[0], *v.shape[1:]))
    if v.ndim > 1:
        _rows_times(S, v, out, v, False)
        return out
    n = S.shape[0]
    K = 16 if S.values().shape[0] <= 24 * n else 32
    R = 1024 // K
    with torch.cuda.device_of(v):
        _product[(triton.cdiv(n, R),)](
            S.crow_indices(), S.col_indices(), S.values(), v, out, n, R=R, K=K
        )
    return out


@triton.jit(do_not_specialize=["n"])
def _product(  # type: ignore[no-untyped-def]
    crow, columns, values, v, out, n, R: tl.constexpr, K: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    e = tl.arange(0, K)
    begin = tl.load(crow + i, mask=i < n, other=0)
    end = tl.load(crow + i + 1, mask=i < n, other=0)
    longest = tl.max(end - begin, 0)
    total = tl.zeros([R, K], dtype=v.dtype.element_ty)
    for s in range(0, longest, K):
        at = begin[:, None] + (s + e)[None, :]
        inside = at < end[:, None]
        j = tl.load(columns + at, mask=inside, other=0)
        w = tl.load(values + at, mask=inside, other=0.0)
        total += w * tl.load(v + j, mask=inside, other=0.0)
    tl.store(out + i, tl.sum(total, 1), mask=i < n)


def three_term(
    S: torch.Tensor, X: torch.Tensor, Y: torch.Tensor, terms: torch.Tensor
) -> None:
    """Put a S Y + b Y + c X in the place of X, with a, b and c in `terms`."""
    _rows_times(S, Y, X, terms, True)


def _rows_times(
    S: torch.Tensor, Y: torch.Tensor, X: torch.Tensor, terms: torch.Tensor, add: bool
) -> None:
    n, width = S.shape[0], Y.shape[1]
    WIDTH = triton.next_power_of_2(width)
    with torch.cuda.device_of(Y):
        _times[(n,)](
            S.crow_indices(), S.col_indices(), S.values(), X, Y, terms, width,
            STRIDE=0 if width % 8 else width, ADD=add, WIDTH=WIDTH, K=INDICES,
            num_warps=1 if WIDTH <= 64 else 4,
        )  # fmt: skip


@triton.jit(do_not_specialize=["stride"])
def _times(  # type: ignore[no-untyped-def]
    crow, columns, values, X, Y, terms, stride,
    STRIDE: tl.constexpr, ADD: tl.constexpr, WIDTH: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    width = STRIDE if STRIDE else stride  # known in advance, or not compiled anew
    i = tl.program_id(0).to(tl.int64)
    q = tl.arange(0, WIDTH)
    e = tl.arange(0, K)
    total = tl.zeros([WIDTH], dtype=Y.dtype.element_ty)
    end = tl.load(crow + i + 1)
    for s in range(tl.load(crow + i), end, K):
        inside = s + e < end
        j = tl.load(columns + s + e, mask=inside, other=0).to(tl.int64)
        w = tl.load(values + s + e, mask=inside, other=0.0)
        y = tl.load(
            Y + j[:, None] * width + q[None, :],
            mask=inside[:, None] & (q < width)[None, :],
            other=0.0,
        )
        total += tl.sum(w[:, None] * y, 0)
    if ADD:
        y = tl.load(Y + i * width + q, mask=q < width, other=0.0)
        x = tl.load(X + i * width + q, mask=q < width, other=0.0)
        a, b, c = tl.load(terms), tl.load(terms + 1), tl.load(terms + 2)
        total = a * total + b * y + c * x
    tl.store(X + i * width + q, total, mask=q < width)


def distances(
    F: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, size: int = 0
) -> torch.Tensor:
    """Return |f_i - f_j|^2 for the candidates j of each row i, without a copy of F."""
    F, columns = F.contiguous(), columns.contiguous()
    n, m = columns.shape
    out = torch.empty((n, m), dtype=F.dtype, device=F.device)
    M, C = triton.next_power_of_2(m), triton.next_power_of_2(F.shape[1])
    with torch.cuda.device_of(F):
        _distances[(n,)](
            F, rows, columns, out, m, F.shape[1], M=M, C=C,
            num_warps=1 if M * C <= 1024 else 4,
        )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["m", "c"])
def _distances(F, rows, columns, out, m, c, M: tl.constexpr, C: tl.constexpr):  # type: ignore[no-untyped-def]
    r = tl.program_id(0).to(tl.int64)
    k, q = tl.arange(0, M), tl.arange(0, C)
    i = tl.load(rows + r).to(tl.int64)
    j = tl.load(columns + r * m + k, mask=k < m, other=0).to(tl.int64)
    here = tl.load(F + i * c + q, mask=q < c, other=0.0)
    there = tl.load(
        F + j[:, None] * c + q[None, :],
        mask=(k < m)[:, None] & (q < c)[None, :],
        other=0.0,
    )
    gap = there - here[None, :]
    tl.store(out + r * m + k, tl.sum(gap * gap, 1), mask=k < m)


def mirrored(S: torch.Tensor) -> bool:
    """Tell whether a canonical CSR tensor equals its transpose to the bit."""
    crow, columns, values = S.crow_indices(), S.col_indices(), S.values()
    if values.shape[0] == 0:
        return True
    wrong = torch.zeros(1, dtype=torch.int32, device=values.device)
    longest = int(crow.diff().max())
    with torch.cuda.device_of(values):
        _mirrored[(S.shape[0],)](
            crow, columns, values, wrong, longest.bit_length() + 1, K=64, num_warps=2
        )
    return not bool(wrong)


@triton.jit(do_not_specialize=["turns"])
def _mirrored(crow, columns, values, wrong, turns, K: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0)
    e = tl.arange(0, K)
    end = tl.load(crow + i + 1)
    for s in range(tl.load(crow + i), end, K):
        inside = s + e < end
        j = tl.load(columns + s + e, mask=inside, other=0)
        w = tl.load(values + s + e, mask=inside, other=0.0)
        low = tl.load(crow + j, mask=inside, other=0)
        high = tl.load(crow + j + 1, mask=inside, other=0)
        last = high
        for _ in range(turns):  # the first entry of row j that is not before i
            middle = (low + high) // 2
            more = low < high
            there = tl.load(columns + middle, mask=inside & more, other=0)
            before = more & (there < i)
            low = tl.where(before, middle + 1, low)
            high = tl.where(more & (there >= i), middle, high)
        known = inside & (low < last)
        there = tl.load(columns + low, mask=known, other=-1)
        other = tl.load(values + low, mask=known, other=0.0)
        bad = inside & ((there != i) | (other != w))
        if tl.max(bad.to(tl.int32), 0) > 0:
            tl.store(wrong, 1)


def squared(S: torch.Tensor) -> torch.Tensor:
    """Return the entries of S^2 on the pattern of S, symmetric to the bit."""
    crow, columns, values = S.crow_indices(), S.col_indices(), S.values()
    out = torch.empty_like(values)
    rows = torch.repeat_interleave(
        torch.arange(S.shape[0], dtype=columns.dtype, device=crow.device), crow.diff()
    )
    with torch.cuda.device_of(values):
        _squared[(values.shape[0],)](
            crow, columns, values, rows, out, K=INDICES, num_warps=1
        )
    return out


@triton.jit
def _squared(crow, columns, values, rows, out, K: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.program_id(0).to(tl.int64)
    i, j = tl.load(rows + place), tl.load(columns + place)
    low, high = tl.minimum(i, j), tl.maximum(i, j)  # so that (j, i) is the same sum
    e = tl.arange(0, K)
    total = tl.zeros([K], dtype=values.dtype.element_ty)
    end, last = tl.load(crow + low + 1), tl.load(crow + high + 1)
    for s in range(tl.load(crow + low), end, K):
        here = tl.load(columns + s + e, mask=s + e < end, other=-1)
        w = tl.load(values + s + e, mask=s + e < end, other=0.0)
        for t in range(tl.load(crow + high), last, K):
            there = tl.load(columns + t + e, mask=t + e < last, other=-2)
            v = tl.load(values + t + e, mask=t + e < last, other=0.0)
            same = here[:, None] == there[None, :]
            total += tl.sum(tl.where(same, w[:, None] * v[None, :], 0.0), 1)
    tl.store(out + place, tl.sum(total, 0))
