"""Beyond the paper: problems whose rows are made of better targets or costs."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bistochastic.core.arrays import on_cpu
from bistochastic.graph.refine import (
    dimension,
    halved_by,
    local_scales,
    nth_cost,
    rescaled,
    triangles,
)
from bistochastic.graph.simplex import largest_alpha

FLAT = 3.0  # intrinsic dimension up to which "auto" is "triangles"


def refined(problem: Any, way: Any, making: Any) -> tuple[Any, Any]:
    """Return the problem refined as `ANCMM` says, and the name of the refinement.

    Parameters
    ----------
    problem : Problem
        The paper's.
    way : {"auto", "triangles", "local", None}
        The parameter `refine`.
    making : GraphMaker
        Makes graphs.

    Returns
    -------
    problem : Problem
        With unit rows of F, unless the way is None.
    way : {"triangles", "local", None}
        What was done.
    """
    way = fitting(problem, way, making)
    if way == "local":
        return _locally_scaled(problem, making.self_neighbor is True), way
    if way == "triangles":
        return _supported(problem, making), way
    return problem, way


def fitting(problem: Any, way: Any, making: Any) -> Any:
    """Return the refinement; "auto" by the dimension that neighbors fill.

    Parameters
    ----------
    problem : Problem
        The paper's.
    way : {"auto", "triangles", "local", None}
        The parameter `refine`.
    making : GraphMaker
        Makes graphs.

    Returns
    -------
    {"triangles", "local", None}
        What is to be done.
    """
    if way != "auto":
        return way
    if making.affine or problem.costs is None:
        return "triangles"
    loops = making.self_neighbor is True
    table = problem.all_costs.table(problem.k + 1)
    inverse = on_cpu(table.reduce(partial(dimension, loops=loops)))
    known = np.isfinite(inverse)
    flat = not known.any() or FLAT * inverse[known].mean() >= 1.0
    return "triangles" if flat else "local"


def _supported(problem: Any, making: Any) -> Any:
    """Take as target the first graph with its triangles weighed; rows stay near it."""
    first = making.first(problem)
    S = triangles(first.S)
    done = making.scale(S)
    A = S.scaled(done.value)
    costs = problem.all_costs.beside(A)  # its rows, at first
    graph = replace(
        first, S=A, u=done.value, distance=-A.sq_norm(), residual=done.residual
    )
    return replace(
        problem, all_costs=costs, costs=costs, alpha=0.5, given=graph, unit=True
    )


def _locally_scaled(problem: Any, loops: bool) -> Any:
    """Measure costs by the scale around each point, and divide them by 2 alpha_i."""
    table = problem.all_costs.table(problem.k + 1)
    scales = local_scales(table.reduce(partial(nth_cost, loops=loops)))
    costs = table.remade(rescaled, scales)
    alphas = on_cpu(costs.reduce(partial(largest_alpha, k=problem.k)))
    proper = alphas > 0
    alphas = np.where(proper, alphas, alphas[proper].mean() if proper.any() else 1.0)
    costs = costs.weigh(halved_by, costs.vector(alphas))
    return replace(
        problem,
        all_costs=costs,
        costs=costs.closest(problem.k),
        alpha=0.5,
        unit=True,
    )
