"""What ``make demo`` shows: a clustered graph, scaled five ways."""

import time
import warnings

import numpy as np

from bistochastic import SupportError, marcus_mapping, support
from bistochastic.datasets.toy import planted_graph
from bistochastic.scaling.marcus import LIMITS


def main():
    """Scale a built-in clustered graph and say what happened."""
    S, labels = planted_graph(5000, 5)
    rows = S.sum(axis=1)
    print(
        f"A graph of {S.shape[0]:,} points in {labels.max() + 1} clusters, "
        f"{S.nnz:,} weights. Its row sums run from {rows.min():.2g} to "
        f"{rows.max():.3g}.\n{support(S)}\n"
    )
    print("M(S) = DSD, with every row and column summing to one within 1e-8:\n")
    print(f"  {'method':<12} {'products':>9} {'seconds':>9} {'residual':>9}   ended")
    for method in LIMITS:
        result, seconds = _timed(S, method)
        print(
            f"  {method:<12} {result.n_products:>9,} {seconds:>9.3f} "
            f"{result.residual:>9.1e}   {result.status}"
        )
    _compare(S, labels)
    _without_support()


def _timed(S, method):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table says how each method ended
        result = marcus_mapping(S, method=method, tol=1e-8)
    return result, time.perf_counter() - start


def _compare(S, labels):
    M = marcus_mapping(S).matrix.tocoo()
    same = labels[M.coords[0]] == labels[M.coords[1]]
    rows = np.bincount(M.coords[0], weights=M.data)
    print(
        f"\nIn M(S) the row sums run from 1 - {1 - rows.min():.0e} to "
        f"1 + {rows.max() - 1:.0e}; it is symmetric to the\nbit, has the same "
        f"{M.nnz:,} entries, and {M.data[same].sum() / M.data.sum():.3%} of its weight "
        "lies inside the clusters.\nNow every point counts the same, whatever scale "
        "it was given."
    )


def _without_support():
    print("\nNot every matrix has such a scaling. For Eq. (3) of the paper:\n")
    S = np.array([[0.0, 0, 1], [0, 0, 1], [1, 1, 0]])
    try:
        marcus_mapping(S)
    except SupportError as error:
        print(f"  SupportError: {error}\n")
    cured = marcus_mapping(S, unsupported="regularize")
    print(f'With unsupported="regularize": {cured}\n{cured.matrix.round(3)}')


if __name__ == "__main__":
    main()
