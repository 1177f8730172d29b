# `make demo` and `make test` set up .venv once and are quick to repeat. PYTHON names the interpreter to build it with.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint types unit clean

demo: .venv/run
	$(BIN)/metasearch demo

test: lint types unit

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev
	$(BIN)/mypy

unit: .venv/dev
	$(BIN)/python -m pytest

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache

# The second line adds what the torch of this platform needs beyond the lock file: CUDA libraries, or nothing.
.venv/run: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("metasearch needs Python 3.11 or newer; set PYTHON=...") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --no-deps -r requirements.lock
	$(PIP) "$$(grep '^torch==' requirements.lock)"
	$(PIP) --no-deps --editable .
	touch $@

.venv/dev: .venv/run requirements-dev.lock
	$(PIP) --no-deps -r requirements-dev.lock
	touch $@
