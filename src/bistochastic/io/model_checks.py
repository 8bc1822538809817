"""What fitted attributes can be: types, shapes and ranges, for models from files."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import InputError
from bistochastic.core.parameters import PAIRS, whole
from bistochastic.neighbors.points import SQUARED, Points

CLUSTERS = ("labels_", "n_clusters_", "embedding_", "history_")
GRAPH = (
    *CLUSTERS, "n_components_", "n_neighbors_", "affinity_matrix_", "penalty_",
    "_n_others", "_points",
)  # fmt: skip
NEEDED = {  # attributes that methods of the estimators, or pages, use
    "ANCMM": (*GRAPH, "alpha_", "refine_", "stability_", "agreement_", "trials_"),
    "CAN": GRAPH,
    "CLR": GRAPH,
    "ERCAN": (*GRAPH, "gamma_"),
    "PCAN": (*GRAPH, "projection_"),
    "DSDC": CLUSTERS,
    "DoublyStochasticSpectral": (*CLUSTERS, "affinity_matrix_"),
    "DoublyStochasticScaler": ("residual_",),
}
SCALED = {
    "marcus": "scaling_",
    "zass_shashua_2005": "scaling_",
    "frobenius": "potential_",
}
Check = Callable[[Any, Any], bool]  # of a value, in a model
REFINED = ("triangles", "local")
LARGEST = np.finfo(float).max
HUGE = LARGEST**0.5  # the largest coordinate whose square is a float64


@dataclass(frozen=True)
class Model:
    """What the parts of a fitted model have to agree on.

    Attributes
    ----------
    n, d, width, c : int
        Points, columns, coordinates that points are compared by, and clusters.
    metric : str or None
        How points are compared.
    graph : bool
        Whether it learns a graph step by step.
    """

    n: int
    d: int
    width: int
    c: int
    metric: str | None
    graph: bool


def check(estimator: Any, attributes: dict[str, Any]) -> None:
    """Refuse fitted attributes that a fit cannot have left.

    Parameters
    ----------
    estimator : estimator
        With its parameters set.
    attributes : dict
        The fitted attributes by name.
    """
    kind = type(estimator).__name__
    needed = ["n_features_in_", *NEEDED[kind]]
    if kind == "DoublyStochasticScaler" and estimator.normalization in SCALED:
        needed.append(SCALED[estimator.normalization])
    if kind == "ANCMM" and estimator.metric in PAIRS:
        needed.append("_row_sums")
    for name in needed:
        if name not in attributes:
            raise InputError(f"a fitted {kind} has {name}, and it is not there.")
    for name in ("n_features_in_", "labels_", "projection_"):  # others fit to these
        if name in attributes:
            _check_one(kind, name, attributes[name], None)
    model = _model(estimator, attributes)
    for name, value in attributes.items():
        _check_one(kind, name, value, model)


def _check_one(kind: str, name: str, value: Any, model: Any) -> None:
    if not KINDS.get(name, _any)(value, model):
        raise InputError(f"{name} cannot be that of a fitted {kind}.")


def _model(estimator: Any, attributes: dict[str, Any]) -> Model:
    """Return what the other attributes have to fit to."""
    d = attributes["n_features_in_"]
    labels = attributes.get("labels_")
    metric = getattr(estimator, "metric", None)
    n = d if labels is None else labels.size
    if (labels is None or metric in PAIRS) and n != d:
        raise InputError("labels_ and n_features_in_ do not fit together.")
    projection = attributes.get("projection_", np.empty((d, d)))
    if projection.shape[0] != d:
        raise InputError("projection_ and n_features_in_ do not fit together.")
    c = 1 if labels is None else int(labels.max()) + 1
    graph = "_n_others" in NEEDED[type(estimator).__name__]
    return Model(n, d, projection.shape[1], c, metric, graph)


def _number(value: Any, model: Any) -> bool:
    return isinstance(value, float | np.floating) or whole(value)


def _real(least: float = -LARGEST, most: float = LARGEST) -> Check:
    """Return a check of a finite number."""
    return lambda value, model: _number(value, model) and least <= value <= most


def _count(least: int, most: Callable[[Any], int] = lambda model: 2**62) -> Check:
    """Return a check of a whole number."""
    return lambda value, model: whole(value) and least <= value <= most(model)


def _rows(model: Any) -> tuple[int, ...]:
    return (model.n,)


def _array(
    shape: Callable[[Any], Any],
    kinds: str = "f",
    least: float = -np.inf,
    most: Any = HUGE,
) -> Check:
    """Return a check of an array; a length of None is any."""

    def fits(value: Any, model: Any) -> bool:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
            return False
        wanted = shape(model)
        good = value.ndim == len(wanted) and all(
            have == want or want is None
            for have, want in zip(value.shape, wanted, strict=True)
        )
        top = most(model) if callable(most) else most
        return good and bool(((value >= least) & (value <= top)).all())

    return fits


def _flag(value: Any, model: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _text(value: Any, model: Any) -> bool:
    return isinstance(value, str)


def _word(*words: str) -> Check:
    def fits(value: Any, model: Any) -> bool:
        return value is None or (isinstance(value, str) and value in words)

    return fits


def _any(value: Any, model: Any) -> bool:
    """Take whatever nothing reads, if its numbers are numbers."""
    data = value.data if is_sparse(value) else value
    numbers = isinstance(data, np.ndarray) and data.dtype.kind not in "OSU"
    return not numbers or (data.dtype.kind in "biuf" and np.isfinite(data).all())


def _labels(value: Any, model: Any) -> bool:
    good = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i"
    return good and value.size > 0 and value.min() >= 0 and value.max() < value.size


def _names(value: Any, model: Any) -> bool:
    good = isinstance(value, np.ndarray) and value.shape == (model.d,)
    return good and all(isinstance(name, str) for name in value.tolist())


def _weights(value: Any, model: Any) -> bool:
    """Tell whether a value is a graph; those that are learned are sparse."""
    data = value.data if is_sparse(value) else value
    good = getattr(value, "shape", None) == (model.n, model.n)
    good = good and (is_sparse(value) or not model.graph)
    return good and _array(np.shape, least=0.0)(data, data)


def _neighbors(value: Any, model: Any) -> bool:
    if model.metric == "affinity":
        return value is None or whole(value)
    return whole(value) and 1 <= value <= model.n


def _points(value: Any, model: Any) -> bool:
    """Tell whether points can be searched as `predict` does."""
    if model.metric in PAIRS:
        return value is None
    from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS

    if not isinstance(value, Points) or value.metric != model.metric:
        return False
    X, center = value.X, value.center
    data = X.data if is_sparse(X) else X
    if getattr(X, "shape", None) != (model.n, model.width):
        return False
    kinds = "b" if model.metric in PAIRWISE_BOOLEAN_FUNCTIONS else "f"
    good = _array(np.shape, kinds)(data, data)
    if model.metric in SQUARED and model.metric != "cosine" and not is_sparse(X):
        return good and _array(lambda model: (model.width,))(center, model)
    return good and np.ndim(center) == 0 and _real(0.0, 0.0)(center, model)


def _scaling(value: Any, model: Any) -> bool:
    """Tell whether a value is a diagonal, or the multipliers of an exact update."""
    least = -LARGEST if model.graph else 0.0
    return _array(_rows, "f", least, LARGEST)(value, model)


def _embedding(value: Any, model: Any) -> bool:
    """Tell whether a value has a row for each point; columns of F have length one."""
    most = 2.0 if model.graph else HUGE
    return _array(lambda model: (model.n, None), "f", -most, most)(value, model)


RECORD = {
    "penalty": _real(0.0),
    "n_components": _count(1),
    "objective": _number,  # of huge points, infinite
    "seconds": _real(0.0),
    "recall": _real(0.0, 1.0),
    "kept": _flag,
    "action": _text,
    "stage": _text,
}
TRIAL = {
    "n_neighbors": lambda value, model: value is None or whole(value),
    "refine": _word(*REFINED),
    "n_components": _count(1),
    "sizes": lambda value, model: isinstance(value, list) and all(map(whole, value)),
    "agreement": _real(-1.0, 1.0),
    "kept": _flag,
}


def _records(kinds: dict[str, Check], needed: Callable[[Any], set[str]]) -> Check:
    """Return a check of a list of records, which have some keys at least."""

    def fits(value: Any, model: Any) -> bool:
        return (
            isinstance(value, list)
            and len(value) > 0
            and all(isinstance(record, dict) for record in value)
            and all(set(record) >= needed(model) for record in value)
            and all(
                isinstance(name, str) and kinds.get(name, _any)(held, model)
                for record in value
                for name, held in record.items()
            )
        )

    return fits


def _steps(model: Any) -> set[str]:
    """Return what is kept of each step of a loop, or of each stage."""
    return {"penalty", "n_components", "objective"} if model.graph else {"stage"}


KINDS = {
    "n_features_in_": _count(1),
    "feature_names_in_": _names,
    "labels_": _labels,
    "n_clusters_": lambda value, model: whole(value) and value == model.c,
    "n_components_": _count(1, lambda model: model.n),
    "n_neighbors_": _neighbors,
    "n_iter_": _count(0),
    "converged_": _flag,
    "refine_": _word(*REFINED),
    "penalty_": _real(0.0),
    "gamma_": _real(np.nextafter(0.0, 1.0)),
    "factor_": _real(),
    "inertia_": _real(),
    "residual_": _real(),
    "stability_": _real(-1.0, 1.0),
    "route_": _text,
    "alpha_": _array(_rows, least=0.0, most=LARGEST),
    "agreement_": _array(_rows),
    "scaling_": _scaling,
    "potential_": _array(_rows),
    "dropped_": _array(lambda model: (None,), "iu", 0, lambda model: model.n - 1),
    "bridges_": _array(lambda model: (None, 2), "iu", 0, lambda model: model.n - 1),
    "embedding_": _embedding,
    "eigenvalues_": _array(lambda model: (None,)),
    "projection_": _array(lambda model: (None, None)),
    "affinity_matrix_": _weights,
    "history_": _records(RECORD, _steps),
    "trials_": _records(TRIAL, lambda model: set(TRIAL)),
    "_n_others": _count(0, lambda model: model.n),
    "_row_sums": _array(_rows, least=0.0, most=LARGEST),
    "_points": _points,
}
