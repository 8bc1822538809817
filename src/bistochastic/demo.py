"""What ``make demo`` shows: a clustered graph, scaled five ways."""

import textwrap
import time
import warnings

import numpy as np

from bistochastic import SupportError, marcus_mapping, support
from bistochastic.datasets.toy import planted_graph
from bistochastic.scaling.marcus import LIMITS

KNOWN_AS = {
    "auto": "damped, then Newton",
    "newton": "Newton, conjugate gradients",
    "damped": "Eq. (2), Zass and Shashua",
    "alternating": "Algorithm 1, Sinkhorn",
    "fixed_point": "Corollary 2",
}


def main():
    """Scale a built-in clustered graph and say what happened."""
    S, labels = planted_graph(5000, 5)
    rows = S.sum(axis=1)
    say(
        f"A graph of {S.shape[0]:,} points in {labels.max() + 1} clusters, "
        f"{S.nnz:,} weights. Its row sums run from {rows.min():.2g} to "
        f"{rows.max():.3g}. {support(S)}"
    )
    say(
        "The Marcus mapping M(S) = DSD, asked for row sums within 1e-8 of one. A "
        "product is one S u, the unit of work:"
    )
    print(f"  {'method':<12} {'products':>9} {'seconds':>8} {'residual':>9}  ended")
    for method in LIMITS:
        result, seconds = _timed(S, method)
        print(
            f"  {method:<12} {result.n_products:>9,} {seconds:>8.3f} "
            f"{result.residual:>9.1e}  {result.status.name.lower():<10}"
            f" {KNOWN_AS[method]}"
        )
    _compare(S, labels)
    _without_support()


def say(text):
    """Print a paragraph that fits a terminal."""
    print(textwrap.fill(text, 79), end="\n\n")


def _timed(S, method):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table says how each method ended
        result = marcus_mapping(S, method=method, tol=1e-8)
    return result, time.perf_counter() - start


def _compare(S, labels):
    M = marcus_mapping(S).matrix
    rows = M.sum(axis=1)
    largest = [np.sort(A.sum(axis=1))[::-1] for A in (S, M)]
    share = [part[: len(labels) // 100].sum() / part.sum() for part in largest]
    same = "is" if (M != M.T).nnz == 0 else "is not"
    print()
    say(
        f"In M(S) the row sums run from 1 - {1 - rows.min():.0e} to "
        f"1 + {rows.max() - 1:.0e}. It {same} symmetric to the bit and has "
        f"{M.nnz:,} weights. In S the heaviest hundredth of the points holds "
        f"{share[0]:.0%} of the weight, in M(S) {share[1]:.0%}: now every point counts "
        f"the same. {_inside(M, labels):.3%} of the weight lies inside the clusters "
        f"({_inside(S, labels):.3%} before)."
    )


def _inside(A, labels):
    A = A.tocoo()
    i, j = A.coords
    return A.data[labels[i] == labels[j]].sum() / A.data.sum()


def _without_support():
    say("Not every matrix has such a scaling. For Eq. (3) of the paper:")
    S = np.array([[0.0, 0, 1], [0, 0, 1], [1, 1, 0]])
    try:
        marcus_mapping(S)
    except SupportError as error:
        say(f"SupportError: {error}")
    cured = marcus_mapping(S, unsupported="regularize")
    say(f'With unsupported="regularize": {cured}')
    print(cured.matrix.round(3))


if __name__ == "__main__":
    main()
