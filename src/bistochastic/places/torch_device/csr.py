"""A matrix held as a torch CSR tensor, on any device."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import torch
from scipy.sparse import csr_array

from bistochastic.core import recurrence as plain
from bistochastic.core.arrays import in_range, on_cpu, scaled_by
from bistochastic.core.protocols import Text
from bistochastic.graph import components
from bistochastic.places.host.csr import Csr, compiled
from bistochastic.places.parts import Part
from bistochastic.places.torch_device import gathering
from bistochastic.places.torch_device.build import (
    bodies,
    chosen_entries,
    csr_of_keys,
    from_scipy,
    merged,
    rows_of,
    summed_entries,
    to_scipy,
)
from bistochastic.places.torch_device.components import connected

SINGLE = 1e-5  # relative errors that singles do not make
DRAWN = 1 << 17  # points up to which normal numbers are drawn on the CPU


class TorchCsr:
    """Graph or scores in a torch CSR tensor; vectors are torch tensors beside it.

    Nothing leaves the device but what is asked for: `pattern` and `entries`, which
    diagnose support and show results.

    Parameters
    ----------
    S : torch.Tensor of shape (n, n)
        CSR layout, symmetric to the bit, sorted columns, floating point; that of a
        graph positive.
    labels : array of int of shape (n,), optional
        The connected components, if they are known.
    """

    fetched = False

    def __init__(self, S: torch.Tensor, labels: np.ndarray | None = None) -> None:
        self._S = S
        self.labels = labels
        self.n: int = S.shape[0]
        self.n_products = 0

    @classmethod
    def symmetrized(cls, i: Any, j: Any, values: torch.Tensor, n: int) -> Self:
        """Hold the mean of a matrix, given by its entries, and its transpose."""
        return cls(summed_entries(i, j, values / 2, n))

    @classmethod
    def averaged(cls, i: Any, j: Any, values: torch.Tensor, n: int) -> Self:
        """Hold scores given by entries on either side of the diagonal, or on both."""
        total = summed_entries(i, j, values, n)
        number = summed_entries(i, j, torch.ones_like(values), n)
        total.values().div_(number.values())
        return cls(total)

    @classmethod
    def halves(cls, pattern: Any, values: torch.Tensor) -> Self:
        """Hold (S + S') / 2 of the positive weights in a table, by known places."""
        crow, columns, own, mirror = pattern.made(merged)
        n = values.shape[0]
        weights = torch.nn.functional.pad(values.clip(min=0.0).reshape(-1), (0, 1))
        made = weights[own] / 2
        made += weights[mirror] / 2
        return cls(chosen_entries(crow, columns, made, made > 0, (n, n)))

    @staticmethod
    def on_tables(text: Text, like: torch.Tensor) -> Text:
        """Return the body of a text that works on tables beside a tensor."""
        kernels = bodies(like)
        return getattr(kernels, text.__name__, text) if kernels else text

    def ones(self) -> torch.Tensor:
        """Return the vector of n ones."""
        return torch.ones(self.n, dtype=self._S.dtype, device=self._S.device)

    def vector(self, values: Any) -> torch.Tensor:
        """Return `values` in the type and on the device of the matrix."""
        return torch.asarray(values, dtype=self._S.dtype, device=self._S.device)

    def noise(self, rng: np.random.Generator, columns: int) -> torch.Tensor:
        """Return a block of normal numbers; that of many points on the device."""
        if self.n <= DRAWN:  # the same as on the CPU
            return self.vector(rng.standard_normal((self.n, columns)))
        device, kind = self._S.device, self._S.dtype
        source = torch.Generator(device).manual_seed(int(rng.integers(2**62)))
        shape = (self.n, columns)
        return torch.randn(shape, generator=source, dtype=kind, device=device)

    def apply(self, v: torch.Tensor) -> torch.Tensor:
        """Return S v."""
        self.n_products += 1
        kernels = bodies(self._S)
        return kernels.product(self._S, v) if kernels else self._S @ v

    def recurrence(
        self, X: Any, Y: Any, center: float, terms: Any, accuracy: float
    ) -> Any:
        """Return the last of the blocks Z_k = a (S - center I) Z_(k-1) + c Z_(k-2)."""
        return self.fast(plain.recurrence)(self, X, Y, center, terms, accuracy)

    def diagonal(self) -> torch.Tensor:
        """Return the diagonal."""
        rows, loops = self._loops()
        diagonal = torch.zeros(self.n, dtype=self._S.dtype, device=self._S.device)
        diagonal[rows[loops].to(torch.int64)] = self._S.values()[loops]
        return diagonal

    def scaled(self, u: torch.Tensor, *, reuse: bool = False) -> Self:
        """Return DSD; u_i u_j is formed first, so that mirrored entries agree."""
        values, columns = u[self._rows()], u[self._S.col_indices()]
        if not in_range(u):
            return self._with(scaled_by(values, columns, self._S.values()))
        values *= columns
        values *= self._S.values()
        return self._with(values)

    def shifted(self, delta: Any) -> Self:
        """Return S + delta I, or S + diag(delta)."""
        delta = self.vector(delta) * self.ones()
        rows, loops = self._loops()
        if int(loops.sum()) == self.n:
            values = self._S.values().clone()
            values[loops] += delta
            return self._with(values)
        every = torch.arange(self.n, device=rows.device)
        return self._plus_entries(every, every, delta)

    def cut(self, rows: Any, columns: Any) -> Self:
        """Return S without the entries whose labels of row and column differ."""
        here, there = (self._numbers(x) for x in (rows, columns))
        kept = here[self._rows()] == there[self._S.col_indices()]
        return type(self)(self._kept(kept))

    def part(self, index: Any) -> Self:
        """Return the square submatrix of `index`."""
        index = self._numbers(index)
        crow, columns = self._S.crow_indices(), self._S.col_indices()
        place = torch.full((self.n,), -1, dtype=torch.int64, device=crow.device)
        place[index] = torch.arange(index.shape[0], device=crow.device)
        i = place[self._rows()]
        j = place[columns]
        inside = (i >= 0) & (j >= 0)
        key = i[inside] * index.shape[0] + j[inside]
        key, order = torch.sort(key)
        size = (index.shape[0],) * 2
        made = csr_of_keys(key, self._S.values()[inside][order], size)
        return type(self)(made)

    def joined(self, i: Any, j: Any, weights: Any) -> Self:
        """Return S with edges added."""
        i, j = self._numbers(i), self._numbers(j)
        weights = self.vector(weights)
        ends = torch.cat([i, j]), torch.cat([j, i])
        return self._plus_entries(*ends, torch.cat([weights, weights]))

    def supported(self) -> Self:
        """Return s_ij times the root of (S^2)_ij on the pattern."""
        kernels = bodies(self._S)
        if kernels is None:
            S = Csr(self.pattern()).supported().native()
            return type(self)(from_scipy(S, self._S.device, self._S.dtype))
        values = self._S.values() * kernels.squared(self._S).sqrt()
        return type(self)(self._with(values)._kept(values > 0))

    def mates(self, sizes: Any, free: Any, cap: float) -> torch.Tensor:
        """Return for each row that is free its heaviest free neighbor, or -1."""
        return gathering.mates(self._S, sizes, free, cap)

    def gathered(self, groups: Any, number: int) -> Self:
        """Return the sums of entries between groups."""
        return type(self)(gathering.gathered(self._S, self._numbers(groups), number))

    def parts(self) -> list[Part]:
        """Return the negative entries as tables, the heaviest of a row first.

        As `candidates.parts` does it: rows of similar length together.
        """
        S, lengths = self._S, self._S.crow_indices().diff()
        order = torch.argsort(S.values(), descending=True, stable=True)
        order = order[torch.argsort(self._rows()[order], stable=True)]
        columns, costs = S.col_indices()[order], -S.values()[order]
        size = torch.ceil(torch.log2(lengths.double())).to(torch.int64)
        made = []
        for kind in torch.unique(size):
            rows = (size == kind).nonzero()[:, 0]
            at = torch.arange(int(lengths[rows].max()), device=rows.device)
            inside = at[None, :] < lengths[rows][:, None]
            place = S.crow_indices()[rows].to(torch.int64)[:, None] + at
            place = torch.where(inside, place, 0)
            rows = rows.to(columns.dtype)
            there = torch.where(inside, columns[place], rows[:, None])
            values = torch.where(inside, costs[place], torch.inf)
            made.append(Part(rows, there, values))
        return made

    def pattern(self) -> csr_array:
        """Return the matrix as a SciPy CSR array on the CPU."""
        return to_scipy(self._S)

    def entries(self, least: float) -> csr_array:
        """Return the entries above `least` as a SciPy CSR array on the CPU."""
        kept = self._S.values() > least
        return to_scipy(self._S if bool(kept.all()) else self._kept(kept))

    def log(self) -> Self:
        """Return log S on the pattern."""
        return self._with(torch.log(self._S.values()))

    def indicator(self) -> Self:
        """Return ones on the pattern."""
        return self._with(torch.ones_like(self._S.values()))

    def sq_norm(self, weights: torch.Tensor | None = None) -> float:
        """Return the sum of the squared entries, of row i times weights[i]."""
        squares = self._S.values() ** 2
        if weights is not None:
            squares *= weights[self._rows()]
        return float(torch.sum(squares))

    def dot(self, P: Self) -> float:
        """Return the sum of k_ij p_ij; patterns that differ meet on the CPU."""
        if self._S.values().shape == P._S.values().shape:
            return float(self._S.values() @ P._S.values())
        return Csr(self.pattern()).dot(Csr(P.pattern()))

    def looped(self) -> bool:
        """Tell whether the whole diagonal is stored."""
        return int(self._loops()[1].sum()) == self.n

    def highest(self) -> torch.Tensor:
        """Return the largest entry of each row."""
        lowest = torch.full((self.n,), -torch.inf, dtype=self._S.dtype)
        return lowest.to(self._S.device).scatter_reduce(
            0, self._rows().to(torch.int64), self._S.values(), "amax"
        )

    def deviation(self) -> float:
        """Return the standard deviation of the stored entries."""
        return float(torch.std(self._S.values(), correction=0))

    def exponential(self, omega: float, a: torch.Tensor) -> Self:
        """Return exp(omega k_ij + a_i + a_j)."""
        return self._with(torch.exp(self._plus(omega, a)))

    def clipped(self, omega: float, a: torch.Tensor, least: float = 0.0) -> Self:
        """Return the entries of omega k_ij + a_i + a_j above `least`."""
        values = self._plus(omega, a)
        return type(self)(self._with(values)._kept(values > least))

    def raised(self, a: torch.Tensor) -> Self:
        """Return the positive part of k_ij + a_i + a_j, zeros stored."""
        return self._with(torch.clip(self._plus(1.0, a), min=0.0))

    def _plus(self, omega: float, a: torch.Tensor) -> torch.Tensor:
        """Return omega k_ij + a_i + a_j; a_i + a_j is formed first, for symmetry."""
        return a[self._rows()] + a[self._S.col_indices()] + omega * self._S.values()

    def native(self) -> torch.Tensor:
        """Return the tensor."""
        return self._S

    def fast(self, text: Text) -> Text:
        """Return the body for devices where there is one."""
        if text is plain.recurrence and bodies(self._S) is None:
            return text
        return BODIES.get(text) or compiled(text, self._S.values().shape[0])

    def _rows(self) -> torch.Tensor:
        return rows_of(self._S)

    def _loops(self) -> tuple[torch.Tensor, torch.Tensor]:
        rows = self._rows()
        return rows, rows == self._S.col_indices()

    def _numbers(self, values: Any) -> torch.Tensor:
        """Return whole numbers as a tensor beside the matrix."""
        return torch.asarray(values, dtype=torch.int64, device=self._S.device)

    def _kept(self, kept: torch.Tensor) -> torch.Tensor:
        crow, columns = self._S.crow_indices(), self._S.col_indices()
        return chosen_entries(
            crow, columns, self._S.values(), kept, tuple(self._S.shape)
        )

    def _plus_entries(self, i: Any, j: Any, values: torch.Tensor) -> Self:
        """Return S with entries added to, or put in between, those that are there."""
        n, S = self.n, self._S
        key = self._rows().to(torch.int64) * n + S.col_indices()
        more, place = (i * n + j).unique(return_inverse=True)
        total = torch.zeros(len(more), dtype=S.dtype, device=key.device)
        total.index_add_(0, place, values)
        at = torch.searchsorted(key, more)
        there = at < len(key)
        there[there.clone()] = key[at[there]] == more[there]
        known = S.values().clone()
        known[at[there]] += total[there]
        more, at, total = more[~there], at[~there], total[~there]
        at = at + torch.arange(len(at), device=at.device)
        old = torch.ones(len(key) + len(at), dtype=torch.bool, device=at.device)
        old[at] = False
        columns = torch.empty(len(old), dtype=S.col_indices().dtype, device=at.device)
        columns[old], columns[at] = S.col_indices(), (more % n).to(columns.dtype)
        made = torch.empty(len(old), dtype=S.dtype, device=at.device)
        made[old], made[at] = known, total
        shift = torch.bincount(more // n, minlength=n).cumsum(0)
        crow = S.crow_indices() + torch.nn.functional.pad(shift, (1, 0))
        return type(self)(
            torch.sparse_csr_tensor(
                crow.to(columns.dtype), columns, made, size=S.shape,
                check_invariants=False,
            )
        )  # fmt: skip

    def _with(self, values: torch.Tensor) -> Self:
        S = self._S
        made = torch.sparse_csr_tensor(
            S.crow_indices(), S.col_indices(), values, size=S.shape,
            check_invariants=False,
        )  # fmt: skip
        return type(self)(made, self.labels)


def search(S: TorchCsr) -> np.ndarray:
    """Return the component of each point, by hooking roots and pointer jumping.

    A root is the smallest number of its tree, so that roots in order are components by
    first appearance. It begins with few entries of each row, which leave few edges
    between different trees.
    """
    if S.labels is None:
        root = connected(S.native())
        every = torch.arange(S.n, device=root.device)
        number = torch.cumsum(root == every, 0) - 1
        S.labels = on_cpu(number[root])
    return S.labels


def recurrence(
    S: TorchCsr,
    X: torch.Tensor,
    Y: torch.Tensor,
    center: float,
    terms: Sequence[tuple[float, float]],
    accuracy: float = 0.0,
) -> torch.Tensor:
    """Return the last block of a recurrence: two blocks, one pass for each term."""
    native = S.native()
    kind = torch.float32 if accuracy >= SINGLE else native.dtype
    matrix = torch.sparse_csr_tensor(
        native.crow_indices(), native.col_indices(), native.values().to(kind),
        size=native.shape, check_invariants=False,
    )  # fmt: skip
    factors = [(a, -a * center, c) for a, c in terms]
    scales = torch.tensor(factors, dtype=kind).to(X.device)
    width = X.shape[1]
    wide = (0, -width % 8)  # whole sectors of memory
    pad = torch.nn.functional.pad
    X, Y = (pad(part.to(kind), wide).contiguous() for part in (X, Y))
    S.n_products += len(terms)
    kernels = bodies(native)
    for step in range(len(terms)):
        kernels.three_term(matrix, X, Y, scales[step])
        X, Y = Y, X
    return Y[:, :width].to(native.dtype)


BODIES: dict[Callable[..., Any], Any] = {
    components.search: search,
    plain.recurrence: recurrence,
}
