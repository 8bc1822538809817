"""Sparse, symmetric, doubly stochastic graphs whose components are the clusters."""

from importlib import import_module
from typing import Any

from bistochastic.api import (
    entropic_plan,
    marcus_mapping,
    project_doubly_stochastic,
    support,
)
from bistochastic.core.errors import InputError, NotSymmetricError, SupportError
from bistochastic.core.run import Status
from bistochastic.scaling.frobenius import ProjectionResult
from bistochastic.scaling.marcus import MarcusResult
from bistochastic.scaling.support import SupportReport
from bistochastic.scaling.transport import TransportResult

__version__ = "0.1.0"
__all__ = [
    "ANCMM",
    "CAN",
    "CLR",
    "DSDC",
    "ERCAN",
    "PCAN",
    "DoublyStochasticScaler",
    "DoublyStochasticSpectral",
    "InputError",
    "MarcusResult",
    "NotSymmetricError",
    "NumberEstimate",
    "ProjectionResult",
    "Status",
    "SupportError",
    "SupportReport",
    "TransportResult",
    "adaptive_neighbors_graph",
    "entropic_plan",
    "estimate_n_clusters",
    "marcus_mapping",
    "project_doubly_stochastic",
    "support",
]

ESTIMATORS = {
    "ANCMM": "bistochastic.cluster.ancmm",
    "CAN": "bistochastic.cluster.can",
    "CLR": "bistochastic.cluster.clr",
    "DSDC": "bistochastic.cluster.dsdc",
    "DoublyStochasticScaler": "bistochastic.scaler",
    "DoublyStochasticSpectral": "bistochastic.cluster.spectral",
    "ERCAN": "bistochastic.cluster.ercan",
    "NumberEstimate": "bistochastic.cluster.n_clusters",
    "PCAN": "bistochastic.cluster.pcan",
    "adaptive_neighbors_graph": "bistochastic.adaptive",
    "estimate_n_clusters": "bistochastic.cluster.n_clusters",
}


def __getattr__(name: str) -> Any:
    """Import an estimator, and scikit-learn with it, when it is first asked for."""
    if name in ESTIMATORS:
        return getattr(import_module(ESTIMATORS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(globals().keys() | ESTIMATORS)
