"""Hostile symmetric matrices, by name; each maker takes a generator and a size."""

import numpy as np


def drawn(case, most=60):
    """Return a symmetric non-negative array, and whether it is a tame one.

    Tame ones have a positive diagonal and entries near one, so that what comes out is
    determined to many digits.
    """
    rng = case.rng
    n = int(
        case.pick(1, 2, 3, 5, *rng.integers(2, most, 12), *rng.integers(60, 300, 1))
    )
    if case.chance(0.01):
        n = int(rng.integers(1000, 2000))
    name = case.pick(*MAKERS)
    with np.errstate(all="ignore"):
        S = MAKERS[name](rng, n)
        S = np.where(np.isfinite(S), S, 0.0)
        tame = name in TAME
        factor = 1.0
        if case.chance(0.3):
            factor = 10.0 ** rng.uniform(-290, 290)
            scaled = S * factor
            if np.isfinite(scaled).all():
                S = scaled
        if case.chance(0.1):  # rows and columns of very different size
            d = 10.0 ** rng.uniform(-20, 20, n)
            scaled = d[:, None] * S * d
            S, tame = (scaled + scaled.T) / 2, False
    case.note(f"matrix {name}, n = {n}, times {factor:.3g}")
    return S, tame


def poisoned(case, S):
    """Return the array with one thing in it that has to be refused."""
    S = np.array(S)
    i, j = case.rng.integers(len(S), size=2)
    what = case.pick("nan", "inf", "negative", "asymmetric")
    if what == "asymmetric":
        if len(S) == 1:
            return S, None
        j = (i + 1) % len(S)
        S[i, j] = 2 * S[i, j] + S.max() + 1.0
    else:
        S[i, j] = S[j, i] = {"nan": np.nan, "inf": np.inf, "negative": -1.0}[what]
    case.note(f"with an entry that is {what}")
    return S, what


def symmetric(W):
    """Mirror the upper triangle."""
    return np.triu(W) + np.triu(W, 1).T


def lognormal(rng, n, spread=1.0, density=0.3, loops=True):
    W = np.exp(spread * rng.standard_normal((n, n))) * (rng.random((n, n)) < density)
    S = symmetric(W)
    np.fill_diagonal(S, np.exp(spread * rng.standard_normal(n)) * loops)
    return S


def chain(rng, n):
    S = np.zeros((n, n))
    i = np.arange(n - 1)
    S[i, i + 1] = S[i + 1, i] = rng.random(n - 1) + 0.1
    return S


def star(rng, n):
    S = np.zeros((n, n))
    S[0, 1:] = S[1:, 0] = rng.random(n - 1) + 0.1
    return S


def cycle(rng, n):
    S = chain(rng, n)
    S[0, -1] = S[-1, 0] = 1.0
    return S


def arrow(rng, n):
    return star(rng, n) + np.diag(rng.random(n) + 0.1)


def blocks(rng, n):
    """Nearly decoupled clusters."""
    side = rng.integers(1 + n // 10, size=n)
    same = side[:, None] == side
    return symmetric(rng.random((n, n)) * np.where(same, 1.0, 10.0 ** rng.uniform(-18)))


def disconnected(rng, n):
    side = rng.integers(1 + n // 5, size=n)
    S = symmetric(rng.random((n, n)) + 0.05)
    return S * (side[:, None] == side)


def bipartite(rng, n):
    S = np.zeros((n, n))
    half = int(rng.integers(n + 1)) if rng.random() < 0.5 else n // 2
    S[:half, half:] = rng.random((half, n - half)) * (rng.random() < 0.9)
    return S + S.T


def near_permutation(rng, n):
    """Pairs that belong together, and hardly anything else."""
    S = np.zeros((n, n))
    order = rng.permutation(n)
    mate = np.arange(n)
    pairs = n // 2
    mate[order[:pairs]], mate[order[pairs : 2 * pairs]] = (
        order[pairs : 2 * pairs],
        order[:pairs],
    )
    S[np.arange(n), mate] = 1.0
    return S + 10.0 ** rng.uniform(-30, -2) * symmetric(rng.random((n, n)))


def triangle(rng, n):
    """Support without total support: the limit is a permutation."""
    i = np.arange(n)
    return symmetric(rng.random((n, n)) + 0.1) * (i[:, None] + i < n)


def sparse_holes(rng, n):
    return lognormal(rng, n, density=min(1.0, 2.5 / n), loops=False)


def zero_rows(rng, n):
    S = lognormal(rng, n)
    gone = rng.random(n) < 0.2
    S[gone] = 0
    S[:, gone] = 0
    return S


def kernel(rng, n):
    x = rng.standard_normal((n, 2)) * 10.0 ** rng.uniform(-3, 2)
    return np.exp(-((x[:, None] - x) ** 2).sum(axis=2))


def distances(rng, n):
    x = rng.standard_normal((n, 2))
    return ((x[:, None] - x) ** 2).sum(axis=2)


def rank_one(rng, n):
    d = 10.0 ** rng.uniform(-3, 3, n)
    S = d[:, None] * d
    return S + 1e-12 * S.max() * np.eye(n)


def wide(rng, n):
    """Weights over many powers of ten."""
    return lognormal(rng, n, spread=case_spread(rng))


def case_spread(rng):
    return float(rng.choice([3.0, 10.0, 50.0]))


def grid(rng, n):
    side = max(1, int(n**0.5))
    i = np.arange(n)
    x, y = i % side, i // side
    near = abs(x[:, None] - x) + abs(y[:, None] - y)
    return (near == 1) * 1.0 + (rng.random() < 0.5) * np.eye(n)


def denormal(rng, n):
    return lognormal(rng, n) * 10.0 ** rng.uniform(-323, -305)


MAKERS = {
    "lognormal": lognormal,
    "dense": lambda rng, n: lognormal(rng, n, spread=0.5, density=1.0),
    "no diagonal": lambda rng, n: lognormal(rng, n, loops=False),
    "dense, no diagonal": lambda rng, n: lognormal(rng, n, density=1.0, loops=False),
    "wide": wide,
    "chain": chain,
    "star": star,
    "cycle": cycle,
    "arrow": arrow,
    "blocks": blocks,
    "disconnected": disconnected,
    "bipartite": bipartite,
    "near a permutation": near_permutation,
    "triangle": triangle,
    "sparse with holes": sparse_holes,
    "zero rows": zero_rows,
    "kernel": kernel,
    "distances": distances,
    "rank one": rank_one,
    "grid": grid,
    "denormal": denormal,
    "ones": lambda rng, n: np.ones((n, n)),
    "identity": lambda rng, n: np.eye(n),
    "zeros": lambda rng, n: np.zeros((n, n)),
}
TAME = ("lognormal", "dense", "ones", "identity")
