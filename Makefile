# Every target sets up .venv by itself, from requirements.lock, on Python 3.11 or later.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$python" && break; done)

# Of make demo: how long, and any further options of streamd demo.
SECONDS ?= 30
ARGS ?=

.PHONY: demo test parity check bench coverage docs lock

demo: $(STAMP)
	@$(BIN)/python -m streamd demo --seconds $(SECONDS) $(ARGS)

test: $(STAMP)
	@$(BIN)/python -m pytest $(ARGS)

# Live against simulated, under four minutes; skips what an overloaded machine did not do in time.
parity: $(STAMP)
	@STREAMD_PARITY=1 $(BIN)/python -m pytest -rPs -q tests/parity $(ARGS)

check: $(STAMP)
	@$(BIN)/python -m ruff check --quiet .
	@$(BIN)/python -m ruff format --check --quiet .
	@$(BIN)/python -m mypy
	@$(BIN)/lint-imports --no-logo

# About a quarter of an hour; keep the machine quiet meanwhile.
bench: $(STAMP)
	@$(BIN)/python -m streamd.bench.io
	@$(BIN)/python -m streamd.bench.session
	@$(BIN)/python -m streamd.bench.cpu
	@$(BIN)/python -m streamd.bench.latency
	@$(BIN)/python -m streamd.bench.codec
	@$(BIN)/python -m streamd.bench.sim
	@$(BIN)/python -m streamd.bench.link --quanta 0.5ms,0.25ms,1ms

# Branch coverage of the core.
coverage: $(STAMP)
	@$(BIN)/python -m pytest -q --cov --cov-report=term $(ARGS)

# docs/config.md, docs/metrics.md and docs/scenarios.md, from the code.
docs: $(STAMP)
	@$(BIN)/python -m streamd.config.reference docs/config.md
	@$(BIN)/python -m streamd.observability.reference docs/metrics.md
	@$(BIN)/python -m streamd.sim.reference docs/scenarios.md

# The newest versions the ranges in pyproject.toml allow; no address of an index gets into the file.
lock: $(STAMP)
	@$(BIN)/python -m piptools compile --quiet --upgrade --extra dev --extra lab --all-build-deps \
		--generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
		--output-file requirements.lock pyproject.toml

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "streamd needs Python 3.11 or later"; exit 1; }
	@echo "setting up $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes --no-deps -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@
