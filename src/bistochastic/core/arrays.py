"""Arrays of any library: the way to NumPy, and products that stay in range."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from scipy.sparse import issparse


def on_cpu(values: Any) -> np.ndarray:
    """Return an array of any namespace as a NumPy array."""
    if is_torch_array(values):
        values = values.detach().cpu()
    return np.asarray(values)


def is_sparse(values: Any) -> bool:
    """Tell whether values are held in one of SciPy's sparse forms."""
    return issparse(values)


def in_range(u: Any) -> bool:
    """Tell whether the product of any two positive entries is a normal number."""
    xp = array_namespace(u)
    limits = xp.finfo(u.dtype)
    low = float(xp.min(xp.where(u > 0, u, xp.ones_like(u))))
    high = float(xp.max(u))
    return low * low >= limits.smallest_normal and high * high <= limits.max


def scaled_by(a: Any, b: Any, s: Any) -> Any:
    """Return a s b, not negative, without a loss on the way to a normal number.

    It is (a b) s, but where a b leaves the range the larger of the two meets s first.
    That is then not below the result, or not below s, and overflows only if the smaller
    is no normal number. To exchange a and b changes no bit.

    Parameters
    ----------
    a, b, s : arrays
        Not negative, of shapes that fit.

    Returns
    -------
    array
        The products. Below the smallest normal number they have fewer digits, and below
        half of the smallest number, 5e-324 for doubles, they are zero.
    """
    xp = array_namespace(s)
    limits = xp.finfo(s.dtype)
    with np.errstate(all="ignore"):  # what leaves the range is not taken
        product = a * b
        normal = (product >= limits.smallest_normal) & (product <= limits.max)
        return xp.where(normal, product * s, xp.maximum(a, b) * s * xp.minimum(a, b))
