"""Hostile sets of points, by name, and distances and affinities made of them."""

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist


def drawn(case, most=120):
    """Return points, and whether all costs are different for sure."""
    rng = case.rng
    n = int(
        case.pick(1, 2, 3, 4, 6, *rng.integers(5, most, 14), *rng.integers(100, 400, 2))
    )
    if case.chance(0.01):
        n = int(rng.integers(1000, 2000))
    d = int(case.pick(1, 2, 2, 3, 5, 17))
    name = case.pick(*MAKERS, *SMOOTH, *SMOOTH)
    X = np.asarray(MAKERS[name](rng, n, d), dtype=np.float64)
    smooth, factor = name in SMOOTH and n > 3, 1.0
    if case.chance(0.15):
        factor = 10.0 ** rng.uniform(-300, 300)
        with np.errstate(all="ignore"):
            X = X * factor
        smooth = smooth and 1e-100 < factor < 1e100
    if case.chance(0.1):
        X = X + 10.0 ** rng.uniform(0, 12)
        smooth = False  # rounding makes ties
    case.note(f"points {name}, {X.shape[0]} x {X.shape[1]}, times {factor:.3g}")
    return X, smooth


def spoilt(case, X):
    """Return points of which one value is missing or infinite."""
    X = np.array(X)
    i, j = case.rng.integers(X.shape[0]), case.rng.integers(X.shape[1])
    X[i, j] = case.pick(np.nan, np.inf, -np.inf)
    case.note(f"with {X[i, j]}")
    return X


def pairs(case, X, metric, k):
    """Return distances or affinities of points, dense or sparse.

    Returns
    -------
    array or csr_array
        What `metric` asks for.
    """
    with np.errstate(all="ignore"):
        D = cdist(X, X)
        D = np.maximum(D, D.T)
    n = len(X)
    near = np.argsort(D, axis=1, kind="stable")[:, : k + 2]
    rows, columns = np.repeat(np.arange(n), near.shape[1]), near.ravel()
    if metric == "precomputed":
        if case.chance(0.5):
            return D
        case.note("a sparse table of distances")
        ends = np.arange(0, rows.size + 1, near.shape[1])
        return csr_array((D[rows, columns], columns, ends), shape=(n, n))  # by distance
    with np.errstate(all="ignore"):
        middle = np.median(D[D > 0]) if (D > 0).any() else 1.0
        A = np.exp(-((D / middle) ** 2) * case.pick(0.5, 3.0, 30.0))
    A = np.where(np.isfinite(A), A, 0.0)
    if case.chance(0.5):
        return A
    case.note("a sparse graph")
    mask = np.zeros((n, n), dtype=bool)
    mask[rows, columns] = True
    return csr_array(A * (mask | mask.T) * case.pick(1.0, 1.0, ~np.eye(n, dtype=bool)))


def blobs(rng, n, d):
    centers = rng.normal(size=(int(rng.integers(1, 7)), d)) * 6
    return centers[rng.integers(len(centers), size=n)] + rng.normal(size=(n, d))


def moons(rng, n, d):
    t = rng.uniform(0, np.pi, n)
    side = rng.integers(2, size=n)
    X = np.stack([np.cos(t) + side, np.sin(t) * (1 - 2 * side)], axis=1)
    return X + 0.05 * rng.normal(size=X.shape)


def duplicates(rng, n, d):
    few = rng.normal(size=(max(1, n // int(rng.integers(1, 9))), d))
    return few[rng.integers(len(few), size=n)]


def outlier(rng, n, d):
    X = blobs(rng, n, d)
    X[0] += 10.0 ** rng.uniform(2, 30)
    return X


def lattice(rng, n, d):
    side = max(1, round(n ** (1 / min(d, 2))))
    i = np.arange(n)
    return np.stack([i % side, i // side], axis=1)


def constant_columns(rng, n, d):
    return np.concatenate([blobs(rng, n, d), np.full((n, 3), 7.0)], axis=1)


def uneven(rng, n, d):
    return blobs(rng, n, d) * 10.0 ** rng.uniform(-9, 9, d)


def line(rng, n, d):
    """A chain of points, equally far apart."""
    return np.outer(np.arange(n), rng.normal(size=d))


def hub(rng, n, d):
    """A center, and points around it that are equally far from it."""
    X = rng.normal(size=(n, d))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    X[0] = 0
    return X


def heavy(rng, n, d):
    return rng.standard_cauchy((n, d)) ** int(rng.choice([1, 3]))


def mixture(rng, n, d):
    """Some rows many times, and noise so small that squares nearly vanish."""
    return duplicates(rng, n, d) + 10.0 ** rng.uniform(-170, -8) * rng.normal(
        size=(n, d)
    )


MAKERS = {
    "blobs": blobs,
    "more blobs": blobs,
    "moons": moons,
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "heavy tails": heavy,
    "duplicates": duplicates,
    "one far outlier": outlier,
    "a lattice": lattice,
    "constant columns": constant_columns,
    "uneven columns": uneven,
    "a line": line,
    "a hub": hub,
    "nearly duplicates": mixture,
    "all the same": lambda rng, n, d: np.full((n, d), rng.normal()),
    "zeros": lambda rng, n, d: np.zeros((n, d)),
    "counts": lambda rng, n, d: rng.poisson(1.0, (n, d)),
    "bits": lambda rng, n, d: rng.integers(2, size=(n, d)),
}
SMOOTH = ("blobs", "more blobs", "moons", "uniform")
