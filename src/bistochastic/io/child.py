"""The process that `sandbox` starts, by the path of this file, in an isolated Python.

Such a Python imports nothing from the working folder, from PYTHONPATH or from beside
this file. The package is loaded from where this file lies, whatever else is installed.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def package(folder: Path) -> None:
    """Load the package in a folder under the folder's name."""
    spec = spec_from_file_location(
        folder.name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules[folder.name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[folder.name])


if __name__ == "__main__":
    sys.path += [place for place in sys.argv[1:] if place not in sys.path]
    package(Path(__file__).parents[1])
    from bistochastic.io.sandbox import child

    child()
