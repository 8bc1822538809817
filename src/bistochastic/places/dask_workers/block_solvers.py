"""Searches, recurrences and linear systems on graphs in blocks."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bistochastic.core import recurrence as plain
from bistochastic.graph import components
from bistochastic.places.dask_workers import block_tasks as tasks
from bistochastic.places.dask_workers.block import exchanged
from bistochastic.places.dask_workers.vectors import BlockArray
from bistochastic.scaling import linear_systems as systems

SINGLE = 1e-5  # relative errors that singles do not make
KNOWN = 1e-6  # of a size, down to which changes tell it
AT_ONCE, GAIN = 6, 4.0  # products before a first wait, at most; what one may gain


def search(S: Any) -> np.ndarray:
    """Return the component of each point: of blocks first, then across.

    Each block finds the components of its rows and halo; which of them are the same is
    found by the caller from pairs of numbers, one for each two that touch.
    """
    if S.labels is not None:
        return S.labels
    layout = S.layout
    found = layout.each("components", tasks.groups_inside, S.blocks)
    own = layout.each("components", tasks.first_of_groups, found)
    labels = BlockArray.held(layout, own, (), np.int32)
    pairs = exchanged(S.exchange, "components", tasks.touching, found, labels)
    numbers = layout.each("components", tasks.n_groups, found)
    touched, numbers, parts = layout.gather([pairs, numbers, own])
    starts = np.concatenate([[0], np.cumsum(numbers)])
    here, there = [np.empty(0, int)], [np.empty(0, int)]
    for k, touching in enumerate(touched):
        owners = np.flatnonzero(S.exchange.counts[k])
        for (mine, theirs), j in zip(touching, owners, strict=True):
            here.append(starts[k] + mine)
            there.append(starts[j] + theirs)
    both = np.concatenate(here), np.concatenate(there)
    size = (int(starts[-1]),) * 2
    joined = csr_array((np.ones(both[0].size), both), shape=size)
    whole = connected_components(joined, directed=False)[1]
    placed = zip(parts, starts[:-1], strict=True)
    S.labels = components.numbered(
        np.concatenate([whole[start + part] for part, start in placed])
    )
    return S.labels


def recurrence(
    S: Any,
    X: Any,
    Y: Any,
    center: float,
    terms: Sequence[tuple[float, float]],
    accuracy: float = 0.0,
) -> Any:
    """Return the last block of a recurrence; workers meet once for each term."""
    layout = S.layout
    kind = np.float32 if accuracy >= SINGLE else np.float64
    blocks = S.blocks
    if kind is np.float32:
        blocks = layout.each("singles", tasks.singles, S.blocks)
    X, Y = layout.divided(X), layout.divided(Y)
    xp = X.__array_namespace__()
    X, Y = xp.astype(X, kind), xp.astype(Y, kind)
    S.n_products += len(terms)
    for a, c in terms:
        factors = kind(a), kind(-a * center), kind(c)
        made = exchanged(
            S.exchange, "filter", tasks.three_term, blocks, Y, factors, own=X.blocks()
        )
        X, Y = Y, BlockArray.held(layout, made, X.tail, kind)
    return layout.out(xp.astype(Y, np.float64))


def conjugate_gradients(
    S: Any, u: Any, r: Any, b: Any, accuracy: float, limit: int
) -> Any:
    """Solve the Newton system; blocks are waited for as seldom as can be."""
    layout = S.layout
    u, r, b = (layout.divided(x) for x in (u, r, b))
    caller, layout.caller = layout.caller, False
    try:
        x = _solved(S, u, r, b, accuracy, limit)
    finally:
        layout.caller = caller
    return layout.out(x)


def _solved(S: Any, u: Any, r: Any, b: Any, accuracy: float, limit: int) -> Any:
    xp = u.__array_namespace__()
    number = min(AT_ONCE, max(1, round(-math.log(accuracy) / math.log(GAIN))), limit)
    x, z, q, size, top = _at_once(S, u, r, b / r, accuracy, number)
    goal = accuracy**2 * top
    for _ in range(number, limit):
        if not size > goal:
            break
        Hq = q + u * S.apply(u * q) / r  # divided by r, as z and q are
        curvature, cross, square = (xp.sum(r * y) for y in (q * Hq, z * Hq, Hq * Hq))
        if not float(curvature) > 0:
            break
        step = size / float(curvature)
        # the next size, known in advance, spares another wait
        change = (step * float(square) - 2.0 * float(cross)) * step
        x = x + step * q
        z = z - step * Hq
        last, size = size, max(0.0, size + change)
        if size < KNOWN * top:  # what is left of it is rounding
            size = top = float(xp.sum(r * z * z))
        q = z + (size / last) * q
    return x


def _at_once(S: Any, u: Any, r: Any, z: Any, accuracy: float, number: int) -> Any:
    """Take the first steps of conjugate gradients after one wait.

    All that they make are sums of z, P z, P^2 z, ..., where P is diag(u / r) S diag(u):
    if the products of these are known, numbers do to tell how to sum them.

    Returns
    -------
    tuple of (BlockArray, BlockArray, BlockArray, float, float)
        Solution, what is left of z, next direction, and the squared sizes of what is
        left and of z.
    """
    powers = [z]
    for _ in range(number):
        powers.append(u * S.apply(u * powers[-1]) / r)
    G = np.asarray(_gram(powers, r))
    x = np.zeros(number + 1)
    z = q = np.eye(number + 1)[0]
    size = top = float(G[0, 0])
    goal = accuracy**2 * top
    for _ in range(number):
        Hq = q + np.roll(q, 1)
        curvature = float(q @ G @ Hq)
        if not curvature > 0:
            size = 0.0
            break
        step = size / curvature
        x = x + step * q
        z = z - step * Hq
        last, size = size, float(z @ G @ z)
        if not size > goal:
            break
        q = z + (size / last) * q
    return *(_summed(of, powers) for of in (x, z, q)), size, top


def _gram(vectors: list[Any], r: Any) -> Any:
    """Return the sums of v_i r w_i over all pairs of vectors, not yet looked at."""
    V = r.__array_namespace__().concat([v[:, None] for v in vectors], axis=1)
    return V.T @ (V * r[:, None])


def _summed(weights: np.ndarray, vectors: list[Any]) -> Any:
    return sum(float(a) * v for a, v in zip(weights, vectors, strict=True))


BODIES: dict[Callable[..., Any], Any] = {
    components.search: search,
    plain.recurrence: recurrence,
    systems.conjugate_gradients: conjugate_gradients,
}
