# Everything runs in the active environment, or in .venv, which is made if there is none.
# One BLAS thread: the same bits on every machine, and no quarrel between processes.
# Workers take stretches of the tests (worksteal), so that what a file sets up is set up once.

export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

ifdef VIRTUAL_ENV
BIN := $(VIRTUAL_ENV)/bin
else
BIN := .venv/bin
endif
PYTHON ?= python3
RUN := $(BIN)/python

.PHONY: demo quick test check slow bench docs fix install install-test

$(BIN)/python:
	$(PYTHON) -m venv .venv

install: $(BIN)/python
	@$(RUN) -m pip install --quiet --disable-pip-version-check -e .

install-test: $(BIN)/python
	@$(RUN) -m pip install --quiet --disable-pip-version-check -e '.[test]'

demo: install  ## a table becomes scores, model.mercer and report.html, in the folder demo
	@mkdir -p demo
	$(BIN)/mercer fit breast_cancer --target target --test-size 0.25 --no-refit --out demo/model.mercer --report demo/report.html

quick: install-test  ## unit and contract tests
	$(RUN) -m pytest tests/unit tests/contracts tests/architecture -n auto --dist worksteal -m "not slow and not browser"

test: install-test  ## all tests of the first tier
	$(RUN) -m pytest -n auto --dist worksteal -m "not slow"

check: install-test  ## style, import rules, types, doctests, tests: what CI runs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(RUN) -m pytest --doctest-modules src/mercer -m "not slow"
	$(MAKE) test

slow: install-test  ## the second tier: before an issue is closed
	$(RUN) -m pytest -n auto --dist worksteal -m slow

bench: install-test  ## records in reproduce/results
	$(RUN) -m reproduce

docs: $(BIN)/python  ## the pages as a site, in the folder site
	@$(RUN) -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(BIN)/mkdocs build --quiet --site-dir site

fix: install-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
