# `make demo`, `make test` and `make test-all` set up .venv once and are quick to repeat. PYTHON names the interpreter to build it with.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-all test-exhaustive lint types quick unit browser clean

demo: .venv/run
	$(BIN)/metasearch demo

# The quick tier: what is run before every commit. Tests that take long are marked `slow`. The type checker has one core
# alone, for half a minute where it has no cache yet: tests begin beside it.
test: lint
	$(MAKE) --no-print-directory -j2 types quick

test-all: lint
	$(MAKE) --no-print-directory -j2 types unit

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev
	$(BIN)/mypy

# One process a core; a file stays whole, since its tests share fixtures, and the longest come first. Test files are kept
# in their compiled form: to compile all of them takes each process ten seconds.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

quick: .venv/dev
	$(PYTEST) -m "not slow and not exhaustive"

unit: .venv/dev browser
	$(PYTEST) -m "not exhaustive"

# Every command killed at every moment at which it writes, bits flipped in every file, signals at every import, many more examples
# of any bytes: half an hour.
test-exhaustive: .venv/dev
	$(PYTEST) -s -m exhaustive

# Reports are tested in Chromium. Without it those tests are skipped and say so: that it cannot be installed is no error.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	    command -v $$name > /dev/null && exit 0; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    echo "installing Chromium, which tests of reports need"; \
	    export DEBIAN_FRONTEND=noninteractive; \
	    { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } > /dev/null 2>&1 \
	        || echo "Chromium cannot be installed: tests that need it will be skipped"; \
	else echo "there is no Chromium: tests that need it will be skipped"; \
	fi

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache

# Older versions of pip cannot read the lock file. The line after it adds what the torch of this platform needs beyond it:
# CUDA libraries, or nothing.
.venv/run: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("metasearch needs Python 3.11 or newer; set PYTHON=...") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) "pip>=23.1"
	$(PIP) --no-deps -r requirements.lock
	$(PIP) "$$(grep '^torch==' requirements.lock)"
	$(PIP) --no-deps --editable .
	touch $@

.venv/dev: .venv/run requirements-dev.lock
	$(PIP) --no-deps -r requirements-dev.lock
	touch $@
