"""The projection on the doubly stochastic matrices, and its peers, to 1e-10.

``make bench`` runs it in two minutes. TorchDR's ``DoublyStochasticQuadraticAffinity``
solves the same dual problem by Adam, here in double, on the same matrix of costs, with
its own step size and its stop at a gradient norm of 1e-10. Dykstra's algorithm is ten
lines of NumPy. All run in one process with the same number of threads; a time is the
least of several runs, the solvers in turn, that of Dykstra of one. *KKT* is the largest
entry of F - max(K + a + a', 0) and F 1 - 1. *Memory* is the peak of what NumPy
allocated beyond the result, in multiples of K.
"""

import argparse
import contextlib
import os
import time

import numba
import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.spatial import KDTree
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits

from bistochastic import project_doubly_stochastic
from marcus import best_of, peak

TOL = 1e-10
LINE = "{:<34} {:<8} {:>9.4f} s {:>6} {:<6} KKT {:.0e}{}"


def costs(n, neighbors, seed=0):
    """Return squared distances in units of those to a given neighbor."""
    X = np.random.default_rng(seed).standard_normal((n, 8))
    D = euclidean_distances(X, squared=True)
    np.fill_diagonal(D, 0.0)
    unit = np.median(np.partition(D, neighbors, axis=1)[:, neighbors])
    return (D + D.T) / (2 * unit)


def neighbor_costs(n, k, seed=0):
    """Return the squared distances of k nearest neighbors, the pattern symmetric."""
    X = np.random.default_rng(seed).standard_normal((n, 3))
    distances, neighbors = KDTree(X).query(X, k, workers=-1)
    ends = np.arange(0, n * k + 1, k)
    C = csr_array((distances.ravel() ** 2 + 1e-9, neighbors.ravel(), ends))
    C = C.maximum(C.T)
    return csr_array(C / np.median(C.data))


def torchdr(C):
    """Return a solver for costs C, or None without TorchDR."""
    try:
        import torch
        from torchdr import DoublyStochasticQuadraticAffinity
    except ImportError:
        return None
    held = torch.from_numpy(C)

    class OnCosts(DoublyStochasticQuadraticAffinity):
        def _distance_matrix(self, X):
            return held

    def solve():
        solver = OnCosts(tol=TOL, max_iter=20_000, zero_diag=False)
        F = solver(held) * len(held)
        return F.numpy(), solver.dual_.numpy(), int(solver.n_iter_) + 1

    return solve


def dykstra(K, seconds):
    """Run Dykstra's algorithm for some seconds; return F and how far it came."""
    n = len(K)
    F, correction = K, 0.0
    start = time.perf_counter()
    passes = 0
    while time.perf_counter() - start < seconds:
        b = (1 - F.sum(axis=1)) / n
        b -= b.mean() / 2
        F = F + b[:, None] + b
        corrected = F + correction
        F = np.maximum(corrected, 0)
        correction = corrected - F
        passes += 1
        if np.abs(F.sum(axis=1) - 1).max() <= TOL:
            break
    return F, passes, np.abs(F.sum(axis=1) - 1).max(), time.perf_counter() - start


def kkt(K, F, a):
    """Return the largest violation of the optimality conditions."""
    off = np.abs(F.sum(axis=1) - 1).max()
    if issparse(K):
        K = K.tocoo()
        i, j = K.coords
        F = np.asarray(F.tocsr()[i, j]).ravel()
        return max(off, np.abs(F - np.maximum(K.data + a[i] + a[j], 0)).max())
    return max(off, np.abs(F - np.maximum(K + a[:, None] + a, 0)).max())


def dense(n, neighbors):
    C = costs(n, neighbors)
    K = -C
    calls = {"ours": lambda: project_doubly_stochastic(K, tol=TOL)}
    if (peer := torchdr(C)) is not None:
        calls["TorchDR"] = peer
    calls["ours"]()  # compiles
    results, least = best_of(calls)
    ours = results["ours"]
    name = f"dense n={n:,}, {(ours.matrix > 0).sum() / n:.0f} a row"
    memory = (peak(calls["ours"]) - ours.matrix.nbytes) / C.nbytes
    print(LINE.format(
        name, "ours", least["ours"], ours.n_iter, "steps",
        kkt(K, ours.matrix, ours.potential), f", memory {memory:.2f}",
    ))  # fmt: skip
    if peer is not None:
        F, a, steps = results["TorchDR"]
        ratio = f", {least['TorchDR'] / least['ours']:.0f} times ours"
        error = kkt(K, F, a)
        print(
            LINE.format("", "TorchDR", least["TorchDR"], steps, "steps", error, ratio)
        )
    F, passes, error, seconds = dykstra(K, 20.0)
    far = np.abs(F - ours.matrix).max()
    print(
        f"{'':<34} Dykstra  {seconds:9.4f} s {passes:>6} passes, row sums {error:.0e}, "
        f"{seconds / least['ours']:.0f} times ours, {far:.0e} from it"
    )


def sparse(n, k):
    C = neighbor_costs(n, k)
    K = -C
    calls = {"ours": lambda: project_doubly_stochastic(K, tol=TOL)}
    calls["ours"]()
    results, least = best_of(calls, times=7)
    ours = results["ours"]
    size, held = (A.data.nbytes + A.indices.nbytes for A in (K, ours.matrix))
    print(LINE.format(
        f"sparse n={n:,}, {C.nnz / n:.0f} a row, {ours.matrix.nnz / n:.0f} kept",
        "ours", least["ours"], ours.n_iter, "steps",
        kkt(K, ours.matrix, ours.potential),
        f", memory {(peak(calls['ours']) - held) / size:.2f}",
    ))  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    threads = parser.parse_args().threads
    numba.set_num_threads(threads)
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(threads)
    with threadpool_limits(threads):
        for n in (500, 2000):
            for neighbors in (10, 100):
                dense(n, neighbors)
        for n in (10_000, 100_000, 1_000_000):
            sparse(n, 18)  # about 20 a row where the pattern is made symmetric


if __name__ == "__main__":
    main()
