"""A graph in two blocks of rows, as on two machines: a holder to test with.

Products, scalings and sums are made block by block; a block never sees the other one,
except in `symmetrized`, where pieces change hands, and where patterns change.
"""

import numpy as np
from scipy.sparse import csr_array, vstack

from bistochastic.core.arrays import scaled_by
from bistochastic.core.recurrence import recurrence
from bistochastic.places.host.csr import Csr
from bistochastic.places.parts import Part, affinity_parts
from bistochastic.places.tables import TableCosts


class Blocks:
    """Rows [0, n // 2) in one CSR array, the others in a second one."""

    fetched = False

    def __init__(self, blocks):
        self.blocks = tuple(blocks)
        self.n = self.blocks[0].shape[1]
        self.n_products = 0

    @classmethod
    def split(cls, S):
        half = S.shape[0] // 2
        return cls([csr_array(S[:half]), csr_array(S[half:])])

    @classmethod
    def symmetrized(cls, i, j, values, n):
        return cls(_exchanged(i, j, values / 2, n))

    @classmethod
    def averaged(cls, i, j, values, n):
        made = _exchanged(i, j, values + 1j, n)
        return cls(_with(B, B.data.real / B.data.imag) for B in made)

    def recurrence(self, X, Y, center, terms, accuracy):
        return recurrence(self, X, Y, center, terms)

    def parts(self):
        return affinity_parts(self.entries(0.0))

    def mates(self, sizes, free, cap):
        return Csr(self.entries(0.0)).mates(sizes, free, cap)

    def gathered(self, groups, number):
        made = Csr(self.entries(0.0)).gathered(groups, number)
        return type(self).split(made.native())

    def ones(self):
        return np.ones(self.n)

    def vector(self, values):
        return np.asarray(values, dtype=float)

    def noise(self, rng, columns):
        return rng.standard_normal((self.n, columns))

    def apply(self, v):
        self.n_products += 1
        return np.concatenate([B @ v for B in self.blocks])

    def diagonal(self):
        return np.concatenate([B.diagonal(k) for k, B in self._placed()])

    def scaled(self, u, *, reuse=False):
        return self._each(lambda k, B: scaled_by(_rows(u, k, B), u[B.indices], B.data))

    def sq_norm(self, weights=None):
        weights = np.ones(self.n) if weights is None else weights
        return sum(float(_rows(weights, k, B) @ B.data**2) for k, B in self._placed())

    def indicator(self):
        return self._each(lambda k, B: np.ones_like(B.data))

    def log(self):
        return self._each(lambda k, B: np.log(B.data))

    def exponential(self, omega, a):
        return self._each(lambda k, B: np.exp(_sums(k, B, omega, a)))

    def raised(self, a):
        return self._each(lambda k, B: np.maximum(_sums(k, B, 1.0, a), 0.0))

    def clipped(self, omega, a, least=0.0):
        made = []
        for k, B in self._placed():
            data = _sums(k, B, omega, a)
            C = _with(B, np.where(data > least, data, 0.0)).copy()
            C.eliminate_zeros()
            made.append(C)
        return type(self)(made)

    def looped(self):
        return all(
            np.count_nonzero(_rows(np.arange(self.n), k, B) == B.indices) == B.shape[0]
            for k, B in self._placed()
        )

    def highest(self):
        return np.concatenate(
            [np.maximum.reduceat(B.data, B.indptr[:-1]) for B in self.blocks]
        )

    def deviation(self):
        return float(np.std(np.concatenate([B.data for B in self.blocks])))

    def dot(self, P):
        return sum(
            float(A.multiply(B).sum())
            for A, B in zip(self.blocks, P.blocks, strict=True)
        )

    def pattern(self):
        return self.native()

    def entries(self, least):
        return Csr(self.native()).entries(least)

    def shifted(self, delta):
        return self.split(Csr(self.native()).shifted(delta).native())

    def cut(self, rows, columns):
        return self.split(Csr(self.native()).cut(rows, columns).native())

    def part(self, index):
        return self.split(Csr(self.native()).part(index).native())

    def joined(self, i, j, weights):
        return self.split(Csr(self.native()).joined(i, j, weights).native())

    def supported(self):
        return self.split(Csr(self.native()).supported().native())

    def native(self):
        return csr_array(vstack(self.blocks, format="csr"))

    def fast(self, text):
        return text

    def _placed(self):
        first = 0
        for B in self.blocks:
            yield first, B
            first += B.shape[0]

    def _each(self, data):
        return type(self)([_with(B, data(k, B)) for k, B in self._placed()])


def cheapest(D, m):
    """Return rows, columns and costs of the m cheapest of each row, loops first."""
    ranked = np.where(np.eye(len(D), dtype=bool) & np.isfinite(D), -1.0, D)
    columns = np.argsort(ranked, axis=1, kind="stable")[:, :m]
    return np.arange(len(D)), columns, np.take_along_axis(D, columns, axis=1)


def table(D, m):
    """Hold the m cheapest candidates of each row in two parts."""
    half = len(D) // 2
    whole = cheapest(D, m)
    parts = [
        Part(*(array[rows] for array in whole))
        for rows in (slice(0, half), slice(half, None))
    ]
    return TableCosts(parts, len(D), Blocks)


def _exchanged(i, j, values, n):
    """Add a matrix, given by its entries, and its transpose, block by block."""
    half = n // 2
    blocks = []
    for first, last in ((0, half), (half, n)):
        mine, theirs = (i >= first) & (i < last), (j >= first) & (j < last)
        place = np.concatenate([i[mine] - first, j[theirs] - first])
        column = np.concatenate([j[mine], i[theirs]])
        data = np.concatenate([values[mine], values[theirs]])
        blocks.append(csr_array((data, (place, column)), shape=(last - first, n)))
    return blocks


def _with(B, data):
    return csr_array((data, B.indices, B.indptr), shape=B.shape)


def _rows(v, first, B):
    return np.repeat(v[first : first + B.shape[0]], np.diff(B.indptr))


def _sums(first, B, omega, a):
    return _rows(a, first, B) + a[B.indices] + omega * B.data
