"""Exactly c components, on random problems of every kind.

Run with ``python benchmarks/random_problems.py [number]``, 400 by default, some
minutes. For each problem the default, or a random choice of options: exactly c
components, rows within 1e-8 of one, symmetric to the bit, the same result twice, and
the partition after the rows were permuted (on tied costs no rule can keep it; these are
counted apart).
"""

import collections
import sys
import warnings

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from bistochastic import ANCMM, InputError

KINDS = (
    "blobs", "moons", "circles", "spirals", "heavy tails", "uniform", "line",
    "duplicates", "grid",
)  # fmt: skip
TIED = ("duplicates", "grid")
OPTIONS = (
    {}, {}, {}, {"refine": None}, {"refine": "local"}, {"refine": "both"},
    {"alpha": "row", "refine": None}, {"self_neighbor": "lazy"},
    {"self_neighbor": False}, {"graph_update": "exact"},
    {"candidates": None, "refine": None}, {"min_cluster_size": 1},
    {"n_neighbors": 5}, {"n_neighbors": 12}, {"metric": "manhattan"},
    {"scaling": "alternating"}, {"penalty": 3.0, "refine": None},
)  # fmt: skip


def problem(seed):
    """Draw points, a number of clusters and options."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n = int(np.exp(rng.uniform(np.log(4), np.log(600 if seed % 20 else 2000))))
    d = int(np.exp(rng.uniform(0, np.log(200))))
    c = int(rng.integers(1, max(2, min(50, n // 3)) + 1))
    if kind == "blobs":
        X, _ = make_blobs(n, d, centers=max(1, c), random_state=seed)
    elif kind == "moons":
        X, _ = make_moons(n, noise=0.1, random_state=seed)
    elif kind == "circles":
        X, _ = make_circles(n, noise=0.05, factor=0.5, random_state=seed)
    elif kind == "spirals":
        t = np.sqrt(rng.uniform(0.1, 1, n)) * 9
        turn = t + np.pi * rng.integers(0, 2, n)
        X = np.c_[t * np.cos(turn), t * np.sin(turn)]
    elif kind == "heavy tails":
        X = rng.standard_t(1.5, (n, d))
    elif kind == "line":
        X = rng.random((n, 1))
    elif kind == "duplicates":
        X = rng.random((max(2, n // 3), d))[rng.integers(0, max(2, n // 3), n)]
    elif kind == "grid":
        X = rng.integers(0, 6, (n, 2)).astype(float)
    else:
        X = rng.random((n, d))
    return kind, X, c, OPTIONS[int(rng.integers(len(OPTIONS)))]


def check(seed):
    """Fit one problem; return its kind, what happened, the index after permuting."""
    kind, X, c, options = problem(seed)
    model = ANCMM(c, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X)
        except InputError as error:
            return kind, f"error: {' '.join(str(error).split()[:4])}", None
        again = ANCMM(c, **options).fit(X)
        order = np.random.default_rng(seed).permutation(len(X))
        moved = ANCMM(c, **options).fit(X[order])
    S = model.affinity_matrix_
    number, labels = connected_components(S, directed=False)
    assert number == model.n_components_ == c, (seed, kind, number, c, options)
    assert abs(S.sum(axis=1) - 1).max() <= 1e-8, (seed, kind)
    assert (S != S.T).nnz == 0, (seed, kind)
    assert adjusted_rand_score(labels, model.labels_) == 1.0, (seed, kind)
    assert (again.labels_ == model.labels_).all(), (seed, kind)
    return kind, "exact", adjusted_rand_score(model.labels_[order], moved.labels_)


def main(number=400):
    said = collections.Counter()
    kept = {False: [], True: []}
    for seed in range(int(number)):
        kind, what, index = check(seed)
        said[what] += 1
        if index is not None:
            kept[kind in TIED].append(index)
    for what, times in said.most_common():
        print(f"{times:>5} {what}")
    for tied, indices in kept.items():
        indices = np.array(indices)
        print(
            f"{'tied' if tied else 'not tied'}: the same partition after permuting on "
            f"{(indices > 1 - 1e-12).mean():.1%} of {indices.size}, mean ARI "
            f"{indices.mean():.3f}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
