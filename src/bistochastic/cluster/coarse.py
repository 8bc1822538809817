"""Coarse first: the loop on aggregates of points, before the one on the points.

The sums of a doubly stochastic graph over aggregates are doubly stochastic with their
sizes as marginals, so that the problem of aggregates is of the same kind, and the same
loop solves it. See docs/theory/coarse.md.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bistochastic.cluster.loop import ancmm
from bistochastic.cluster.problem import Problem
from bistochastic.cluster.step import Learned, Step
from bistochastic.core.run import run
from bistochastic.graph.aggregates import Aggregates, aggregates
from bistochastic.graph.bridges import Links
from bistochastic.graph.simplex import first_weights
from bistochastic.places.host.csr import Csr
from bistochastic.places.host.pattern_costs import GraphPattern, PatternCosts

AGGREGATES = 1000  # how many aggregates there are, at most
EACH = 20  # aggregates for each cluster, at least
WORTH = 1.5  # points to an aggregate from which on the coarse loop is worth its while
SMOOTH = 3  # products with the fine graph that smooth what a coarse one found


@dataclass(frozen=True, eq=False)
class Trial:
    """What the loop found on aggregates.

    Attributes
    ----------
    step : Step
        Its best step.
    n_iter : int
        How many graphs it learned.
    groups : array of int of shape (n,)
        The aggregate of each point.
    """

    step: Step
    n_iter: int
    groups: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        """The cluster of each point."""
        return self.step.labels[self.groups]

    def embedding(self, S: Any) -> Any:
        """Return the embedding of the points: that of aggregates, smoothed."""
        found = self.step.found
        if found is None:
            return None
        F = S.vector(found.F[self.groups])
        for _ in range(SMOOTH):
            F = S.apply(F)
        return replace(found, F=F, n_products=SMOOTH * F.shape[1], guards=None)


def gathered_points(problem: Problem, c: int) -> Aggregates | None:
    """Aggregate points by the rows of their first graph; None if they are few.

    Parameters
    ----------
    problem : Problem
        With the fewest neighbors that are tried.
    c : int
        Number of clusters.

    Returns
    -------
    Aggregates or None
        At most a thousand, or twenty for each cluster if that is more.
    """
    target = max(AGGREGATES, EACH * c)
    if problem.costs.n < WORTH * target:
        return None
    if problem.given is not None:
        return aggregates(problem.given.S, target)
    return aggregates(_first_rows(problem).symmetrized(), target)


def of_aggregates(problem: Problem, held: Aggregates, maker: Any) -> Problem:
    """Return the problem of aggregates.

    Parameters
    ----------
    problem : Problem
        That of the points.
    held : Aggregates
        The aggregates.
    maker : GraphMaker
        Maps the first graph.

    Returns
    -------
    Problem
        On the host. Its rows, without a penalty, are the sums of those of the points.
    """
    number = held.sizes.size
    if problem.given is not None:
        S = problem.given.S
        sums = [
            graph.gathered(held.groups, number).entries(0.0)
            for graph in (S, S.indicator())
        ]
    else:
        sums = _first_rows(problem).gathered(held.groups, number)
    pattern, (weights, pairs) = _together(*sums)
    known = pairs > 0
    costs = np.where(known, -weights / np.where(known, pairs, 1.0), np.inf)
    rows = PatternCosts(pattern, weights)
    S = rows.symmetrized()
    done = maker.scale(S, sizes=held.sizes)
    first = Learned(
        S=S.scaled(done.value),
        u=done.value,
        distance=0.0,
        residual=done.residual,
        n_products=S.n_products,
    )
    links = PatternLinks.of(S, held.sizes)
    return Problem(
        all_costs=PatternCosts(pattern, costs),
        costs=PatternCosts(pattern, costs),
        k=problem.k,
        alpha=0.5,
        given=first,
        links=links,
        unit=True,
        sizes=held.sizes,
        pairs=PatternCosts(pattern, np.where(known, pairs, 1.0)),
    )


def tried(
    problem: Problem, held: Aggregates, c: int, *, maker: Any, rule: Any, **options: Any
) -> Trial:
    """Run the loop on aggregates.

    Parameters
    ----------
    problem : Problem
        That of the points.
    held : Aggregates
        The aggregates.
    c : int
        Number of clusters.
    maker : GraphMaker
        Makes graphs.
    rule : Bracket
        The rule for lambda.
    **options : object
        `rng`, `rank` and `max_iter` of the loop.

    Returns
    -------
    Trial
        What was found.
    """
    coarse = of_aggregates(problem, held, maker)
    most = options.pop("max_iter")
    steps = ancmm(
        coarse.costs,
        c,
        coarse.given,
        maker.update(coarse),
        alpha=coarse.alpha,
        penalty=rule,
        unit=True,
        sizes=coarse.sizes,
        **options,
    )
    done = run(steps, tol=0, max_iter=most, patience=most + 2)
    return Trial(done.value, done.n_iter, held.groups)


def _first_rows(problem: Problem) -> Any:
    return problem.all_costs.weigh(partial(first_weights, k=problem.k))


def _together(*sums: csr_array) -> tuple[GraphPattern, list[np.ndarray]]:
    """Put matrices on the pattern that they and their transposes have together."""
    n = sums[0].shape[0]
    keys = [
        np.repeat(np.arange(n), np.diff(S.indptr)) * n + S.indices.astype(np.int64)
        for S in sums
    ]
    own = keys[0]
    every = np.union1d(own, own % n * n + own // n)
    indptr = np.searchsorted(every, np.arange(n + 1) * n).astype(np.int32)
    pattern = GraphPattern(indptr, (every % n).astype(np.int32))
    made = []
    for S, key in zip(sums, keys, strict=True):
        values = np.zeros(every.size)
        values[np.searchsorted(every, key)] = S.data
        made.append(values)
    return pattern, made


@dataclass(frozen=True, eq=False)
class PatternLinks(Links):
    """Finds the heaviest edge between parts of a graph of aggregates.

    Attributes
    ----------
    ends, others, prices : array of shape (m,)
        The edges, and their weights times -1.
    """

    ends: Any = None
    others: Any = None
    prices: Any = None
    twins = None

    @classmethod
    def of(cls, S: Csr, sizes: np.ndarray) -> "PatternLinks":
        """Take the edges of a graph; they weigh as when aggregates are matched."""
        A = S.native()
        i, j = np.repeat(np.arange(S.n), np.diff(A.indptr)), A.indices
        i, j, weights = (x[i != j] for x in (i, j, A.data))
        prices = -weights * (1.0 / sizes[i] + 1.0 / sizes[j])
        return cls(S.n, (), ends=i, others=j, prices=prices)

    def leaving(self, labels: Any, wanted: Any) -> Any:
        """Return the heaviest edge that leaves each part."""
        here, there = labels[self.ends], labels[self.others]
        out = (here != there) & wanted[here]
        edges = (x[out] for x in (self.ends, self.others, self.prices))
        return self._cheapest(labels, int(labels.max()) + 1, *edges)
