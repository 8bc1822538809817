"""The Marcus mapping against its own methods and its peers, to a residual of 1e-8.

Run with ``make bench``, or ``python benchmarks/marcus.py --n 20000 "two moons"``.
Every time is the best of several runs in one process; products are those of S with a
vector; memory is the peak that NumPy reports above what the input holds, in multiples
of the input, with the result (once the input) left out.
"""

import time
import tracemalloc
import warnings

import numpy as np
from scipy.sparse import issparse

from bistochastic import marcus_mapping
from families import FAMILIES

TOL = 1e-8
METHODS = ("auto", "newton", "damped", "alternating")
LIMIT = 10_000  # iterates given to the methods that may need more
WARM = 3


def best_of(call, times):
    """Return the result and the least time of several calls."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
        if sum(seconds) > 20:
            break
    return result, min(seconds)


def peak(call):
    """Return the bytes that a call holds at most, beyond what there was."""
    tracemalloc.start()
    call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def nbytes(S):
    parts = (S.data, S.indices, S.indptr) if issparse(S) else (S,)
    return sum(part.nbytes for part in parts)


def scaled(S, method):
    limit = None if method in ("auto", "newton") else LIMIT
    return marcus_mapping(S, method=method, tol=TOL, max_iter=limit)


def family(name, n, methods):
    S = FAMILIES[name](n)
    v = np.ones(S.shape[0])
    _, product = best_of(lambda: S @ v, 50)
    print(
        f"\n{name}: n = {S.shape[0]:,}, {S.nnz if issparse(S) else S.size:,} entries, "
        f"{nbytes(S) / 1e6:.1f} MB, one product {1e3 * product:.2f} ms"
    )
    print(
        f"  {'method':<12} {'products':>8} {'seconds':>9} {'of products':>11} "
        f"{'memory':>7} {'residual':>9}  ended"
    )
    rows = {}
    for method in methods:
        slow = method in ("damped", "alternating")
        scaled(S, method) if not slow else None  # compile
        result, seconds = best_of(lambda m=method: scaled(S, m), 2 if slow else 7)
        beyond = (
            "" if slow else f"{peak(lambda m=method: scaled(S, m)) / nbytes(S) - 1:.2f}"
        )
        ratio = seconds / (result.n_products * product)
        rows[method] = result.n_products, seconds, result.converged
        print(
            f"  {method:<12} {result.n_products:>8,} {seconds:>9.4f} {ratio:>11.2f} "
            f"{beyond:>7} {result.residual:>9.1e}  {result.status.name.lower()}"
        )
    verdict(rows)
    if issparse(S):
        peers(S, rows["auto"][1])


def verdict(rows):
    """Say how auto stands to the others."""
    products, seconds, _ = rows["auto"]
    best = min(("newton", "damped"), key=lambda m: rows[m][1] if rows[m][2] else np.inf)
    print(
        f"  auto: {products / min(rows[m][0] for m in ('newton', 'damped')):.2f} of the "
        f"products and {seconds / rows[best][1]:.2f} of the seconds of the better "
        f"({best}); Algorithm 1 needs "
        f"{'' if rows['alternating'][2] else 'over '}"
        f"{rows['alternating'][0] / products:.0f} times its products, damped "
        f"{'' if rows['damped'][2] else 'over '}{rows['damped'][0] / products:.0f}"
    )


def sinkhorn(S, tol, limit):
    """Scale by ten lines of SciPy: what people write by hand."""
    u = v = np.ones(S.shape[0])
    for t in range(limit):
        v = 1 / (S @ u)
        u, last = 1 / (S @ v), u
        if t % 10 == 0 and np.abs(last * (S @ v) - 1).max() <= tol:
            break
    root = np.sqrt(u * v)
    return root, t + 1


def balance(S, root):
    return np.abs(root * (S @ root) - 1).max()


def peers(S, ours):
    """Time what else can scale a sparse matrix, and the residual it reaches."""
    (root, passes), seconds = best_of(lambda: sinkhorn(S, TOL, LIMIT), 1)
    line = "  {:<24} {:>8} passes {:>9.3f} s, {:>6.1f} times auto, residual {:.1e}"
    print(
        line.format("SciPy Sinkhorn", passes, seconds, seconds / ours, balance(S, root))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in (("iced", by_iced), ("cooler's iteration", by_cooler)):
            try:
                (root, passes), seconds = best_of(lambda c=call: c(S), 1)
            except ImportError:
                print(f"  {name}: not installed")
                continue
            print(line.format(name, passes, seconds, seconds / ours, balance(S, root)))


def by_iced(S):
    """Run iced's ICE; it works on the upper triangle and scales to the mean sum."""
    from iced.normalization import ICE_normalization

    counts = S.tocoo().astype(float)
    _, bias = ICE_normalization(
        counts, max_iter=3000, eps=1e-8, output_bias=True, copy=True
    )
    root = 1 / np.asarray(bias).ravel()
    return root / np.sqrt(np.mean(root * (S @ root))), "<= 3000"
