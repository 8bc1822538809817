# Every target makes or reuses .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Two processes suit two cores; name more with 'make test JOBS=8'.
JOBS ?= 2
# Each computes in one thread: more would wait for each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal

.PHONY: help demo examples test test-extras test-all browser docs check bench clean

help:
	@echo "make demo         cluster a built-in data set, scale a graph, leave a page"
	@echo "make examples     run the examples, pictures into build/examples"
	@echo "make test         run the tests that need only the core, about three minutes"
	@echo "make test-extras  install the extras (torch, pandas, anndata, ...) and run the tests"
	@echo "                  of them, too"
	@echo "make test-all     as test-extras, with all seeds and configurations, half an hour"
	@echo "make docs         the site, into build/site, about three minutes"
	@echo "make check        style, spelling, layers, docstrings, types"
	@echo "make bench        mapping, projection and eigensolver against their peers,"
	@echo "                  about half an hour"

demo: $(VENV)/demo
	$(BIN)/python -m bistochastic.demo build

examples: $(VENV)/test
	$(BIN)/python examples/pictures.py build/examples

test: $(VENV)/test
	$(PYTEST)

test-extras: $(VENV)/extras browser
	$(PYTEST)

test-all: $(VENV)/extras browser
	$(PYTEST) --all

# The browser that pages are tested in; without one those tests skip.
browser:
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -qq -y chromium; } \
	    || echo "No chromium: the tests in a browser will skip."

docs: $(VENV)/docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/site
	@echo "The site, to open in a browser:"
	@echo build/site/index.html

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
	$(BIN)/python benchmarks/spectrum.py
	$(BIN)/python benchmarks/approximation.py

$(VENV)/core: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Python 3.11 or newer is needed; name one with 'make PYTHON=... $(MAKECMDGOALS)'"; exit 1; }
	@echo "Setting up $(VENV), about half a minute ..."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(VENV)/demo: $(VENV)/core
	$(PIP) --editable '.[demo]'
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

$(VENV)/docs: $(VENV)/core
	$(PIP) --editable '.[docs]'
	touch $@

$(VENV)/bench: $(VENV)/core
	$(PIP) torch==2.13.0
	$(PIP) --editable '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
