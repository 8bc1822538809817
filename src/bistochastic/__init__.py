"""Sparse, symmetric, doubly stochastic graphs whose components are the clusters."""

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
    "InputError",
    "MarcusResult",
    "NotSymmetricError",
    "ProjectionResult",
    "Status",
    "SupportError",
    "SupportReport",
    "TransportResult",
    "entropic_plan",
    "marcus_mapping",
    "project_doubly_stochastic",
    "support",
]
