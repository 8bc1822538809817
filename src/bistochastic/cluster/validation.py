"""Data on the host, looked at before a fit or a prediction."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import InputError
from bistochastic.core.parameters import PAIRS, canonical, unmasked
from bistochastic.neighbors.choose import MANY
from bistochastic.neighbors.points import SQUARED


def validated(model: Any, X: Any, reset: bool) -> Any:
    """Return data as NumPy and SciPy arrays that a clusterer can use.

    Parameters
    ----------
    model : Clusterer
        Its metric says what X holds; `singles` whether very many points may stay
        singles.
    X : array-like, sparse matrix or data frame
        The data.
    reset : bool
        Whether they are those of `fit`, whose columns others have to have.

    Returns
    -------
    array or csr_array
        Finite doubles, or singles.
    """
    X = unmasked(X)
    pairs = model.metric in PAIRS
    if pairs and reset and hasattr(X, "columns") and not X.index.equals(X.columns):
        raise InputError(
            "The index and the columns of the data frame differ, but row i and "
            "column i must stand for the same point. If they do, pass X.to_numpy()."
        )
    kinds = _kinds(X, model.metric) if model.singles else np.float64
    X = validate_data(model, X, reset=reset, accept_sparse="csr", dtype=kinds)
    X = canonical(X)
    if pairs and reset and X.shape[0] != X.shape[1]:
        raise InputError(
            f"X has shape {X.shape}; metric={model.metric!r} needs a square matrix, "
            "one row and one column for each point."
        )
    least = (X.data if is_sparse(X) else X).min(initial=0.0) if pairs else 0.0
    if least < 0:
        what = "distances" if model.metric == "precomputed" else "affinities"
        raise InputError(
            f"Negative values in data: with metric={model.metric!r} X holds "
            f"{what}, which are not negative, but one is {least:.6g}."
        )
    return X


def _kinds(X: Any, metric: Any) -> Any:
    """Return the types of numbers that X may keep."""
    shape = getattr(X, "shape", (0,))
    many = metric in SQUARED[:3] and not is_sparse(X) and shape[0] >= MANY
    return (np.float64, np.float32) if many else np.float64
