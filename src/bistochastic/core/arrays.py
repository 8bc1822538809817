"""The way from any array library to NumPy."""

from typing import Any

import numpy as np
from array_api_compat import is_torch_array


def on_cpu(values: Any) -> np.ndarray:
    """Return an array of any namespace as a NumPy array."""
    if is_torch_array(values):
        values = values.detach().cpu()
    return np.asarray(values)
