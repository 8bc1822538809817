"""Points in cells of a tree: parts of few points that lie together."""

import math
from dataclasses import dataclass

import numpy as np
import torch

PART = 128  # points of a part, at most
PARTS = 8  # parts of a cell
TURNS = 3  # of power iterations for the direction in which a part is divided
SEED = 0
FAR = 1e15  # how far the points that fill up parts are; others are nearer than one
SINGLE = 2.0**-18  # of |x|^2 + |y|^2: the same by singles


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
