# Every target sets up what it needs: `make demo` or `make test` in a fresh clone is enough.

PYTHON ?= python3
DEMO_ARGS ?=
TEST_ARGS ?=
BASE ?=
FAULTS_ARGS ?=
BENCH_ARGS ?=
SIMULATE_ARGS ?=

BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Hundreds of processes start here: where their modules are compiled each time, that is half of a start.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --quiet
PIN := --constraint constraints.txt

# Each of these folders is a distribution of its own; a new plugin is found by its pyproject.toml.
DISTRIBUTIONS := . $(patsubst %/pyproject.toml,./%,$(wildcard plugins/*/*/pyproject.toml contrib/*/pyproject.toml contrib/clients/*/pyproject.toml))
INPUTS := constraints.txt $(addsuffix /pyproject.toml,$(DISTRIBUTIONS))

.DEFAULT_GOAL := help
.PHONY: help install demo test test-changed test-all test-slow faults check format docs clients clients-release dist dist-offline dist-check pictures bench bench-full retention simulate oidc-clients synapse client-tools deploy-tools site clean

help: ## Shows these lines
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/installed-dev ## Builds .venv with the core, the plugins and the tools of development

demo: .venv/installed ## Plays the tour and, in a terminal, serves the demo (DEMO_ARGS=--tour-only)
	$(BIN)/msgsvc demo $(DEMO_ARGS)

# A test waits for a database, a browser or another process for more than half of its time.
WORKERS = $(shell $(BIN)/python -c 'import os; print(min(8, 2 * (os.cpu_count() or 1)))')

PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# Property-based tests draw the same examples each time, so that a change is judged by what it changed.
SAME = --hypothesis-profile=ci

test: .venv/installed-dev ## Runs the tests, with what the machine has (TEST_ARGS="-k name")
	$(PYTEST) $(SAME) $(TEST_ARGS)

test-changed: .venv/installed-dev ## Runs the tests that a change since BASE can affect (BASE=main)
	$(BIN)/python -m tests.changed --base "$(BASE)" -- $(PYTEST) $(SAME) $(TEST_ARGS)

test-all: .venv/installed-dev ## The same, and the slow ones: real servers, faults, upgrades, pictures, bench
	$(PYTEST) --slow=all $(TEST_ARGS)

test-slow: .venv/installed-dev ## Runs the slow tests only
	$(PYTEST) $(SAME) --slow=only $(TEST_ARGS)

faults: .venv/installed-dev ## Runs the fault tests as often as promised, into build/faults.json (FAULTS_ARGS="-k kill")
	$(BIN)/python -m pytest tests/faults --long --figures build/faults.json $(FAULTS_ARGS)

oidc-clients: .venv/installed-dev ## Installs the OpenID clients of others that tests/oidc_clients drives
	@PYTHON=$(PYTHON) tests/oidc_clients/install.sh

synapse: .venv/installed-dev ## Installs the Matrix homeserver that tests/synapse drives, which is one of them
	@PYTHON=$(PYTHON) tests/oidc_clients/install.sh synapse

client-tools: .venv/installed-dev ## Installs the linters and generators that read the OpenAPI document in tests/clients
	@PYTHON=$(PYTHON) tests/clients/install.sh

deploy-tools: .venv/installed-dev ## Installs what reads compose.yaml and the manifests of Kubernetes in tests/deploy
	@PYTHON=$(PYTHON) tests/deploy/install.sh

check: .venv/installed-dev ## Runs ruff, mypy and import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/installed-dev ## Formats the code and mends what ruff can mend by itself
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: .venv/installed-dev ## Writes docs/reference, contrib/openapi.json and the clients anew
	$(BIN)/msgsvc reference docs/reference
	$(BIN)/msgsvc openapi contrib/openapi.json
	$(BIN)/python -m contrib.clients.codegen.generate

site: ## Builds the docs site into build/site, to be opened as files or served
	@PYTHON=$(PYTHON) docs/site/install.sh
	@.venv/docs-site/bin/python -m docs.site.build

clients: .venv/installed-dev ## Generates the clients from contrib/openapi.json
	$(BIN)/python -m contrib.clients.codegen.generate
	@test -d contrib/clients/signin/node_modules || \
	  npm ci --prefix contrib/clients/signin --ignore-scripts --no-audit --no-fund
	@npm run --silent --prefix contrib/clients/signin build
	@test -d contrib/clients/typescript/node_modules || \
	  npm ci --prefix contrib/clients/typescript --ignore-scripts --no-audit --no-fund
	@npm run --silent --prefix contrib/clients/typescript build

clients-release: .venv/installed-dev ## Records what the clients of a release rely on; no change may break it
	$(BIN)/python -m contrib.clients.codegen.compatibility --release

dist: .venv/installed-dev ## Builds the release into dist/: wheels, sdists, bill of materials, checksums
	$(BIN)/python -m contrib.release.build

dist-offline: .venv/installed-dev ## The same, with all that it needs to be installed without a network
	$(BIN)/python -m contrib.release.build --offline

dist-check: dist ## Installs the smallest useful service from dist/, and measures it
	$(BIN)/python -m contrib.release.minimal

pictures: .venv/installed-dev ## Accepts how every page looks now, after a look at build/pictures/index.html
	MSGSVC_ACCEPT_PICTURES=1 $(BIN)/python -m pytest -q tests/pictures/test_pictures.py -k accepted

bench: .venv/installed-dev ## Measures speed and memory beside references (BENCH_ARGS="--only send")
	$(BIN)/python -m tests.bench $(BENCH_ARGS)

retention: .venv/installed-dev ## A run of retention over three days of a million messages each, on each database
	$(BIN)/python -m tests.bench --only scale-retention --rows 3000000 --window 30 $(BENCH_ARGS)

bench-full: .venv/installed-dev ## The same in longer rounds, and memory over a million messages
	$(BIN)/python -m tests.bench --rounds 7 --seconds 5 --sends 1000000 --rows 1000000 \
	  --projects 2000 --pages 10000 $(BENCH_ARGS)

simulate: .venv/installed-dev ## Sends 10^8 messages in virtual time, by seed (SIMULATE_ARGS="--seed 7")
	$(BIN)/python -m tests.simulation $(SIMULATE_ARGS)

clean: ## Removes .venv, dist, caches and what the demo left
	rm -rf .venv .demo dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The build backend comes first and stays, so that no distribution gets an environment of its own to
# be built in: that would fetch the backend anew for each.
.venv/installed: $(INPUTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "msgsvc needs Python 3.11 or newer; name one: make PYTHON=python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) lacks venv; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "building .venv"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) install $(PIN) pip hatchling editables
	@$(PIP) install $(PIN) --no-build-isolation $(addprefix --editable ,$(DISTRIBUTIONS)) "msgsvc[all]"
	@touch $@

.venv/installed-dev: .venv/installed
	@echo "adding the tools of development"
	@$(PIP) install $(PIN) --group dev
	@touch $@
