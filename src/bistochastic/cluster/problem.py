"""From data to what Algorithm 2 needs: candidates, k, alpha by Eq. (19)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from bistochastic.cluster.candidates import Candidates, of_points
from bistochastic.cluster.step import Learned, inverse
from bistochastic.core.arrays import is_sparse, on_cpu
from bistochastic.core.errors import DegenerateError, InputError, several
from bistochastic.core.protocols import Place
from bistochastic.graph.simplex import (
    aggregated_rows,
    farthest,
    free,
    largest_alpha,
    reach,
    reach_of_rows,
    relaxed_rows,
)
from bistochastic.places.given_pairs import (
    distinct,
    fewest,
    of_affinities,
    of_distances,
    of_table,
    squares,
)
from bistochastic.places.matrices import Wanted, hold
from bistochastic.places.tables import DenseCosts
from bistochastic.scaling.feasibility import scalable

ORDERED = 200_000  # points from which on their order is worth a change
FARTHEST = 1e12  # how far a given alpha may be from that of Eq. (19), by a factor


@dataclass(frozen=True, eq=False)
class Problem:
    """What a run needs of the data.

    Attributes
    ----------
    all_costs : Costs
        At least k + 1 candidates of each point, for Eqs. (18) and (19).
    costs : Costs
        The candidates of the loop.
    k : int
        Number of neighbors.
    alpha : float or array of shape (n,)
        Weight of the squared norm.
    points : Points or None
        The points, if the data are such.
    limited : int
        How many candidates stand for all; 0 if all are there, or not wanted.
    given : Learned or None
        The first graph, if the data are a graph.
    links : Links or None
        Finds cheapest pairs between components.
    wanted : int or None
        How many candidates the loop uses at least, besides k; None for all.
    unit : bool
        Whether the rows of F are divided by their lengths.
    recall : float
        Which share of the nearest points the candidates are, on a sample.
    order : array of int of shape (n,), or None
        Which of the points of `fit` stands where; None if all stand where they stood.
    spot : array of int of shape (n,), or None
        Where each of them stands.
    sizes : array of shape (n,), or None
        How many points each row stands for, of a problem of aggregates.
    pairs : Costs or None
        How many pairs of points each candidate of an aggregate stands for.
    """

    all_costs: Any
    costs: Any
    k: int
    alpha: Any
    points: Any = None
    limited: int = 0
    given: Learned | None = None
    links: Any = None
    wanted: int | None = None
    unit: bool = False
    recall: float = 1.0
    order: Any = None
    spot: Any = None
    sizes: Any = None
    pairs: Any = None

    @property
    def mean_alpha(self) -> Any:
        """The mean of alpha over the rows."""
        return float(np.mean(on_cpu(self.alpha)))

    def weights(self, m: Any) -> Any:
        """Return the rows of the relaxed problem for costs m, Eqs. (14), (15)."""
        if self.sizes is not None:
            rule = partial(aggregated_rows, alpha=self.alpha)
            return m.weigh(rule, self.sizes, beside=[self.pairs])
        if np.ndim(self.alpha):
            return m.weigh(relaxed_rows, self.alpha)
        return m.weigh(partial(relaxed_rows, alpha=self.alpha))

    def open_rows(self, m: Any, potential: Any = None) -> Any:
        """Count rows in which a candidate that was left out could have a weight.

        Of the exact solution, s_ij > 0 where m_ij < 2 alpha (a_i + a_j).
        """
        if potential is not None:
            top = array_namespace(potential).max(potential)
            limit = 2.0 * self.alpha * (potential + top)
        elif np.ndim(self.alpha):
            limit = m.reduce(reach_of_rows, self.alpha)
        else:
            limit = m.reduce(partial(reach, alpha=self.alpha))
        return self.beyond(limit)

    def beyond(self, limit: float) -> Any:
        """Count rows whose limit of costs is beyond their farthest candidate."""
        return int(np.count_nonzero(on_cpu(limit > self.costs.reduce(farthest))))


def of_data(
    place: Place,
    X: Any,
    c: int,
    *,
    n_neighbors: Any,
    most: int,
    candidates: Any,
    alpha: Any,
    metric: Any,
    loops: bool,
    n_jobs: int | None,
    neighbors: Any = "exact",
    ordered: bool = True,
) -> Any:
    """Choose k, the candidates and alpha for points or distances.

    Parameters
    ----------
    place : Place
        Where the data are.
    X : data of the place
        Points, or distances.
    c : int
        Number of clusters.
    n_neighbors, candidates, alpha, metric, n_jobs, neighbors
        As ANCMM takes them.
    most : int
        What "auto" stands for, if there are as many candidates.
    loops : bool
        Whether a point is its own candidate.
    ordered : bool, default=True
        Whether very many points may be put in another order.

    Returns
    -------
    Problem
        What a run needs.
    """
    given, order = metric == "precomputed", None
    if n_neighbors == "auto" and isinstance(candidates, Integral):
        most = min(most, int(candidates))
    number, row = fewest(X, loops=loops, pairs=given)
    k = _neighbors(n_neighbors, most, X.shape[0], number, row, loops)
    wanted = _wanted(candidates, k)
    if given:
        points, (found, known) = None, _of_pairs(X, k, wanted, loops)
        found = Candidates(place.costs(found))
    else:
        if ordered and X.shape[0] >= ORDERED:
            X, order = place.ordered(X, metric)
        points = place.points(X, metric)
        found = of_points(
            place,
            points,
            X.shape[0],
            k,
            wanted,
            loops=loops,
            n_jobs=n_jobs,
            neighbors=neighbors,
        )
        known = found.costs
    _check_distinct(found.costs, c, loops)
    base = Problem(
        all_costs=found.costs,
        costs=found.costs,
        k=k,
        alpha=1.0,
        points=points,
        limited=found.limited,
        recall=found.recall,
        links=place.links(known, points),
        wanted=0 if candidates == "auto" else wanted,
        order=order,
        spot=None if order is None else inverse(order),
    )
    return at(base, k, alpha, c)


def _wanted(candidates: Any, k: int) -> Any:
    """Return how many candidates are wanted, None for all."""
    wanted = k if candidates == "auto" else candidates
    wanted = wanted if wanted is None else int(wanted)
    if wanted is not None and wanted < k:
        raise InputError(
            f"candidates={wanted} is less than n_neighbors={k}; every neighbor is a "
            "candidate."
        )
    return wanted


def _of_pairs(D: Any, k: int, wanted: Any, loops: bool) -> Any:
    """Return the costs of given distances for the loop, and those that are known."""
    if is_sparse(D):
        found = of_table(D, loops=loops)
        return found, found
    found = of_distances(D, loops=loops)
    if wanted is not None:
        found = found.table(max(k + 1, wanted))
    return found, DenseCosts(squares(D))


def at(problem: Any, k: int, alpha: Any, c: int) -> Any:
    """Return the same problem for fewer neighbors; the search is shared.

    Parameters
    ----------
    problem : Problem
        Made for more neighbors, the candidates being the nearest.
    k : int
        Number of neighbors.
    alpha : str or float
        As ANCMM takes it.
    c : int
        Number of clusters.

    Returns
    -------
    Problem
        The candidates are those that k needs, unless more are wanted.
    """
    costs = problem.all_costs
    used = costs if problem.wanted is None else costs.closest(max(k, problem.wanted))
    return replace(problem, costs=used, k=k, alpha=_alpha(costs, k, alpha, c))


def of_graph(place: Place, X: Any, scale: Callable[..., Any], *, loops: bool) -> Any:
    """Take a graph: M(X) is the first graph, and what the rows stay near to.

    Parameters
    ----------
    place : Place
        Where the fit runs.
    X : array or sparse matrix of shape (n, n)
        Symmetric affinities. Without total support a tenth of the mean row sum is
        added to the diagonal.
    scale : callable
        Finds the diagonal of D.
    loops : bool
        Whether a point may keep weight for itself.

    Returns
    -------
    Problem
        What a run needs.
    """
    ready = scalable(place.graph(hold(X, Wanted("X")).graph), "regularize")
    done = scale(ready.graph)
    A = ready.graph.scaled(done.value)
    entries = A.entries(0.0)
    graph = Learned(
        S=A,
        u=done.value,
        distance=-A.sq_norm(),
        residual=done.residual,
        n_products=ready.graph.n_products,
        shift=ready.shift,
    )
    costs = place.costs(of_affinities(entries, loops=loops))
    k = max(1, round(entries.nnz / A.n))
    links = place.links(costs, None)
    return Problem(costs, costs, k, 0.5, given=graph, links=links)


def _neighbors(k: int, most: Any, n: int, available: Any, row: Any, loops: bool) -> Any:
    """Return k, which needs k + 1 candidates of every point."""
    own = ", itself included" if loops else ""
    least = f"point {row} has {several(available, 'candidate')}{own}"
    if k == "auto":
        k = min(most, available - 1)
        if k < 1 or (k == 1 and loops and n > 2):
            raise InputError(
                f"Too few candidates: {least}, and Eq. (19) takes one more than there "
                "are neighbors. Add points, or make the table of neighbors wider."
            )
    elif loops and k == 1 and n > 2:
        raise InputError(
            "n_neighbors=1 counts the point itself and leaves it no neighbor. Pass 2 "
            "or more, or self_neighbor=False."
        )
    if int(k) >= available:
        raise InputError(
            f"n_neighbors={k} needs more than {k} candidates of every point, since Eq. "
            f"(19) looks at one more, but {least}. Lower n_neighbors, add points, or "
            "make the table of neighbors wider."
        )
    return int(k)


def _check_distinct(costs: Any, c: int, loops: bool) -> None:
    twins = np.count_nonzero(on_cpu(costs.reduce(free)) > loops)
    if c > costs.n - twins:
        number = distinct(costs)
        if c > number:
            raise InputError(
                f"n_clusters={c}, but X has only {several(number, 'distinct row')}; "
                "points at distance 0 cannot be told apart."
            )


def _alpha(costs: Any, k: int, alpha: Any, c: int) -> Any:
    """Return alpha, by the plain distances unless it is a number, Eq. (19).

    None stands for methods that have no alpha.
    """
    if alpha is None:
        return 1.0
    largest = on_cpu(costs.reduce(partial(largest_alpha, k=k)))
    proper = largest > 0  # not so among duplicates
    top = largest.max(initial=0.0)  # so that their sum does not overflow
    mean = float(top * (largest[proper] / top).mean()) if proper.any() else 0.0
    if not isinstance(alpha, str):
        if mean and not 1 / FARTHEST < float(alpha) / mean < FARTHEST:
            raise InputError(
                f"alpha={alpha:g} is out of all proportion to the distances, for which "
                f"Eq. (19) gives {mean:.3g}."
            )
        return float(alpha)
    if mean == 0:
        if c in (1, largest.size):
            return 1.0  # the first graph is the last
        raise DegenerateError(
            f"The {k + 1} nearest candidates of every point cost the same, as "
            f"duplicates do, so that Eq. (19) gives alpha = 0. Take more than "
            f"n_neighbors={k}, drop duplicates, or pass a number as alpha.",
            k,
        )
    if alpha == "mean":
        return mean
    return costs.vector(np.where(proper, largest, mean))
