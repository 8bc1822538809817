"""How far the default's partition moves: start vector, eigen-tolerance, bootstraps.

Run with ``python benchmarks/steadiness.py``, some minutes. Adjusted Rand index to the
partition of the default: mean over five other start vectors, over eigenvectors to 1e-4
and to 1e-10 (the default is 1e-7), and over ten bootstraps, on the rows both have. The
last line is the throughput of ``predict``.
"""

import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from bistochastic import ANCMM
from bistochastic.spectrum import ky_fan as solver
from quality import shapes


def moved(model, X, labels):
    return adjusted_rand_score(labels, model.fit(X).labels_)


def with_tolerance(tol, c, X, labels):
    kept = solver.ky_fan.__kwdefaults__["tol"]
    solver.ky_fan.__kwdefaults__["tol"] = tol
    try:
        return moved(ANCMM(c), X, labels)
    finally:
        solver.ky_fan.__kwdefaults__["tol"] = kept


def bootstraps(c, X, labels):
    rng = np.random.default_rng(0)
    for _ in range(10):
        rows = np.unique(rng.integers(0, len(X), len(X)))
        yield adjusted_rand_score(labels[rows], ANCMM(c).fit(X[rows]).labels_)


def main():
    warnings.simplefilter("ignore")
    scale = StandardScaler().fit_transform
    held = {
        "wine": (scale(load_wine().data), 3),
        "breast cancer": (scale(load_breast_cancer().data), 2),
        "digits, 600 rows": (load_digits().data[:600], 10),
    }
    # up to 400 points the eigensolver is dense and has neither start nor tolerance
    held |= {
        name: (X, len(np.unique(y))) for name, (X, y) in shapes(0, times=4).items()
    }
    print("| set | n | start | tolerance 1e-4 | 1e-10 | bootstraps |")
    print("|---|---|---|---|---|---|")
    for name, (X, c) in held.items():
        labels = ANCMM(c).fit(X).labels_
        start = np.mean(
            [moved(ANCMM(c, random_state=s), X, labels) for s in range(1, 6)]
        )
        loose, tight = (with_tolerance(tol, c, X, labels) for tol in (1e-4, 1e-10))
        boots = np.mean(list(bootstraps(c, X, labels)))
        print(
            f"| {name} | {len(X)} | {start:.3f} | {loose:.3f} | {tight:.3f} | "
            f"{boots:.3f} |",
            flush=True,
        )
    X, _ = make_blobs(40_000, 16, centers=10, random_state=0)
    model = ANCMM(10, n_neighbors=15).fit(X[:20_000])
    start = time.perf_counter()
    model.predict(X[20_000:])
    seconds = time.perf_counter() - start
    print(f"predict: {20_000 / seconds:,.0f} rows a second (d = 16, 20,000 fitted)")


if __name__ == "__main__":
    main()
