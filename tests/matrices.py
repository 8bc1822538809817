"""Matrices that several tests use, and strategies that draw more."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bistochastic.core.arrays import on_cpu

EQUATION_3 = np.array([[0.0, 0, 1], [0, 0, 1], [1, 1, 0]])
SUPPORT_ONLY = np.array([[1.0, 1], [1, 0]])
PATH = np.array([[2.0, 1, 0], [1, 2, 1], [0, 1, 2]])


def as_numpy(M):
    """Return a matrix of any kind as a NumPy array."""
    M = M.entries(-np.inf) if hasattr(M, "entries") else M  # on workers
    for dense in ("toarray", "to_dense"):
        M = getattr(M, dense)() if hasattr(M, dense) else M
    return on_cpu(M) if hasattr(M, "device") else np.asarray(M)


def sparse_symmetric(rng, n, density=0.3, spread=1.0, loops=True):
    """Draw log-normal weights on a random symmetric pattern."""
    W = np.exp(spread * rng.standard_normal((n, n))) * (rng.random((n, n)) < density)
    W = np.triu(W, 1)
    return W + W.T + np.diag(np.exp(spread * rng.standard_normal(n)) * loops)


def row_error(M):
    return np.abs(np.asarray(M).sum(axis=1) - 1).max()


@st.composite
def total_support(draw, most=7):
    """Draw a matrix with a positive diagonal, zeros, and entries from 1e-3 to 1e3."""
    n = draw(st.integers(1, most))
    weights = st.floats(-3, 3).map(lambda e: 10.0**e)
    W = draw(hnp.arrays(float, (n, n), elements=weights | st.just(0.0)))
    d = draw(hnp.arrays(float, n, elements=weights))
    upper = np.triu(W, 1)
    return upper + upper.T + np.diag(d)
