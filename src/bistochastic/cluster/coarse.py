"""Coarse first: the loop on aggregates of points, before the one on the points.

The sums of a doubly stochastic graph over aggregates are doubly stochastic with their
sizes as marginals, so that the problem of aggregates is of the same kind, and the same
loop solves it (docs/theory/coarse.md). All numbers of neighbors are tried on about a
thousand aggregates; what the chosen one found there is corrected on four times as many,
and then on the points.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from bistochastic.cluster.loop import ancmm
from bistochastic.cluster.problem import Problem
from bistochastic.cluster.step import Learned, Step
from bistochastic.core.run import run
from bistochastic.graph.aggregates import Aggregates, aggregates
from bistochastic.graph.bridges import Links
from bistochastic.places.host.csr import Csr
from bistochastic.places.host.pattern_costs import GraphPattern, PatternCosts
from bistochastic.spectrum.ky_fan import Embedding

AGGREGATES, EACH = 1000, 20  # most aggregates of trials; or so many for each cluster
FINER = 4  # times as many aggregates, on which the chosen trial is corrected
WORTH = 1.5  # points to an aggregate from which on aggregates are worth their while
SMOOTH = 3  # products with a graph that smooth what a coarser one found
BORDERS = 8  # products with the graph of the points that settle borders
TRIED = 1e-5  # errors of eigenvectors in trials
LOOSE = 1e-4  # errors of eigenvectors where a coarser level starts them


@dataclass(frozen=True, eq=False)
class Trial:
    """What the loop found on aggregates.

    Attributes
    ----------
    step : Step
        Its best step.
    n_iter : int
        How many graphs it learned.
    held : Aggregates
        The aggregates.
    """

    step: Step
    n_iter: int
    held: Aggregates

    @property
    def labels(self) -> np.ndarray:
        """The cluster of each point."""
        return self.step.labels[self.held.groups]

    def smoothed(self, S: Any, held: Aggregates | None = None) -> Embedding | None:
        """Return the embedding for a finer graph: that of the aggregates, smoothed.

        Parameters
        ----------
        S : Graph
            The finer graph.
        held : Aggregates, optional
            What its rows stand for; points by default.

        Returns
        -------
        Embedding or None
            None if the first graph was the result.
        """
        found, parent = self.step.found, self.held.groups
        if found is None:
            return None
        sizes = 1.0
        if held is not None:
            parent = np.empty(held.sizes.size, dtype=np.int64)
            parent[held.groups] = self.held.groups
            sizes = S.vector(held.sizes)[:, None]
        F = S.vector(found.F[parent])
        for _ in range(SMOOTH):
            F = S.apply(F) / sizes
        return replace(found, F=F, n_products=SMOOTH * F.shape[1], guards=None)

    def indicated(self, S: Any) -> Embedding | None:
        """Return the embedding of the clusters, their indicators (Theorem 3).

        A point at a border goes to the cluster that random steps from it end in most
        often, as S has it.

        Parameters
        ----------
        S : Graph
            The graph of the points.

        Returns
        -------
        Embedding or None
            None if the first graph was the result.
        """
        found, number = self.step.found, self.step.number
        if found is None:
            return None
        own = S.vector(self.labels)
        xp = array_namespace(own)
        every = xp.arange(number, dtype=own.dtype, device=device(own))[None, :]
        F = xp.astype(own[:, None] == every, own.dtype)
        for _ in range(BORDERS):
            F = S.apply(F)
        most = xp.astype(xp.argmax(F, axis=1), own.dtype)
        F = xp.astype(most[:, None] == every, own.dtype)
        return replace(found, F=F, n_products=BORDERS * number, guards=None)


def few(n: int, c: int) -> bool:
    """Tell whether so few points need no aggregates."""
    return n < WORTH * _target(c)


def _target(c: int) -> int:
    return max(AGGREGATES, EACH * c)


def narrowed(problem: Problem) -> Problem:
    """Return a problem with no more candidates than its first graph looks at."""
    if problem.given is not None:
        return problem
    return replace(problem, all_costs=problem.all_costs.table(problem.k + 1))


def gathered_points(first: Learned, c: int) -> list[Aggregates]:
    """Aggregate points by their first graph.

    Parameters
    ----------
    first : Learned
        That with the fewest neighbors that are tried.
    c : int
        Number of clusters.

    Returns
    -------
    list of Aggregates
        The last for trials, about a thousand, or twenty for each cluster; before it,
        where there are many more points, four times as many.
    """
    target = _target(c)
    finer = FINER * target
    between = [finer] if first.S.n >= WORTH * finer else []
    return aggregates(first.S, [*between, target])


def gathered_graph(first: Learned, held: Aggregates) -> tuple[Csr, Csr]:
    """Return the sums of a graph of points between aggregates, and numbers of pairs.

    Parameters
    ----------
    first : Learned
        The first graph of the points.
    held : Aggregates
        The aggregates.

    Returns
    -------
    weights : Csr
        Symmetric; rows sum to the sizes of the aggregates.
    pairs : Csr
        How many pairs of points each entry stands for.
    """
    n, groups = held.sizes.size, held.groups
    weights, pairs = (
        Csr(graph.gathered(groups, n).entries(0.0))
        for graph in (first.S, first.S.indicator())
    )
    return weights, pairs


def of_aggregates(
    weights: Csr, pairs: Csr, held: Aggregates, k: int, maker: Any
) -> Problem:
    """Return the problem of aggregates.

    Parameters
    ----------
    weights, pairs : Csr
        Sums of weights between aggregates, and how many pairs of points have one, on
        the same pattern.
    held : Aggregates
        The aggregates.
    k : int
        Number of neighbors of a point.
    maker : GraphMaker
        Makes rows sum to the sizes of the aggregates.

    Returns
    -------
    Problem
        On the host. Its rows, without a penalty, are the weights.
    """
    done = maker.scale(weights, sizes=held.sizes)
    S = weights.scaled(done.value)
    entries = S.native()
    pattern = GraphPattern(entries.indptr, entries.indices)
    number = pairs.native().data
    costs = PatternCosts(pattern, -entries.data / number)
    graph = Learned(
        S=S,
        u=done.value,
        distance=-S.sq_norm(),
        residual=done.residual,
        n_products=weights.n_products,
    )
    return Problem(
        all_costs=costs,
        costs=costs,
        k=k,
        alpha=0.5,
        given=graph,
        links=PatternLinks(S.n, (), S=S, sizes=held.sizes),
        unit=True,
        sizes=held.sizes,
        pairs=PatternCosts(pattern, number),
    )


def tried(
    problem: Any,
    held: Aggregates,
    c: int,
    *,
    maker: Any,
    rule: Any,
    max_iter: int,
    coarser: Trial | None = None,
    **options: Any,
) -> Trial:
    """Run the loop on aggregates.

    Parameters
    ----------
    problem : Problem
        That of the aggregates.
    held : Aggregates
        The aggregates.
    c : int
        Number of clusters.
    maker : GraphMaker
        Makes graphs.
    rule : Bracket
        The rule for lambda.
    max_iter : int
        Most graphs to learn.
    coarser : Trial, optional
        What fewer aggregates found, to go on from.
    **options : object
        `rng` and `rank` of the loop.

    Returns
    -------
    Trial
        What was found.
    """
    start, tol = None, TRIED
    if coarser is not None:
        tol = LOOSE
        start = coarser.smoothed(problem.given.S, held)
        rule = rule.resumed(coarser.step.lam)
    steps = ancmm(
        problem.costs,
        c,
        problem.given,
        maker.update(problem),
        alpha=problem.alpha,
        penalty=rule,
        unit=True,
        sizes=problem.sizes,
        start=start,
        tol=tol,
        **options,
    )
    done = run(steps, tol=0, max_iter=max_iter, patience=max_iter + 2)
    return Trial(done.value, done.n_iter, held)


@dataclass(frozen=True, eq=False)
class PatternLinks(Links):
    """Finds the heaviest edge between parts of a graph of aggregates.

    Attributes
    ----------
    S : Csr
        The graph.
    sizes : array of shape (n,)
        How many points each aggregate has.
    """

    S: Any = None
    sizes: Any = None
    twins = None

    @cached_property
    def edges(self) -> Any:
        """Both ends, and weights times -1, which are as when aggregates are matched."""
        A, sizes = self.S.native(), self.sizes
        i, j = np.repeat(np.arange(self.n), np.diff(A.indptr)), A.indices
        i, j, weights = (x[i != j] for x in (i, j, A.data))
        return i, j, -weights * (1.0 / sizes[i] + 1.0 / sizes[j])

    def leaving(self, labels: Any, wanted: Any) -> Any:
        """Return the heaviest edge that leaves each part."""
        here, there = (labels[ends] for ends in self.edges[:2])
        out = (here != there) & wanted[here]
        edges = (x[out] for x in self.edges)
        return self._cheapest(labels, int(labels.max()) + 1, *edges)
