"""The memory that a process has taken."""

import sys


def peak_memory() -> int | None:
    """Return the most memory that this process has taken, in MB, where that is known.

    Returns
    -------
    int or None
        Millions of bytes; None where the system does not count them for Python, as on
        Windows.
    """
    try:
        import resource
    except ImportError:  # Windows
        return None
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(held / (1e6 if sys.platform == "darwin" else 1e3))
