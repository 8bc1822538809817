"""Libraries that some kinds of files need, imported when one is met."""

from importlib import import_module
from typing import Any

from bistochastic.core.errors import MissingError
from bistochastic.io.paths import FilePath

EXTRAS = {
    "anndata": "singlecell",
    "cooler": "hic",
    "h5py": "hdf",
    "pyarrow": "cli",
}


def needed(name: str, path: FilePath | None = None) -> Any:
    """Import a library, or say how to get it.

    Parameters
    ----------
    name : str
        Name of a module.
    path : path, optional
        The file that needs it.

    Returns
    -------
    module
        The module.
    """
    try:
        return import_module(name)
    except ImportError:
        library = name.split(".")[0]
        what = f"{path} needs" if path else "This needs"
        raise MissingError(
            f"{what} {library}, which is not installed: "
            f"pip install 'bistochastic[{EXTRAS[library]}]'"
        ) from None
