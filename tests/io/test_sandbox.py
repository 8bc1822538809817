"""Readers in a process of their own: what that process imports, and from where."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import bistochastic
import fuzz
from bistochastic.core.errors import MissingError
from bistochastic.io import sandbox
from selection import some

SOURCE = Path(bistochastic.__file__).parents[1]
KINDS = {"mtx": "a.mtx", "mat": "b.mat", "h5ad": "a.h5ad", "cool": "a.cool"}
NEEDS = {"h5ad": "anndata", "cool": "cooler"}
COUNT = """
import atexit, runpy, sys
sys.argv = sys.argv[1:]
names = lambda: sorted({name.partition(".")[0] for name in sys.modules})
atexit.register(lambda: print(*names(), file=sys.stderr))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
PARENT = """
import os, sys
source, kind, file, hostile = sys.argv[1:]
sys.path.append(source)
from bistochastic.io.sandbox import read_apart
from bistochastic.io.memory_limit import memory_limit
import fuzz
read = lambda: read_apart(kind, file, memory_limit(), **fuzz.APART[kind])
read()  # so that all that this process imports is there
os.environ["PYTHONPATH"] = hostile
os.chdir(hostile)
sys.path[:0] = ["", hostile]
read()
"""
MISSING = """
    from bistochastic.io import sandbox
    from bistochastic.io.optional import needed
    sys.modules["h5py"] = None
    sandbox.READERS["mtx"] = lambda path, limit: needed("h5py", path)
    child()
"""


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Return small files by their kind."""
    return fuzz.seeds(tmp_path_factory.mktemp("seeds"))


@pytest.fixture(params=some(KINDS, 1))
def sample(request, tmp_path, known):
    """Return a kind of file, and a small one."""
    kind, name = request.param, KINDS[request.param]
    if kind not in known:
        pytest.skip(f"{NEEDS[kind]} is not installed")
    (tmp_path / name).write_bytes(dict(known[kind])[name])
    return kind, tmp_path / name


def imported(kind, file, monkeypatch):
    """Return the names of all modules that a reader's process imports."""
    said = []

    def counted(words, **options):
        at = words.index(str(sandbox.CHILD))
        done = run([*words[:at], "-c", COUNT, *words[at:]], **options)
        said.append(done.stderr.split())
        return done

    run = subprocess.run
    monkeypatch.setattr(sandbox.subprocess, "run", counted)
    sandbox.read_apart(kind, file, 1 << 30, **fuzz.APART[kind])
    return said[0]


def test_nothing_from_the_working_folder_or_PYTHONPATH_runs(
    sample, tmp_path, monkeypatch
):
    names = imported(*sample, monkeypatch)
    assert {"json", "numpy", "scipy", "bistochastic"} <= set(names)
    hostile, mark = tmp_path / "hostile", tmp_path / "mark"
    hostile.mkdir()
    for name in {*names, "sitecustomize", "usercustomize"} - {"__main__"}:
        text = f"open({str(mark)!r}, 'a').write({name!r} + ' ')\n"
        (hostile / f"{name}.py").write_text(text)
    monkeypatch.undo()
    path = [str(SOURCE), str(Path(fuzz.__file__).parent)]
    done = subprocess.run(
        [sys.executable, "-c", PARENT, str(SOURCE), *map(str, sample), str(hostile)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
    )
    assert done.returncode == 0, done.stderr
    assert not mark.exists(), mark.read_text()


def test_the_process_runs_this_very_package(tmp_path, known, monkeypatch):
    """Another one may be installed, or lie in the working folder."""
    other = tmp_path / "bistochastic"
    other.mkdir()
    (other / "__init__.py").write_text("raise SystemExit(9)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.mtx").write_bytes(dict(known["mtx"])["a.mtx"])
    assert sandbox.read_apart("mtx", tmp_path / "a.mtx", 1 << 30).shape == (8, 8)


def test_folders_that_libraries_came_from_are_handed_on(tmp_path, monkeypatch):
    """As where PYTHONPATH alone names them; others on the path are not."""
    (tmp_path / "a" / "stacked").mkdir(parents=True)
    (tmp_path / "a" / "stacked" / "__init__.py").write_text("")
    (tmp_path / "a" / "single.py").write_text("")
    monkeypatch.setattr(sandbox, "LIBRARIES", ("numpy", "stacked", "single"))
    for folder in ("a", "b"):
        monkeypatch.syspath_prepend(tmp_path / folder)
    assert not [place for place in sandbox._places() if str(tmp_path) in place]
    for name in ("stacked", "single"):
        monkeypatch.setitem(sys.modules, name, import_module(name))
    assert [p for p in sandbox._places() if str(tmp_path) in p] == [str(tmp_path / "a")]


def test_what_only_PYTHONPATH_holds_is_said(tmp_path, known, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    file, child = tmp_path / "a.mtx", tmp_path / "child.py"
    file.write_bytes(dict(known["mtx"])["a.mtx"])
    text = sandbox.CHILD.read_text().replace("    child()", MISSING)
    child.write_text(text.replace("__file__", repr(str(sandbox.CHILD))))
    monkeypatch.setattr(sandbox, "CHILD", child)
    with pytest.raises(MissingError, match=r"h5py.*PYTHONPATH is not used"):
        sandbox.read_apart("mtx", file, 1 << 30)
