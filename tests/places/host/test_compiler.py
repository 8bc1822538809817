"""Compiled loops are kept on disk where that can be, and made anew where it cannot."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import bistochastic

COUNT = """
import sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import numpy as np
    from bistochastic.places.host import kernels_rows
    print(kernels_rows.__file__)
    ends, columns = np.array([0, 1, 2]), np.array([1, 0])
    print(kernels_rows.mirrored(ends, columns, np.ones(2)))
told = [str(w.message) for w in caught if "NUMBA_CACHE_DIR" in str(w.message)]
print(len(told))
"""


def run(folder, cache):
    """Import the package from a folder, compile a loop, and count the warnings."""
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(folder / "bistochastic" / "__init__.py"),  # no folder
        "XDG_CACHE_HOME": str(folder / "bistochastic" / "__init__.py"),
        "NUMBA_CACHE_DIR": str(cache),
    }
    done = subprocess.run(
        [sys.executable, "-c", COUNT],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    file, mirrored, told = done.stdout.split()
    assert file.startswith(str(folder))
    assert mirrored == "True"
    return int(told)


def copied(folder):
    """Copy the package so that no folder of it can hold a cache, whoever asks."""
    package = folder / "bistochastic"
    source = Path(bistochastic.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    for place in (package, *(p for p in package.rglob("*") if p.is_dir())):
        (place / "__pycache__").write_text("")  # a file, where Numba wants a folder
    return folder


def test_without_a_place_for_the_cache_loops_compile_and_one_warning_says_so(tmp_path):
    folder = copied(tmp_path / "read_only")
    assert run(folder, folder / "bistochastic" / "api.py" / "cache") == 1


def test_a_damaged_cache_is_written_anew(tmp_path):
    folder, cache = copied(tmp_path / "package"), tmp_path / "cache"
    assert run(folder, cache) == 0
    kept = [file for file in cache.rglob("*") if file.suffix in (".nbi", ".nbc")]
    whole = [file.stat().st_size for file in kept]
    assert kept
    for file in kept:
        file.write_bytes(file.read_bytes()[:7])  # as after a crash
    assert run(folder, cache) == 0
    assert [file.stat().st_size for file in kept] == whole
