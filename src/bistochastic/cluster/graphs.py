"""From costs to a graph, Eqs. (13), (16), (17), as the parameters say."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from array_api_compat import array_namespace

from bistochastic.cluster.exact_count import mended
from bistochastic.cluster.step import Learned
from bistochastic.core.arrays import on_cpu
from bistochastic.core.errors import InputError
from bistochastic.core.protocols import Costs, Graph, Rows
from bistochastic.core.run import Status
from bistochastic.graph.objective import epsilon
from bistochastic.graph.simplex import first_weights
from bistochastic.scaling.feasibility import reachable, support
from bistochastic.scaling.frobenius import nearest
from bistochastic.scaling.marcus import marcus
from bistochastic.scaling.residual import worst

PASSES = 1000  # of a published scaling iteration, before "auto" finishes its work
ROUNDED = 1e-12  # a smaller weight of an exact solution is rounding
ROUNDING = 2.0**-52
LOOPS = "Or let every point be its own neighbor, self_neighbor=True."


def mapped(
    costs: Costs,
    rows: Rows,
    *,
    mend: Callable[..., Any],
    scale: Callable[..., Any],
    bounded: bool = True,
) -> Any:
    """Make a graph of the rows of the relaxed problem, lines 5 and 6 of Algorithm 2.

    Parameters
    ----------
    costs : Costs
        Plain costs of the candidates.
    rows : Rows
        Weights: Eq. (14), or Eq. (18) for the first graph.
    mend : callable
        Adds what is missing to a symmetrized graph; returns it, what was added to the
        diagonal, and bridges.
    scale : callable
        Finds the diagonal of D.
    bounded : bool, default=True
        Whether the bound of Eq. (23) is wanted.

    Returns
    -------
    Learned
        The graph.
    """
    S, shift, bridges = mend(rows.symmetrized())  # Eq. (16)
    done = scale(S)  # Eq. (17)
    u, products = done.value, S.n_products
    S = S.scaled(u, reuse=True)
    bounded &= not (shift or bridges)
    return Learned(
        S=S,
        u=u,
        distance=costs.dot(rows, u),
        residual=done.residual,
        n_products=products,
        epsilon=epsilon(rows, u) / rows.sq_norm() if bounded else math.nan,
        shift=shift,
        bridges=bridges,
    )


def unmapped(costs: Costs, rows: Rows, norm: float | None = None) -> Any:
    """Make a graph of rows and leave it there: the methods before ANCMM.

    Parameters
    ----------
    costs : Costs
        Plain costs of the candidates.
    rows : Rows
        Weights.
    norm : float, optional
        What stands for the weighted squared norm in the objective.

    Returns
    -------
    Learned
        The symmetrized graph, Eq. (16); its rows need not sum to one.
    """
    S = rows.symmetrized()
    ones = S.ones()
    residual = float(worst(S.apply(ones)))
    return Learned(S, ones, costs.dot(rows), residual, 0, norm=norm)


def coupled(
    costs: Costs,
    m: Costs,
    alpha: float,
    *,
    loops: bool,
    mend: Callable[..., Any],
    scale: Callable[..., Any],
    tol: float,
) -> Any:
    """Make a graph by the exact solution of the coupled problem, Eq. (13).

    Parameters
    ----------
    costs : Costs
        Plain costs of the candidates.
    m : Costs
        The same with the penalty.
    alpha : float
        Weight of the squared norm.
    loops : bool
        Whether every point is its own candidate, at cost 0.
    mend : callable
        Adds what is missing to the graph; returns it, what was added to the diagonal,
        and bridges.
    scale : callable
        Finds the diagonal of D, where something was added.
    tol : float
        Wanted error of the row sums.

    Returns
    -------
    Learned
        The graph.
    """
    if loops:  # s_ii = 2 a_i <= 1, so that s_ij > 0 only if m_ij < 2 alpha
        m = m.weigh(partial(_below, limit=2.0 * alpha))
    K = reachable(m.scores(alpha), advice=LOOPS).graph
    highest = on_cpu(K.highest())
    if -highest.min() * ROUNDING > tol:
        i = int(highest.argmin())
        raise InputError(
            f"Even the cheapest candidate of point {i} costs {-2 * highest[i]:.3g} "
            "times alpha, beside which row sums of one are lost in rounding. Remove "
            "the point if it is an outlier, stop lambda earlier by max_iter, or pass "
            "self_neighbor=True."
        )
    done = nearest(K, tol=tol)
    S = K.clipped(1.0, done.value, ROUNDED)  # without what rounding left over
    residual, products = float(worst(S.apply(S.ones()))), K.n_products
    S, shift, bridges = mend(S)
    if shift or bridges:
        again = scale(S)
        residual, products = again.residual, products + S.n_products
        S = S.scaled(again.value)
    distance = -2.0 * alpha * costs.scores(alpha).dot(S)
    return Learned(
        S, done.value, distance, residual, products, shift=shift, bridges=bridges
    )


def _below(m: Any, limit: float) -> Any:
    xp = array_namespace(m)
    return xp.where(m < limit, m, xp.full_like(m, xp.inf))


def diagonal_of(
    S: Graph, *, method: str, tol: float, start: Any = None, sizes: Any = 1.0
) -> Any:
    """Find the diagonal of D, Eq. (17); where a published method gives up, go on.

    The solution is unique, so it does not matter who finds it.

    Parameters
    ----------
    S : Graph
        Symmetric, with total support.
    method : str
        A method of the mapping.
    tol : float
        Wanted error of the row sums.
    start : array of shape (n,), optional
        The diagonal for a similar graph; published methods start with ones.
    sizes : array of shape (n,) or float, default=1.0
        Wanted row sums.

    Returns
    -------
    Run
        The diagonal, how it ended, and the residuals.
    """
    quick = method in ("auto", "newton")
    u = start if quick else None
    passes = None if quick else PASSES
    done = marcus(S, u, sizes, method=method, tol=tol, max_iter=passes)
    if done.status is Status.CONVERGED or quick:
        return done
    return marcus(S, done.value, sizes, method="auto", tol=tol)


LAZY = "lazy"


@dataclass(frozen=True)
class GraphMaker:
    """Makes graphs: line 1 and lines 4-6 of Algorithm 2.

    Attributes
    ----------
    self_neighbor, graph_update, scaling, tol
        As ANCMM takes them.
    affine : bool
        Whether the data are a graph, which need not have loops.
    floor : int
        Smallest size of a component.
    together : bool
        Whether components are joined in which duplicates of one another lie.
    mapping : bool
        Whether the graph is made doubly stochastic, line 6.
    """

    self_neighbor: bool | str
    graph_update: str
    scaling: str
    tol: float
    affine: bool
    floor: int = 1
    together: bool = False
    mapping: bool = True

    def scale(self, S: Any, start: Any = None, sizes: Any = None) -> Any:
        """Find the diagonal of D, Eq. (17); with sizes, these are the row sums."""
        sizes = 1.0 if sizes is None else sizes
        method, tol = self.scaling, self.tol
        return diagonal_of(S, method=method, tol=tol, start=start, sizes=sizes)

    def first(self, problem: Any) -> Any:
        """Learn the first graph, line 1: Eq. (18), symmetrized and mapped."""
        if problem.given is not None:
            return problem.given
        rows = problem.all_costs.weigh(partial(first_weights, k=problem.k))
        return self.mapped(problem, problem.all_costs, rows)

    def mapped(self, problem: Any, costs: Any, rows: Any, start: Any = None) -> Any:
        """Make a graph of rows of weights, lines 5 and 6."""
        if not self.mapping:
            return unmapped(costs, rows)
        return mapped(
            costs,
            rows,
            mend=self._mend(problem),
            scale=partial(self.scale, start=start, sizes=problem.sizes),
            bounded=problem.sizes is None,
        )

    def update(self, problem: Any) -> Any:
        """Return the function that makes a graph of costs, lines 4-6."""
        exact = self.graph_update == "exact"
        last = None

        def update(m: Any) -> Any:
            nonlocal last
            if exact:
                made = coupled(
                    problem.costs,
                    m,
                    problem.alpha,
                    loops=self._loops(problem),
                    mend=self._mend(problem),
                    scale=self.scale,
                    tol=self.tol,
                )
            else:
                rows = problem.weights(m)
                if not problem.limited:
                    del m  # its memory is needed
                made = self.mapped(problem, problem.costs, rows, last)
                last = made.u
            if problem.limited:
                left_out = problem.open_rows(m, made.u if exact else None)
                made = replace(made, open_rows=left_out)
            return made

        return update

    def _mend(self, problem: Any) -> Any:
        """Return the function that adds what a graph lacks: loops, and bridges."""
        loops = self._loops(problem)

        def mend(S: Any) -> Any:
            lazy = self.self_neighbor == LAZY
            lost = lazy or (not loops and support(S).kind != "total")
            shift = 1.0 / problem.k if lost else 0.0
            each = 1.0 if problem.sizes is None else problem.sizes
            S = S.shifted(shift * each) if shift else S
            pairs = ()
            if self.together or self.floor > 1:
                how = self.floor, self.together, problem.sizes
                S, pairs = mended(S, problem.links, *how)
            return S, shift, pairs

        return mend

    def _loops(self, problem: Any) -> Any:
        """Tell whether every point is its own candidate, at cost 0."""
        return self.self_neighbor is True and not self.affine and problem.given is None
