"""The public surface: names, what an import costs, examples that run."""

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import bistochastic

ROOT = Path(__file__).parents[2]


def test_the_public_names_are_there_and_documented():
    assert set(bistochastic.__all__) >= {"marcus_mapping", "support"}
    for name in bistochastic.__all__:
        assert getattr(bistochastic, name).__doc__


def test_an_import_loads_no_heavy_library():
    code = (
        "import sys, bistochastic as b; b.marcus_mapping([[1, 2], [2, 3]]);"
        "print(*sorted({'torch', 'numba', 'sklearn', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


NEED_MORE = (  # torch or Dask; they have no examples
    "torch_device.build",
    "torch_device.cells",
    "torch_device.components",
    "torch_device.csr",
    "torch_device.gathering",
    "torch_device.measures",
    "torch_device.search",
    "torch_device.triton_kernels",
    "worker_device",
    "worker_memory",
)
MODULES = [
    module.name
    for module in pkgutil.walk_packages(bistochastic.__path__, "bistochastic.")
    if not module.name.endswith(NEED_MORE)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    if name.endswith("singlecell"):
        pytest.importorskip("anndata")
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def snippets():
    text = (ROOT / "README.md").read_text()
    return [part.split("```")[0] for part in text.split("```python\n")[1:]]


def test_the_readme_snippet_runs_and_prints_what_it_says():
    assert snippets()
    for code in snippets():
        ast.parse(code)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        said = [line.split("# ", 1)[1] for line in code.splitlines() if "print" in line]
        assert done.stdout.splitlines() == said


def test_the_readme_names_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text()
    text = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    named = {word.split()[1] for word in text.split("`") if word.startswith("make ")}
    assert {"demo", "test"} <= named
    for target in named:
        assert f"\n{target}:" in makefile, target


def test_the_demo_says_what_happened(capsys, tmp_path):
    from bistochastic import demo

    demo.main(tmp_path)
    said = capsys.readouterr().out
    assert "5,000 points in 5 clusters" in said
    assert "cycled" in said
    assert "SupportError" in said
    assert "ACC 98.3, NMI 92.6, PUR 98.3" in " ".join(said.split())
    assert (tmp_path / "demo.png").stat().st_size > 20_000
    assert said.splitlines()[-1] == str(tmp_path / "demo.html")
    assert "Wine: 178 bottles" in (tmp_path / "demo.html").read_text()


def test_the_readme_commands_run_and_print_what_it_says(tmp_path):
    pytest.importorskip("typer")
    pytest.importorskip("pyarrow")
    pytest.importorskip("matplotlib")
    text = (ROOT / "README.md").read_text().split("## From a file\n")[1]
    block, shown = (text.split("```\n")[i].splitlines() for i in (1, 3))
    commands = [line.split("#")[0].split() for line in block]
    commands = [words for words in commands if words[0] == "bistochastic"]
    assert len(commands) == 3
    printed = ""
    for _, *words in commands:
        done = subprocess.run(
            [sys.executable, "-m", "bistochastic", *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=True,
        )
        printed += done.stdout
    lines = {line.strip() for line in printed.splitlines()}
    assert {line.strip() for line in shown} <= lines
    labels = (tmp_path / "clusters.csv").read_text().splitlines()
    again = (tmp_path / "again.csv").read_text().splitlines()
    assert [line.rsplit(",", 1)[0] for line in again] == labels
