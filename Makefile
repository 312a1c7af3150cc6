# The entry points for a person and for CI. Needs make and Python 3.11 or later; everything else goes into .venv.
#
# A set-up is recorded by a stamp file that depends on pyproject.toml, so only a changed pyproject.toml reinstalls.
# The set-up for development contains the one for the demo.

SHELL := bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
DEV := $(VENV)/.installed-dev
RUNTIME := $(if $(wildcard $(DEV)),$(DEV),$(VENV)/.installed-runtime)
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable

# `make PYTHON=python3.13 …` chooses the interpreter; otherwise the first of these that can make an environment.
PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11 python,$(shell \
	$(name) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $(name))))

# The newest other interpreter that is found, to run the runtime on the newest jax: 0.12 needs Python 3.12 or later.
PYENV_ROOT ?= $(HOME)/.pyenv
SECOND ?= $(firstword $(foreach name,python3.14 python3.13 python3.12 \
	$(lastword $(sort $(wildcard $(PYENV_ROOT)/versions/3.1[2-9]*/bin/python))),$(shell \
	$(name) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1 && echo $(name))))
SECOND_VENV := .venv-second
# The other end of the range of mypy that the plugin supports; the development environment has the newest.
OLDEST_MYPY := $(shell sed -n 's/^mypy = \["mypy>=\([0-9.]*\),.*/\1/p' pyproject.toml)
WITH_OLDEST_MYPY := tests/mypy/test_findings.py tests/mypy/test_strict.py tests/mypy/test_declared.py

# What pytest gets: `make test ARGS="tests/packaging -x"`. One process more than there are processors: a seventh of the time of
# two goes by in waiting for editors, servers and other programs that tests run.
WORKERS := $(shell expr `getconf _NPROCESSORS_ONLN` + 1)
ARGS ?= --numprocesses=$(WORKERS) --dist=worksteal --durations=60 --durations-min=2

.PHONY: help demo test test-second check check-style check-mypy check-pyright check-imports check-extension format primer mypy-primer foreign variants fuzz soak bench editors vsix clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(RUNTIME)  ## lint example mistakes and a real package, train a small model
	@$(BIN)/python scripts/demo.py

test: $(DEV)  ## run the whole test suite
	$(BIN)/python -m pytest $(ARGS)

test-second:  ## run the runtime's tests on a second interpreter, the newest jax and the oldest mypy, where one is found
ifeq ($(SECOND),)
	@echo "no second interpreter (3.12 or later) was found: runtime and mypy plugin are tested on one only"
else
	@$(MAKE) --no-print-directory $(SECOND_VENV)/.installed-dev
	$(SECOND_VENV)/bin/python -m pytest tests/runtime $(WITH_OLDEST_MYPY) -m "not slow" -k "not differential" --hypothesis-profile=brief $(ARGS)
endif

check: check-style check-mypy check-pyright check-imports check-extension  ## ruff, mypy, pyright, import contracts

check-style: $(DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

check-mypy: $(DEV)
	$(BIN)/mypy

check-pyright: $(DEV)
	$(BIN)/pyright

check-imports: $(DEV)
	$(BIN)/lint-imports

check-extension: $(DEV)
	@if [ -e vscode-extension/node_modules/.installed ]; then $(BIN)/python scripts/vscode.py check; fi

format: $(DEV)  ## mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

primer: $(DEV)  ## lint pinned real packages, compare with the recorded findings
	$(BIN)/python scripts/primer.py

mypy-primer: $(DEV)  ## run mypy with and without the plugin on pinned packages
	$(BIN)/python scripts/mypy_primer.py

fuzz: $(DEV)  ## hand the linter 100,000 broken and mutated files
	$(BIN)/python tests/support/fuzz.py --inputs 100000

variants: $(DEV)  ## rewrite all programs of all rule pages in many ways, compare linter and runtime (half an hour)
	JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 $(BIN)/python tests/support/variant_checks.py
	TRAINING_PROGRAMS=1000 $(BIN)/python -m pytest tests/conformance/test_training_programs.py

soak: $(DEV)  ## make 20,000 random edits against the language server
	$(BIN)/python benchmarks/_soak.py

foreign: $(DEV)  ## run the tests of flax and of packages on flax, on nnxkit
	$(BIN)/python scripts/foreign_tests.py

bench: $(DEV)  ## measure against flax and a bare interpreter
	$(BIN)/python -m benchmarks

editors: $(DEV)  ## fetch what the tests in editors need: the extension's packages from npm, a built VS Code
	$(BIN)/python scripts/vscode.py packages editor

vsix: $(DEV)  ## build the VS Code extension
	$(BIN)/python scripts/vscode.py packages package

clean:  ## remove .venv, caches and builds
	rm -rf $(VENV) $(SECOND_VENV) vscode-extension/node_modules .cache build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .nnx_lint_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "make: no Python 3.11 or later with the venv module was found on PATH." >&2; \
		echo "      Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; fi
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-runtime: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) '.[runtime]'
	@touch $@

$(SECOND_VENV)/.installed-dev: pyproject.toml
	$(SECOND) -m venv $(SECOND_VENV)
	$(SECOND_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(SECOND_VENV)/bin/python -m pip install --quiet --disable-pip-version-check 'mypy==$(OLDEST_MYPY).*'
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) '.[dev]'
	@touch $@
