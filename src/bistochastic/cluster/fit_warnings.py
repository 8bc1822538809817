"""What a user should be told after a fit, as warnings."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.exceptions import ConvergenceWarning

from bistochastic.core.arrays import is_sparse, on_cpu
from bistochastic.core.errors import several
from bistochastic.neighbors.choose import LOWER
from bistochastic.neighbors.points import by_columns

ADDING = ("euclidean", "l2", "sqeuclidean", "manhattan", "cityblock", "l1", "minkowski")
UNEVEN = 100
SLACK = 0.05  # of the recall


def remarks(
    model: Any, tol: float, c: int, step: Any, history: Any, limited: int
) -> Any:
    """Return the warnings after a fit, as pairs of category and sentence.

    Parameters
    ----------
    model : ANCMM
        What was fitted; its parameters say what was wanted.
    tol : float
        Largest error of a row sum.
    c : int
        Wanted number of components.
    step : Step
        The step that it ended with.
    history : list of dict
        All steps.
    limited : int
        How many candidates stood for all points; 0 if none did.

    Returns
    -------
    list of (type, str)
        What to say.
    """
    said = missed(model, c, step, history)
    sizes = np.bincount(step.labels)
    if not isinstance(model.min_cluster_size, str) and sizes.size > 1:
        small = int(np.count_nonzero(sizes < model.min_cluster_size))
        if small:
            text = (
                f"{several(small, 'cluster')} of {sizes.size} came out smaller than "
                f"min_cluster_size={model.min_cluster_size}; with n_clusters={c} there "
                "was no other way to cut."
            )
            said.append((UserWarning, text))
    if step.graph.residual > tol:
        worst = f"{step.graph.residual:.1e}, more than tol={tol:g}"
        said.append(
            (ConvergenceWarning, f"The row sums of the graph are off by {worst}.")
        )
    said += unsolved(history)
    shifted = sum(record["shift"] > 0 for record in history)
    if history[0]["shift"] and model.metric == "affinity":
        said.append(
            (
                UserWarning,
                "The given graph has no total support (Corollary 1), so that "
                f"{history[0]['shift']:.3g} was added to its diagonal.",
            )
        )
    elif shifted and model.self_neighbor != "lazy":
        said.append(
            (
                UserWarning,
                f"{several(shifted, 'graph')} of {len(history)} had no total support "
                "(Corollary 1), so that a multiple of the identity was added. A "
                "positive diagonal makes sure of it (Theorem 2): self_neighbor=True, "
                "and in a given graph entries on its diagonal.",
            )
        )
    return said + limits(history, limited, " candidates=m makes the table wider.")


def missed(model: Any, c: int, step: Any, history: Any) -> Any:
    """Return a warning if the number of components is another one."""
    if step.number == c:
        return []
    return [(ConvergenceWarning, _missed(model, c, step, history))]


def unsolved(history: Any) -> Any:
    """Return a warning if the eigensolver did not converge."""
    lost = sum(not record["embedding_converged"] for record in history)
    if not lost:
        return []
    text = (
        f"The eigensolver did not converge in {several(lost, 'step')} of "
        f"{len(history)}, so that clusters may be cut at other places; another "
        "random_state or n_neighbors starts it elsewhere."
    )
    return [(ConvergenceWarning, text)]


def limits(history: Any, limited: Any, advice: Any = "") -> Any:
    """Return a warning if candidates that were left out could have mattered."""
    worst = max(record["open_rows"] for record in history)
    if not (limited and worst):
        return []
    text = (
        f"The {limited} nearest candidates stood for all points, and in up to "
        f"{several(worst, 'row')} of a step others could have had a weight.{advice}"
    )
    return [(UserWarning, text)]


def unfound(neighbors: Any, recall: float) -> Any:
    """Return a warning if the search found far fewer neighbors than it should.

    Parameters
    ----------
    neighbors : str or float
        How they were searched for.
    recall : float
        The share that was found.

    Returns
    -------
    list of (type, str)
        What to say.
    """
    wanted = LOWER if isinstance(neighbors, str) else neighbors
    if recall > wanted - SLACK:
        return []
    text = (
        f"The search found {recall:.0%} of the neighbors of a sample, and {wanted:.0%} "
        'was wanted. neighbors="exact" finds all, and takes longer.'
    )
    return [(UserWarning, text)]


def _rows(model: Any) -> Any:
    """Return the words on rows with an alpha of their own, if there can be such."""
    return ' or alpha="row"' if hasattr(model, "self_neighbor") else ""


def uneven(metric: Any, X: Any) -> Any:
    """Return a warning if the spreads of columns differ a hundredfold.

    Parameters
    ----------
    metric : str or callable
        Only metrics that add up columns suffer from it.
    X : array or sparse matrix of shape (n, d)
        Points.

    Returns
    -------
    list of (type, str)
        What to say.
    """
    if is_sparse(X) or metric not in ADDING:
        return []
    spread = np.concatenate([on_cpu(_spread(X[:, some])) for some in by_columns(X)])
    names = np.flatnonzero(spread > 0)
    if names.size < 2:
        return []
    spread = spread[names]
    ratio = spread.max() / spread.min()
    if ratio <= UNEVEN:
        return []
    return [
        (
            UserWarning,
            f"The spread of column {names[spread.argmax()]} is {ratio:.3g} times that "
            "of another, which hardly counts then. Scale the columns first, as by "
            "sklearn.preprocessing.StandardScaler.",
        )
    ]


def _spread(X: Any) -> Any:
    """Return half the standard deviation of each column."""
    xp = array_namespace(X)
    low = xp.min(X, axis=0)
    reach = xp.max(X, axis=0) / 2 - low / 2  # halves do not overflow
    reach[reach == 0] = -1.0  # the same in every row
    return xp.std((X / 2 - low / 2) / reach, axis=0) * reach


def _missed(model: Any, c: int, step: Any, history: Any) -> Any:
    """Say that the number of components is another one, and what to do."""
    said = (
        f"The graph has {several(step.number, 'component')}, not n_clusters={c}, after "
        f"{several(len(history), 'step')}."
    )
    numbers = [record["n_components"] for record in history]
    if numbers[0] > c and model.metric == "affinity":
        return (
            f"{said} The graph that was given has {numbers[0]} already: ask for that "
            "many, or link them first."
        )
    if model.exact:
        return f"{said} No candidates link them; make the table of neighbors wider."
    if numbers[0] > c:
        return (
            f"{said} The first graph had {numbers[0]} already: "
            f"{getattr(model, '_connected', 'raise n_neighbors')}."
        )
    if min(numbers[1:], default=0) > c and model.penalty is not None:
        return f"{said} Start with a smaller penalty, or raise max_iter."
    if max(numbers) > c:
        return (
            f"{said} Some steps had fewer, some {max(numbers)}, and no penalty gave "
            f"it; more neighbors (n_neighbors){_rows(model)} cut off fewer points."
        )
    said = f"{said} Raise max_iter, or start with a larger penalty."
    if getattr(model, "self_neighbor", True) is not True and 2 * c > step.labels.size:
        said += " Without self_neighbor=True a component has two points or more."
    return said
