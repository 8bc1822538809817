"""The steps of graph clusterers: from costs to a graph, Eqs. (13), (16), (17)."""

import math
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from bistochastic.core.arrays import on_cpu
from bistochastic.core.errors import InputError, listed, several
from bistochastic.core.protocols import Graph
from bistochastic.core.run import Status
from bistochastic.graph.objective import Objective, epsilon
from bistochastic.scaling.feasibility import reachable
from bistochastic.scaling.frobenius import nearest
from bistochastic.scaling.marcus import marcus
from bistochastic.scaling.residual import worst
from bistochastic.spectrum.ky_fan import Embedding, smoothness

PASSES = 1000  # of a published scaling iteration, before "auto" finishes its work
ROUNDED = 1e-12  # a smaller weight of an exact solution is rounding
ROUNDING = 2.0**-52
LOOPS = "Or let every point be its own neighbor, self_neighbor=True."


@dataclass(frozen=True, eq=False)
class Learned:
    """A doubly stochastic graph and how it was made.

    Attributes
    ----------
    S : Graph
        The graph.
    u : array of shape (n,)
        The diagonal of D, Eq. (17); of the exact step the potential a.
    distance : float
        The sum of d_ij s_ij over the candidates, bridges left out.
    residual : float
        Largest error of a row sum of S.
    n_products : int
        Products with a vector that the scaling took.
    epsilon : float
        The bound of Eq. (23) relative to the squared norm of the rows; 0 if exact, not
        a number with a shift.
    shift : float
        What was added to the diagonal before the mapping.
    open_rows : int
        Rows in which a candidate that was left out could have had a weight.
    bridges : tuple of (int, int)
        Pairs that were joined to keep components together.
    action : str
        How the graph came about: "lambda", or "join" or "cut" in the end.
    norm : float or None
        What stands for alpha times the squared norm in the objective, if another term.
    """

    S: Graph
    u: Any
    distance: float
    residual: float
    n_products: int
    epsilon: float = 0.0
    shift: float = 0.0
    open_rows: int = 0
    bridges: tuple = ()
    action: str = "lambda"
    norm: float | None = None


@dataclass(frozen=True, eq=False)
class Step:
    """One pass of the loop of Algorithm 2.

    Attributes
    ----------
    graph : Learned
        The graph.
    found : Embedding or None
        The embedding F that it was made with; the first graph needs none.
    lam : float
        The penalty lambda that it was made with.
    number : int
        How many connected components it has.
    labels : array of int of shape (n,)
        The component of each point.
    objective : Objective
        The value of Eq. (10), term by term.
    """

    graph: Learned
    found: Embedding | None
    lam: float
    number: int
    labels: np.ndarray
    objective: Objective

    def record(self):
        """Return what a history keeps of a step."""
        return {
            "penalty": self.lam,
            "n_components": self.number,
            "sizes": np.sort(np.bincount(self.labels))[::-1],
            "objective": self.objective.total,
            **{f"objective_{k}": v for k, v in asdict(self.objective).items()},
            "residual": self.graph.residual,
            "n_products": self.graph.n_products,
            "embedding_products": self.found.n_products if self.found else 0,
            "embedding_converged": not self.found
            or self.found.status is Status.CONVERGED,
            "epsilon": self.graph.epsilon,
            "shift": self.graph.shift,
            "open_rows": self.graph.open_rows,
            "n_bridges": len(self.graph.bridges),
            "action": self.graph.action,
        }

    def __str__(self):
        """Say in a line where the loop stands."""
        return (
            f"penalty {self.lam:.3e}, {several(self.number, 'component')} "
            f"({listed(np.sort(np.bincount(self.labels))[::-1], 4)} points), "
            f"objective {self.objective.total:.6g}, "
            f"row sums off by {self.graph.residual:.0e}"
        )


def objective(graph, alpha, lam, F):
    """Return the value of Eq. (10) at a learned graph.

    Parameters
    ----------
    graph : Learned
        The graph.
    alpha : float or array of shape (n,)
        Weight of the squared norm, of each row if it is an array.
    lam : float
        Penalty.
    F : array of shape (n, c), or None
        Embedding; None if there is no penalty.

    Returns
    -------
    Objective
        The value, term by term.
    """
    smooth = 0.0 if F is None else lam * smoothness(graph.S, F)
    if graph.norm is not None:
        return Objective(graph.distance, graph.norm, smooth)
    weights = {"weights": alpha} if np.ndim(alpha) else {}
    norm = graph.S.sq_norm(**weights) * (1.0 if weights else alpha)
    return Objective(graph.distance, norm, smooth)


def mapped(costs, rows, *, mend, scale):
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

    Returns
    -------
    Learned
        The graph.
    """
    S, shift, bridges = mend(rows.symmetrized())  # Eq. (16)
    done = scale(S)  # Eq. (17)
    u, products = done.value, S.n_products
    S = S.scaled(u, reuse=True)
    changed = shift or bridges
    return Learned(
        S=S,
        u=u,
        distance=costs.dot(rows, u),
        residual=done.residual,
        n_products=products,
        epsilon=math.nan if changed else epsilon(rows, u) / rows.sq_norm(),
        shift=shift,
        bridges=bridges,
    )


def unmapped(costs, rows, norm=None):
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


def coupled(costs, m, alpha, *, loops, mend, scale, tol):
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


def _below(m, limit):
    xp = array_namespace(m)
    return xp.where(m < limit, m, xp.full_like(m, xp.inf))


def diagonal_of(S, *, method, tol, start=None):
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

    Returns
    -------
    Run
        The diagonal, how it ended, and the residuals.
    """
    quick = method in ("auto", "newton")
    u = start if quick else None
    done = marcus(S, u, method=method, tol=tol, max_iter=None if quick else PASSES)
    if done.status is Status.CONVERGED or quick:
        return done
    return marcus(S, done.value, method="auto", tol=tol)
