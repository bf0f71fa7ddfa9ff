# `make up` and `make test` need only make and a Python of 3.11 or later.
.DEFAULT_GOAL := help
.PHONY: help up test check lint format bench stress install-matrix demo env env-dev static

PYTHON ?=
VENV := .venv
PY := $(VENV)/bin/python
TEST_ARGS ?=

help: ## Say what each target does
	@echo "Targets (PYTHON=… chooses the interpreter, 3.11 or later):"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-22s %s\n' "$$name" "$$text"; done

up: env ## Start everything on this machine; Ctrl-C stops it (DEBATEWEB_PORT=8000)
	@DEBATEWEB_UP_FROM_MAKE=1 exec $(PY) manage.py up

demo: env ## Fill in a small example to look at and start
	@exec $(PY) manage.py demo

test: check ## All checks, then all tests against services of their own (TEST_ARGS=… for pytest)
	@exec $(PY) tests/run.py $(TEST_ARGS)

check: env-dev ## Lint, format, types, import contracts, missing migrations
	@$(PY) tests/run.py -- $(MAKE) --no-print-directory static

static:
	@echo "Checking style, types, layers and migrations …"
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/ruff format --check --quiet .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@$(PY) manage.py check --fail-level WARNING
	@$(PY) manage.py makemigrations --check --dry-run

lint: env-dev ## Lint alone
	@$(VENV)/bin/ruff check .

format: env-dev ## Format the code and sort the imports
	@$(VENV)/bin/ruff check --fix-only --quiet . ; $(VENV)/bin/ruff format .

bench: env-dev ## Wall time against the ideal, CPU a call, and pages at 100,000 attempts
	@DEBATEWEB_TEST_DURABLE=1 $(PY) tests/run.py -- $(PY) -m tests.load.rounds_bench
	@$(PY) tests/run.py -- $(PY) -m tests.load.providers_bench
	@$(PY) tests/run.py -- $(PY) -m tests.load.pages_bench

stress: env-dev ## The long drills: kills, forced interleavings
	@exec $(PY) tests/run.py -m stress -s

install-matrix: ## Fresh clones as a user, as root, under a closed folder, on two Pythons (PYTHONS=…)
	@exec $(or $(PYTHON),python3) tests/install_matrix.py

env: ## Make .venv with what running needs
	@PYTHON="$(PYTHON)" .ci/make-env requirements.lock

env-dev: ## Make .venv with what developing needs
	@PYTHON="$(PYTHON)" .ci/make-env requirements-dev.lock
