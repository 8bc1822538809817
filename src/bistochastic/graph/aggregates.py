r"""Aggregates: a graph gathered to fewer nodes, so that the theory stays as it is.

With P the indicators of aggregates and w their sizes, :math:`P' S P` of a doubly
stochastic S has the row sums w: it is doubly stochastic with marginals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from bistochastic.core.arrays import on_cpu
from bistochastic.core.protocols import Graph

ROUNDS = 4  # of proposals in one matching
UNEVEN = 4.0  # times the mean: the largest size of an aggregate
STUCK = 0.97  # share of the nodes that a matching leaves where it gains nothing


@dataclass(frozen=True, eq=False)
class Aggregates:
    """Disjoint groups of points.

    Attributes
    ----------
    groups : array of int of shape (n,)
        The aggregate of each point, numbered by first appearance.
    sizes : array of shape (m,)
        How many points each has.
    """

    groups: np.ndarray
    sizes: np.ndarray


def aggregates(S: Graph, targets: Sequence[int]) -> list[Aggregates]:
    """Match heavy edges time and again until few aggregates are left.

    Parameters
    ----------
    S : Graph
        Symmetric weights with a positive diagonal.
    targets : sequence of int
        Wanted numbers of aggregates, the largest first.

    Returns
    -------
    list of Aggregates
        For each target at most as many, unless nothing is left that may be joined: an
        aggregate has at most four times the mean number of points.
    """
    n, made = S.n, list[Aggregates]()
    sizes = S.ones()
    xp = array_namespace(sizes)
    groups = xp.arange(n, device=device(sizes))
    for target in targets:
        cap = max(2.0, UNEVEN * n / target)
        while S.n > target:
            found, number = matched(S, sizes, cap)
            if number > STUCK * S.n:
                break
            total = np.bincount(on_cpu(found), on_cpu(sizes), minlength=number)
            sizes, groups = S.vector(total), xp.take(found, groups)
            S = S.gathered(found, number)
        made.append(Aggregates(on_cpu(groups), on_cpu(sizes)))
    return made


def matched(S: Graph, sizes: Any, cap: float) -> tuple[Any, int]:
    """Pair nodes that are each other's heaviest neighbors.

    The weight of an edge is s_ij (1 / w_i + 1 / w_j), what either end loses of its row
    with it. Each node proposes to its heaviest neighbor; those that propose to each
    other are a pair, and the others propose again. Weights decide, not numbers of rows.

    Parameters
    ----------
    S : Graph
        Symmetric weights.
    sizes : array of shape (n,)
        Points w of each node.
    cap : float
        Most points of a pair.

    Returns
    -------
    groups : array of int of shape (n,)
        The pair of each node, or itself, numbered by first appearance.
    number : int
        How many there are.
    """
    xp = array_namespace(sizes)
    every = xp.arange(S.n, device=device(sizes))
    mate, free = every, sizes < cap
    for _ in range(ROUNDS):
        best = S.mates(sizes, free, cap)
        asked = xp.where(best >= 0, best, every)
        mutual = (best >= 0) & (xp.take(asked, asked) == every)
        if not bool(xp.any(mutual)):
            break
        mate = xp.where(mutual, asked, mate)
        free = free & ~mutual
    leader = xp.minimum(every, mate)
    number = xp.cumulative_sum(xp.astype(leader == every, xp.int64))
    return xp.take(number, leader) - 1, int(number[-1])
