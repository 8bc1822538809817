# Every target makes or reuses .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest

.PHONY: help demo examples test test-extras check bench clean

help:
	@echo "make demo         scale a built-in clustered graph and say what happened"
	@echo "make examples     run the examples, pictures into build/examples"
	@echo "make test         run the tests that need only the core"
	@echo "make test-extras  install the extras (torch, pandas, POT) and run all tests"
	@echo "make check        style, spelling, layers, docstrings, types"
	@echo "make bench        the mapping and the projection against their peers,"
	@echo "                  about a quarter of an hour"

demo: $(VENV)/core
	$(BIN)/python -m bistochastic.demo

examples: $(VENV)/test
	$(BIN)/python examples/pictures.py build/examples

test: $(VENV)/test
	$(PYTEST)

test-extras: $(VENV)/extras
	$(PYTEST)

check: $(VENV)/check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/typos
	$(BIN)/lint-imports
	$(BIN)/python .ci/docstrings.py
	$(BIN)/mypy

bench: $(VENV)/bench
	$(BIN)/python benchmarks/marcus.py
	$(BIN)/python benchmarks/projection.py

$(VENV)/core: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Python 3.11 or newer is needed; name one with 'make PYTHON=... $(MAKECMDGOALS)'"; exit 1; }
	@echo "Setting up $(VENV), about half a minute ..."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(VENV)/test: $(VENV)/core
	$(PIP) --editable '.[test]'
	touch $@

$(VENV)/check: $(VENV)/core
	$(PIP) --editable '.[check]'
	touch $@

# One version of torch, which an index with CPU builds can offer; the package itself
# takes any from 2.4 on.
$(VENV)/extras: $(VENV)/test
	$(PIP) torch==2.13.0
	$(PIP) --editable '.[test,gpu,extras]'
	touch $@

$(VENV)/bench: $(VENV)/core
	$(PIP) torch==2.13.0
	$(PIP) --editable '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
