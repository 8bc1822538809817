"""The eigensolver against a dense one, and what ARPACK misses.

Run with ``python benchmarks/spectrum.py``, some minutes. Each line is a doubly
stochastic graph of c clusters, of random edges or rings, decoupled or weakly tied.
*Gap* is the distance of the c-th eigenvalue from 1, zero where the clusters are
components; *distance* is that from the c-th eigenvalue to the next. Angles are between
the spaces of the c largest eigenvalues, as ours, or ARPACK's, and LAPACK's ``eigh``;
*copies* counts eigenvalues that agree with those of ``eigh`` to 1e-9, of c.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.linalg import eigh, subspace_angles
from scipy.sparse import block_diag, csr_array
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from bistochastic import marcus_mapping
from bistochastic.graph.components import components
from bistochastic.places.host.csr import Csr
from bistochastic.spectrum.ky_fan import ky_fan

DEGREE = 8


def cluster(rng, size):
    """Make a connected random graph."""
    i = np.repeat(np.arange(size), DEGREE)
    j = rng.integers(0, size, i.size)
    W = csr_array((rng.random(i.size) + 0.1, (i, j)), shape=(size, size))
    at = np.arange(size)
    R = csr_array((np.full(size, 0.5), (at, (at + 1) % size)), shape=(size, size))
    return W + W.T + R + R.T


def ring(rng, size, k=4):
    """Tie each point to k on either side: the next eigenvalues crowd at 1."""
    i = np.repeat(np.arange(size), k)
    j = (i + np.tile(np.arange(1, k + 1), size)) % size
    W = csr_array((rng.random(i.size) + 0.5, (i, j)), shape=(size, size))
    return W + W.T


def graph(rng, n, c, kind, coupling):
    """Make c clusters: of unequal sizes, copies of one, or rings of neighbors."""
    if kind == "unequal":
        share = rng.dirichlet(np.full(c, 2.0))
        parts = [cluster(rng, max(10, int(s * n))) for s in share]
    elif kind == "copies":
        parts = [cluster(rng, n // c)] * c
    else:
        parts = [ring(rng, n // c) for _ in range(c)]
    S = csr_array(block_diag(parts))
    if coupling and c > 1:
        first = np.cumsum([0] + [part.shape[0] for part in parts[:-1]])
        B = csr_array((np.full(c, coupling), (first, np.roll(first, 1))), shape=S.shape)
        S = csr_array(S + B + B.T)
    S.setdiag(1.0)
    return csr_array(marcus_mapping(csr_array(S), tol=1e-12).matrix)


def agreeing(values, exact):
    """Count the wanted eigenvalues that were found, each copy on its own."""
    left = list(exact)
    for value in values:
        near = [e for e in left if abs(e - value) < 1e-9]
        if near:
            left.remove(min(near, key=lambda e: abs(e - value)))
    return len(exact) - len(left)


def arpack(S, c):
    """Run ARPACK as scikit-learn and most people do."""
    start = time.perf_counter()
    try:
        v0 = np.random.default_rng(1).uniform(-1, 1, S.shape[0])
        values, vectors = eigsh(S, k=c, which="LA", v0=v0)
    except ArpackNoConvergence as stopped:
        values, vectors = stopped.eigenvalues, stopped.eigenvectors
    return values, vectors, time.perf_counter() - start


def angle(A, B):
    if A.shape != B.shape:
        return np.nan
    return float(np.abs(subspace_angles(A, B)).max())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=5000)
    n = parser.parse_args().n
    print(
        f"{'c':>4} {'kind':<8} {'coupling':>8} {'gap':>8} {'distance':>8} | "
        f"{'copies':>8} {'angle':>8} {'products':>8} {'s':>6} | "
        f"ARPACK: {'copies':>7} {'angle':>8} {'s':>6}"
    )
    missed = 0
    for c in (1, 2, 20, 100):
        for kind in ("unequal", "copies", "rings")[: 1 if c == 1 else 3]:
            for coupling in (0.0, 1e-5, 1e-2)[: 1 if c == 1 else 3]:
                rng = np.random.default_rng(c)
                S = graph(rng, n, c, kind, coupling)
                size = S.shape[0]
                values, vectors = eigh(
                    S.toarray(), subset_by_index=[size - c - 1, size - 1]
                )
                values, vectors = values[::-1], vectors[:, ::-1]
                exact = values[:c]
                start = time.perf_counter()
                held = Csr(S)
                found = ky_fan(held, c, components(held)[1])
                seconds = time.perf_counter() - start
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    theirs, their_vectors, their_seconds = arpack(S, c)
                copies = agreeing(theirs, exact)
                missed += copies < c
                print(
                    f"{c:>4} {kind:<8} {coupling:>8.0e} {1 - exact[-1]:>8.1e} "
                    f"{values[c - 1] - values[c]:>8.1e} | "
                    f"{agreeing(1 - found.values, exact):>8} "
                    f"{angle(found.F, vectors[:, :c]):>8.1e} {found.n_products:>8} "
                    f"{seconds:>6.2f} | {'':7} {copies:>7} "
                    f"{angle(their_vectors, vectors[:, :c]):>8.1e} "
                    f"{their_seconds:>6.2f}",
                    flush=True,
                )
    print(f"ARPACK missed eigenvalues on {missed} graphs.")


if __name__ == "__main__":
    main()
