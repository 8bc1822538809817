"""One pass of the loop of Algorithm 2, and the graph that it made."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bistochastic.core.arrays import on_cpu
from bistochastic.core.errors import listed, several
from bistochastic.core.protocols import Graph
from bistochastic.core.run import Status
from bistochastic.graph.components import numbered
from bistochastic.graph.objective import Objective
from bistochastic.spectrum.ky_fan import Embedding, smoothness


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

    def record(self) -> Any:
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

    def __str__(self) -> Any:
        """Say in a line where the loop stands."""
        return (
            f"penalty {self.lam:.3e}, {several(self.number, 'component')} "
            f"({listed(np.sort(np.bincount(self.labels))[::-1], 4)} points), "
            f"objective {self.objective.total:.6g}, "
            f"row sums off by {self.graph.residual:.0e}"
        )


def objective(graph: Any, alpha: Any, lam: float, F: Any) -> Any:
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


def labels_of(step: Any, spot: Any, c: int | None = None) -> Any:
    """Return the labels of a step, in the order of the data.

    Parameters
    ----------
    step : Step
        The step.
    spot : array of int of shape (n,), or None
        Where each of the data stands.
    c : int, optional
        Wanted number of clusters; one cluster has all points, whatever the graph is.

    Returns
    -------
    array of int of shape (n,)
        Labels, numbered by first appearance.
    """
    if c == 1:
        return np.zeros_like(step.labels)
    if spot is None:
        return step.labels
    return numbered(step.labels[spot])


def left_there(graph: Any, found: Any, points: Any, spot: Any) -> Any:
    """Return what makes the attributes that may stay where they are for a while.

    Parameters
    ----------
    graph : Learned
        The fitted graph.
    found : Embedding
        Its embedding.
    points : Points or None
        The points.
    spot : array of int of shape (n,), or None
        Where each of the data stands.

    Returns
    -------
    dict of callable
        By the names of the attributes. They hold nothing else of the fit, so that all
        else is forgotten.
    """
    S, u, F = graph.S, graph.u, found.F
    here = slice(None) if spot is None else spot
    return {
        "affinity_matrix_": lambda: (S if spot is None else S.part(spot)).entries(0.0),
        "scaling_": lambda: on_cpu(u)[here],
        "embedding_": lambda: on_cpu(F)[here],
        "_points": lambda: (
            points and (points if spot is None else points.at(spot)).host()
        ),
    }


def inverse(order: Any) -> Any:
    """Return the place of each number in an order of all."""
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return place
