"""Sparse, symmetric, doubly stochastic graphs whose components are the clusters."""

from bistochastic.api import marcus_mapping, support
from bistochastic.core.errors import InputError, NotSymmetricError, SupportError
from bistochastic.core.run import Status
from bistochastic.scaling.marcus import MarcusResult
from bistochastic.scaling.support import SupportReport

__version__ = "0.1.0"
__all__ = [
    "InputError",
    "MarcusResult",
    "NotSymmetricError",
    "Status",
    "SupportError",
    "SupportReport",
    "marcus_mapping",
    "support",
]
