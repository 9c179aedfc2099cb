# `make` alone lists the targets.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Tests run in several processes; one thread each keeps two cores from being asked for four.
ONE_THREAD = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
WORKERS ?= 2
# The tests of a module stay in one process, with what they share; children start sooner where Python keeps bytecode.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-site lint format parameters tables docs docs-links bench fuzz sanitize clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-11s %s\n", $$1, $$2}'

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/tests-installed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	@touch $@

$(VENV)/docs-installed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@

setup: $(VENV)/tests-installed  ## Make the environment with everything that development needs

demo: $(VENV)/installed  ## Cross-validate GMIL on the bundled data sets
	$(BIN)/gmil paper table1 --quick --output results/demo

test: $(VENV)/tests-installed  ## Run all tests but the slow ones
	$(ONE_THREAD) $(PYTEST) -m "not slow"

test-all: $(VENV)/tests-installed  ## Run all tests, the slow ones too
	$(ONE_THREAD) $(PYTEST) --hypothesis-profile thorough

test-site: $(VENV)/tests-installed  ## Build the site, where Sphinx is installed, and test its links and pages in a browser
	$(ONE_THREAD) $(PYTEST) -n 0 -m slow tests/test_site.py

lint: $(VENV)/tests-installed  ## Check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/tests-installed  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

parameters: $(VENV)/installed  ## Write docs/reference/parameters.md from the classes
	$(BIN)/python tools/parameters.py

tables: $(VENV)/installed  ## Write the page and the tables of the docs from the records of the leaderboard
	$(BIN)/gmil benchmark page benchmarks/leaderboard.toml --page docs/_static/leaderboard.html --decisions src/gmil/benchmark/decisions.json
	$(BIN)/python tools/leaderboard_tables.py

SPHINX = $(BIN)/python -m sphinx --fail-on-warning --keep-going --nitpicky
docs: $(VENV)/docs-installed  ## Build the site, needs no network, into docs/_build/site
	$(SPHINX) --builder html docs docs/_build/html
	$(BIN)/python tools/publish_docs.py docs/_build/html docs/_build/site

docs-links: $(VENV)/docs-installed  ## Check the links to other sites (needs a network)
	$(SPHINX) --builder linkcheck --define plot_gallery=0 docs docs/_build/linkcheck

bench: $(VENV)/tests-installed  ## Measure the engine and cross-validation against plain scikit-learn, into results/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]"
	$(BIN)/python benchmarks/engine.py --out results/engine
	$(BIN)/python benchmarks/cross_validation.py --out results/cross_validation
	$(BIN)/python benchmarks/startup.py

fuzz: $(VENV)/tests-installed  ## Load thousands of mutated files in child processes; goes on where it ended, in results/fuzz
	$(ONE_THREAD) $(BIN)/python -m tools.fuzz --jobs $(WORKERS)

# Packages, and what checks the repository, have an environment of their own.
PACKAGES = $(VENV)-packages
.PHONY: sdist wheel test-wheel test-oldest oldest hygiene clean-packages

$(PACKAGES)/%-installed: pyproject.toml
	test -d $(PACKAGES) || $(PYTHON) -m venv $(PACKAGES)
	$(PACKAGES)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(PACKAGES)/bin/python -m pip install --quiet --disable-pip-version-check --group $*
	@touch $@

sdist: $(PACKAGES)/packages-installed  ## Build the source archive twice, into dist/: both must have the same bytes
	rm -rf dist
	$(PACKAGES)/bin/python -m tools.packages.sdist

wheel: sdist  ## Build the wheel for this machine from the source archive, into dist/
	$(PACKAGES)/bin/python -m tools.packages.wheel

test-wheel: wheel  ## Test the wheel with the newest dependencies, where there is neither compiler nor source
	$(ONE_THREAD) $(PACKAGES)/bin/python -m tools.packages.clean_room -n $(WORKERS) --dist worksteal -m "not slow"

test-oldest: wheel  ## The same with the oldest dependencies that pyproject.toml allows
	$(ONE_THREAD) $(PACKAGES)/bin/python -m tools.packages.clean_room --constraint tools/packages/oldest.txt -n $(WORKERS) --dist worksteal -m "not slow"

oldest: $(PACKAGES)/packages-installed  ## Write tools/packages/oldest.txt from pyproject.toml
	$(PACKAGES)/bin/python -m tools.packages.oldest

hygiene: $(PACKAGES)/hygiene-installed  ## Check spelling, workflows, the citation and what a repository should have
	$(PACKAGES)/bin/typos
	$(PACKAGES)/bin/zizmor --offline --quiet .github
	$(PACKAGES)/bin/cffconvert --validate
	$(PACKAGES)/bin/repo-review .

clean: clean-packages
clean-packages:
	rm -rf $(PACKAGES)

sanitize: $(VENV)/tests-installed  ## Run the kernel tests under the address and undefined-behaviour sanitizers
	$(BIN)/python -m pip install --quiet --disable-pip-version-check setuptools Cython
	tools/sanitize.sh $(abspath $(BIN)/python)

clean:  ## Remove the environment and what was built
	rm -rf $(VENV) build dist docs/_build docs/auto_examples docs/reference/generated src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
