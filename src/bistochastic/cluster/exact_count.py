"""Exactly c components: small ones joined, the largest cut."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array

from bistochastic.cluster.step import Learned, Step
from bistochastic.core.arrays import on_cpu
from bistochastic.core.protocols import Graph, Links
from bistochastic.core.run import Status
from bistochastic.graph.bridges import BRIDGE, bridges, reunited, sweep
from bistochastic.graph.components import by_size, components, numbered
from bistochastic.graph.objective import Objective
from bistochastic.places.host.csr import Csr
from bistochastic.scaling.feasibility import support
from bistochastic.spectrum.ky_fan import SMALL, Embedding, ky_fan

UNTIED = 1e-9  # by how much weights differ, so that none are equal
IRRATIONAL = 0.5**0.5  # power of whole numbers of which no sums are equal


def rank(number: Any, c: int, n: int) -> Any:
    """Prefer too many components, which can be joined, to too few."""
    return number - c if number >= c else n + c - number


def mended(
    S: Graph, links: Links, floor: int, together: bool = False, sizes: Any = None
) -> tuple[Any, Any]:
    """Join components smaller than `floor` to others by their cheapest pairs.

    Parameters
    ----------
    S : Graph
        Symmetric weights.
    links : Links
        Finds cheapest pairs.
    floor : int
        Smallest size of a component.
    together : bool, default=False
        Whether components in which duplicates of one another lie are joined first.
    sizes : array of shape (n,), optional
        Numbers of points, if rows stand for aggregates.

    Returns
    -------
    S : Graph
        The graph with bridges.
    pairs : tuple of (int, int)
        The bridges.
    """
    labels, pairs = components(S)[1], list[Any]()
    if together and links.twins is not None:
        pairs, labels = reunited(labels, links.twins)
    if floor > 1:
        pairs = pairs + bridges(labels, links, floor=floor, sizes=sizes)[0]
    return joined(S, pairs), tuple(pairs)


def joined(S: Graph, pairs: Any) -> Graph:
    """Add edges between pairs of points, half as heavy as the heaviest of both rows.

    Those chosen later are lighter by next to nothing. Where nothing but loops and
    bridges is left, weights are equal otherwise, and so are the eigenvalues of
    components and the ways to cut them: rounding would choose.

    Parameters
    ----------
    S : Graph
        Symmetric weights.
    pairs : sequence of (int, int)
        What to join, in the order in which they were chosen.

    Returns
    -------
    Graph
        The graph with these edges.
    """
    if not pairs:
        return S
    i, j = np.array(pairs).T
    highest = on_cpu(S.highest())
    weights = BRIDGE * np.maximum(highest[i], highest[j])
    return S.joined(i, j, weights * untied(np.arange(i.size)))


def untied(ranks: Any) -> Any:
    """Return factors that differ from one, and their sums from one another, by little.

    Parameters
    ----------
    ranks : array of int of shape (m,)
        An order, the first factor the largest.

    Returns
    -------
    array of shape (m,)
        The factors.
    """
    return 1.0 - UNTIED * (ranks / ranks.size) ** IRRATIONAL


def settled(
    graph: Any, c: int, links: Links, floor: int, scale: Callable[..., Any]
) -> Iterator[Any]:
    """Yield graphs with joins or cuts until one has c components.

    Parameters
    ----------
    graph : Learned
        The graph that lambda gave.
    c : int
        Wanted number of components.
    links : Links
        Finds cheapest pairs.
    floor : int
        Smallest size of a component.
    scale : callable
        Finds the diagonal of D.

    Yields
    ------
    Learned
        Doubly stochastic graphs, the last one with c components, or more where nothing
        is known to join them by.
    """
    number, labels = components(graph.S)
    if number > c:
        pairs, _ = bridges(labels, links, floor=floor, most=c)
        graph = _scaled(graph, joined(graph.S, pairs), scale, pairs, "join")
        number, labels = components(graph.S)
        yield graph
    while number < c:
        graph = _cut(graph, labels, links, floor, scale)
        number, labels = components(graph.S)
        yield graph


def _cut(graph: Any, labels: Any, links: Any, floor: int, scale: Any) -> Any:
    """Divide the largest component that can be; keep each of its sides together.

    Without loops, weights of few edges are equal whatever they cost; costs say then
    which component is divided, and where.
    """
    twins = np.arange(labels.size) if links.twins is None else links.twins
    sizes = np.bincount(labels)
    pairs = np.unique(np.stack([labels, twins]), axis=1)[0]
    sizes[np.bincount(pairs, minlength=sizes.size) < 2] = 0  # duplicates only
    factors = np.ones(labels.size)
    largest = np.flatnonzero(sizes[labels] == sizes.max())
    if largest.size <= SMALL:  # else errors of the eigensolver are larger
        factors[largest] = untied(links.within(largest).ranks())
    index = np.flatnonzero(labels == by_size(graph.S, labels, sizes, factors)[0])
    groups = numbered(twins[index])
    part = graph.S.part(index)
    part = part.scaled(part.vector(factors[index]))
    found = ky_fan(part, 2, np.zeros(index.size, dtype=np.int64))
    v = on_cpu(found.F)[:, 1]
    side = sweep(part.entries(0.0), v, min(floor, index.size // 2), groups)
    sides = labels.copy()
    sides[index[side]] = labels.max() + 1
    S = graph.S.cut(sides, sides)
    pieces = components(S)[1]
    pairs = []
    for whole in (index[side], index[~side]):
        inside = numbered(pieces[whole])
        if inside.max() > 0:
            chosen, _ = bridges(inside, links.within(whole), most=1)
            chosen = [(int(whole[i]), int(whole[j])) for i, j in chosen]
            S, pairs = joined(S, chosen), pairs + chosen
    kept = [(i, j) for i, j in graph.bridges if sides[i] == sides[j]]
    made = replace(graph, bridges=tuple(kept))
    return _scaled(made, S, scale, pairs, "cut")


def _scaled(graph: Any, S: Any, scale: Any, pairs: Any, action: Any) -> Any:
    if support(S).kind != "total":  # without loops, a side of a cut can lose it
        shift = S.n / max(1, S.pattern().nnz)  # as heavy as an edge
        S, graph = S.shifted(shift), replace(graph, shift=shift)
    done = scale(S)
    return replace(
        graph,
        S=S.scaled(done.value),
        u=graph.u * done.value,
        residual=done.residual,
        n_products=S.n_products,
        bridges=(*graph.bridges, *pairs),
        action=action,
    )


def singletons(n: int, alpha: Any) -> Any:
    """Return the one step of a fit in which every point is a cluster of its own."""
    graph = Learned(Csr(csr_array(eye_array(n))), np.ones(n), 0.0, 0.0, 0)
    value = Objective(0.0, float(np.sum(on_cpu(alpha) * np.ones(n))), 0.0)
    found = Embedding(np.eye(n), np.zeros(n), Status.CONVERGED, 0)
    return Step(graph, found, 0.0, n, np.arange(n), value)
