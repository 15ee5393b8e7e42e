# Everything starts here. On a fresh Debian-like machine with Python (3.11 or newer), Node and root:
#
#   make lab        installs what looking needs, and opens JupyterLab on the tour; without a display it prints the address
#   make test       installs what the tests need and runs all of them
#   make test-fast  runs the Python tests that are quick, in under two minutes
#   make lint       ruff, mypy --strict, biome and the TypeScript compiler
#   make docs       builds the site into build/site
#   make release    makes wheel, sdist, SBOM, documentation and sums below build/release, all but the upload
#   make bench      prints the table of ratios of bench/README.md
#   make clean      removes what the others made, .venv included

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOOKING := $(VENV)/.onnxlab-for-looking
STAMP := $(VENV)/.onnxlab-installed
say := @printf '\033[1m%s\033[0m\n'
WORKERS ?= 2

.PHONY: help lab test test-fast lint docs release bench bundle system venv clean
.NOTPARALLEL:

help:
	@sed -n 's/^#   //p' Makefile

# Debian's packages that pip cannot bring: Chromium drives the browser tests, `dot` places boxes of static pictures,
# python3-venv is split off from Debian's own Python. Each only when it is missing; `make lab` needs the last alone.
system:
	@missing=(); \
	command -v dot >/dev/null || missing+=(graphviz); \
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	  || command -v google-chrome >/dev/null || missing+=(chromium fonts-dejavu-core); \
	$(PYTHON) -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv); \
	if [ $${#missing[@]} -gt 0 ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing $${missing[*]}"; \
	    apt-get update -qq; \
	    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$${missing[@]}" >/dev/null; \
	  else \
	    echo "missing: $${missing[*]}. Install them, or run as root where apt-get is." >&2; \
	    exit 1; \
	  fi; \
	fi

venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "onnxlab needs Python 3.11 or newer")'
	@if ! $(PYTHON) -c 'import ensurepip' 2>/dev/null && [ ! -x $(BIN)/python ]; then $(MAKE) --no-print-directory system; fi
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)

$(LOOKING): pyproject.toml hatch_build.py | venv
	$(say) "1 of 2: installing onnxlab, JupyterLab and onnxruntime into $(VENV); some 120 MB are fetched once"
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on -e '.[all]' | awk '/^(Collecting|Building|Installing|Successfully)/ {print substr($$0, 1, 100); fflush()}'
	@touch $@

$(STAMP): pyproject.toml hatch_build.py | system venv
	$(say) "installing what the tests need into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[lab,ort,test]'
	@touch $@ $(LOOKING)

bundle: $(STAMP)
	@$(BIN)/python hatch_build.py

lab: $(LOOKING)
	@if $(BIN)/python -c 'import hatchling' 2>/dev/null; then $(BIN)/python hatch_build.py; fi
	$(say) "2 of 2: opening JupyterLab on the tour; Ctrl-C ends it"
	@flags=(); \
	[ "$$(id -u)" != 0 ] || flags+=(--allow-root); \
	[ -n "$${DISPLAY:-}$${WAYLAND_DISPLAY:-}" ] || [ "$$(uname)" = Darwin ] || flags+=(--no-browser); \
	exec $(BIN)/jupyter lab "$${flags[@]}" --LabApp.default_url=/lab/tree/notebooks/01_tour.ipynb

lint: bundle
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_sizes.py
	cd widgets && npm run --silent lint && npm run --silent typecheck

test: lint
	cd widgets && npm --silent test
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not browser'
	$(BIN)/python -m pytest -s -m browser --reruns 2

test-fast: $(STAMP)
	$(BIN)/python -m pytest -q -n $(WORKERS) -m 'not browser and not slow'

docs: $(STAMP)
	$(BIN)/zensical build --strict --clean

release: bundle
	$(BIN)/python .ci/release.py

bench: bundle
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) build dist onnxlab/notebook/static onnxlab/execution/numba/llvm_ir widgets/node_modules .mypy_cache .ruff_cache .pytest_cache
