# Overread: `make run` opens the dashboard, `make test` runs every check. `make help` lists the rest.
# Needed: Python 3.11 or newer with venv, and make. Where packages come from is pip's own configuration.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: run test tests test-slow bench docs pictures check unit browser lock clean help

# Tests and commands start Python hundreds of times: what is compiled once is kept, whatever the machine says.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PINNED := $(PIP) install --quiet --require-hashes
OURSELVES := $(PIP) install --quiet --no-deps --no-build-isolation --editable .
# A file's tests stay together: they share servers and studies. In the order of tests/conftest.py, since files of few long tests would come last else.
# Two processes more than there are cores: browser tests and tests of servers wait more than they compute.
SIDE_BY_SIDE := --numprocesses $(shell cores=$$(nproc); echo $$(( cores < 4 ? cores + 2 : 6 ))) --dist loadfile --no-loadscope-reorder
TEST_MARK := \# For the tests only

# The newest Python of these that is at least 3.11 and can make a virtual environment; `make run PYTHON=...` overrides.
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	"$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo "$$python"; break; }; done)

run: .venv/.for-running  ## open the dashboard; ARGS="--port 8502 --db study.db" are passed on
	$(BIN)/overread serve $(ARGS)

# ROOM=triage runs the tests of that room alone: its folder in tests/, and the examples in the docstrings of its modules.
ROOM :=
IN_ROOM = $(if $(ROOM),$(or $(wildcard tests/$(ROOM)),$(error expected a folder of tests/ as ROOM, got $(ROOM))) $(wildcard evalcore/$(ROOM)))

test: .venv/.for-tests  ## format, lint, spelling, types, import contracts, unit, page and browser tests; ROOM=triage: the tests of one room
ifdef ROOM
	$(MAKE) --no-print-directory unit
else
	$(MAKE) --no-print-directory --jobs 2 check tests  # beside each other
endif

tests: .venv/.for-tests
	$(BIN)/python tests/chromium.py
	$(BIN)/pytest -m "not slow" $(SIDE_BY_SIDE) $(ARGS)

check: .venv/.for-tests  ## format, lint, spelling, types and import contracts alone
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/pyrefly check
	$(BIN)/lint-imports

unit: .venv/.for-tests  ## unit and page tests alone; ROOM as above, ARGS go to pytest
	$(BIN)/pytest --ignore tests/browser -m "not slow" $(SIDE_BY_SIDE) $(IN_ROOM) $(ARGS)

browser: .venv/.for-tests  ## browser tests alone; ARGS go to pytest
	$(BIN)/python tests/chromium.py
	$(BIN)/pytest tests/browser -m "not slow" $(SIDE_BY_SIDE) $(ARGS)

test-slow: .venv/.for-tests  ## the tests marked slow
	$(BIN)/python tests/chromium.py
	$(BIN)/pytest -m slow --timeout 3000 --hypothesis-profile thorough $(ARGS)

bench: .venv/.for-tests  ## every benchmark in tests/benchmarks/, and what became slower; ARGS="import_speed" runs one alone
	$(BIN)/python tests/benchmarks/_all.py $(ARGS)

docs: .venv/.for-tests  ## write the reference in docs/ from the code, and build a web site of docs/ in build/docs that needs no network
	$(BIN)/python -m tests.docs.reference
	@test -x .venv-docs/bin/zensical || { $(BIN)/python -m venv --clear .venv-docs && .venv-docs/bin/pip install --quiet "zensical>=0.0.73,<0.1"; }
	.venv-docs/bin/zensical build --strict

pictures: .venv/.for-tests  ## take the pictures of docs/ and README anew, from the demo study in Chromium
	$(BIN)/python tests/chromium.py
	$(BIN)/python -m tests.docs.pictures

# --- The virtual environment. Stamps in it say what is installed, so that a second call installs nothing. ---

.venv/.made:
	@test -n "$(PYTHON)" || { echo >&2 \
		"Overread needs Python 3.11 or newer with the modules venv and ensurepip, and found none (looked for python3.13," \
		"python3.12, python3.11, python3). On Debian and Ubuntu: apt-get install python3 python3-venv." \
		"If it is under another name: make run PYTHON=/path/to/python"; exit 1; }
	@"$(PYTHON)" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo >&2 \
		"$(PYTHON) is missing, older than Python 3.11, or lacks venv (Debian and Ubuntu: apt-get install python3-venv)."; exit 1; }
	@echo "Making .venv with $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv --clear .venv
	@touch $@

.venv/.for-running: .venv/.made requirements.lock pyproject.toml
	@echo "Installing the pinned packages into .venv (once; a minute or two)"
	@sed '/^$(TEST_MARK)/,$$d' requirements.lock > .venv/for-running.lock
	@$(PINNED) --requirement .venv/for-running.lock
	@$(OURSELVES)
	@touch $@

.venv/.for-tests: .venv/.for-running requirements.lock
	@echo "Installing the pinned packages of the tests into .venv (once)"
	@$(PINNED) --requirement requirements.lock
	@touch $@

# --- The pins ---

COMPILE := CUSTOM_COMPILE_COMMAND="make lock" .venv-lock/bin/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe \
	--build-deps-for editable --no-emit-options --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

# Two parts in one file: what the program needs, then what only the tests need. Made on the oldest Python that we support.
lock:  ## write requirements.lock from pyproject.toml; ARGS=--upgrade takes newer versions
	@command -v python3.11 >/dev/null || { echo >&2 "make lock needs python3.11, the oldest Python that Overread supports."; exit 1; }
	test -x .venv-lock/bin/pip-compile || { python3.11 -m venv --clear .venv-lock && .venv-lock/bin/pip install --quiet pip-tools; }
	test ! -f requirements.lock || cp requirements.lock .venv-lock/run.txt
	$(COMPILE) $(ARGS) --output-file .venv-lock/run.txt pyproject.toml
	cp .venv-lock/run.txt .venv-lock/all.txt
	test ! -f requirements.lock || sed -n '/^$(TEST_MARK)/,$$p' requirements.lock >> .venv-lock/all.txt
	$(COMPILE) $(ARGS) --extra test --output-file .venv-lock/all.txt pyproject.toml
	{ cat .venv-lock/run.txt; echo; echo "$(TEST_MARK)"; \
	  awk 'FNR == NR { if (/^[a-z0-9]/) seen[$$1]; next } /^[a-z0-9]/ { keep = !($$1 in seen) } keep' \
	  .venv-lock/run.txt .venv-lock/all.txt; } > requirements.lock
	@! grep -nE '://|^--|^-e|@ ' requirements.lock || { echo >&2 "requirements.lock must hold no address or path."; exit 1; }

clean:  ## remove .venv, builds and caches; databases stay
	rm -rf .venv .venv-lock .venv-docs build dist .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
