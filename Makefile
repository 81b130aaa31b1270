# The commands of this project. `make` lists them; each sets up what it needs by itself.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
CHROMIUM := $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
# Tests that run Java Kafka Streams beside the engine build it; the broker itself needs neither.
JDK_AND_MAVEN := $(and $(shell command -v javac),$(shell command -v mvn))
# Disks that are full, or read-only, are mounted by tests; some containers refuse that even in a namespace of its own.
MOUNTING := $(shell for rights in -Urm -m; do unshare $$rights mount -t tmpfs tmpfs "$(CURDIR)" && echo yes && break; done 2>/dev/null)
POSTGRES := $(shell command -v postgres || ls /usr/lib/postgresql/*/bin/postgres 2>/dev/null | tail -n 1)
SCENARIOS ?= tests/conformance/scenarios tests/conformance/scenarios-recorded
SEED ?= 1
SECONDS ?= 120
GUARANTEE ?= exactly_once_v2
FAULTS ?= kill,pause,leave,broker
STANDBYS ?= 0
PROTOCOL ?= classic
RATE ?= 5000
# Where `make up` puts everything; nothing: build/up.
DIRECTORY :=
# What is installed is known by the text of the two files that decide it, and by the interpreter.
STAMP = $(VENV)/.installed-$(shell cat pyproject.toml requirements.lock | $(PYTHON) -c 'import hashlib,sys; print(hashlib.sha256(sys.version.encode()+sys.stdin.buffer.read()).hexdigest()[:16])')

.PHONY: help setup up down load test check conformance integration ledger e2e bench record lock clean

help: ## list these commands
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

setup: $(STAMP) ## make the virtual environment .venv (nothing is done when nothing changed)

$(STAMP):
	@echo "== setup: installing pinned packages into $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; say which with make PYTHON=...")'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/.installed-* && touch $@

up: setup ## everything on this machine: broker, three apps and their load, server with console; prints the links
	@$(PY) -m examples.demo up $(DIRECTORY)

down: setup ## stop what `make up` started, and delete what it wrote
	@$(PY) -m examples.demo down $(DIRECTORY)

load: setup ## more orders for the fleet of `make up`; RATE=5000 SECONDS=120
	@$(PY) -m examples.demo load $(DIRECTORY) --rate $(RATE) --seconds $(SECONDS)

test: check conformance integration ## everything a change must pass: check, conformance, integration
	@echo "== test: check, conformance and integration passed"
ifeq ($(CHROMIUM),)
	@echo "!! NOT RUN: the tests that open a page in a browser, because chromium is not installed"
endif
ifeq ($(POSTGRES),)
	@echo "!! NOT RUN: the registry's tests on Postgres, because it is not installed (those on SQLite ran)"
endif
ifeq ($(JDK_AND_MAVEN),)
	@echo "!! NOT RUN: the tests beside Java Kafka Streams, because no JDK or no Maven is installed"
endif

check: setup ## lint, format, types, layers, unit tests (under four minutes)
	@echo "== check: lint"; $(VENV)/bin/ruff check .
	@echo "== check: format"; $(VENV)/bin/ruff format --check .
	@echo "== check: types"; $(VENV)/bin/mypy
	@echo "== check: layers"; PYTHONPATH=. $(VENV)/bin/lint-imports
	@echo "== check: unit tests, and those of the conformance runner"
	@$(PY) -m pytest tests/unit tests/conformance --ignore=tests/conformance/test_conformance.py -q \
	  --numprocesses auto --maxprocesses 4 --dist worksteal

conformance: setup ## recorded behaviour of Java Kafka Streams; SCENARIOS=<directory> for another recording
	@for directory in $(SCENARIOS); do echo "== conformance: $$directory"; $(PY) tests/conformance/run.py $$directory; done

# Servers are killed in simulated worlds, which need a processor and nothing else: as many at a time as there are.
KILLS := $(addprefix tests/integration/streamfleet_platform/operations/,test_kills.py test_bootstrap_kills.py)
# Dagster's tests have a fleet of their own that lasts as long as their process: it ends before the others begin.
integration: setup ## tests on a real broker (started and stopped by the tests)
	@echo "== integration: Dagster"; $(PY) -m pytest tests/integration/dagster_streamfleet -q $(if $(CHROMIUM),,-m "not browser")
	@echo "== integration: servers killed at every step"; $(PY) -m pytest $(KILLS) -q --numprocesses auto --maxprocesses 4 --dist worksteal
	@echo "== integration"; $(PY) -m pytest tests/integration -q $(if $(CHROMIUM),,-m "not browser") $(KILLS:%=--ignore=%) \
	  --ignore=tests/integration/dagster_streamfleet $(if $(JDK_AND_MAVEN),,--ignore=tests/integration/interop)

ledger: setup ## one seeded schedule of faults on a real broker; SEED=1 SECONDS=120 GUARANTEE=exactly_once_v2 STANDBYS=0 PROTOCOL=classic
	@echo "== ledger: seed $(SEED), $(SECONDS) s, $(GUARANTEE)"
	@$(PY) -m tests.ledger.run --seed $(SEED) --seconds $(SECONDS) --guarantee $(GUARANTEE) --faults $(FAULTS) \
	  --standbys $(STANDBYS) --protocol $(PROTOCOL)

e2e: setup ## the long sets on a real broker: ten seeds, both guarantees, standbys, defects that must be found (about an hour)
	@echo "== e2e"; $(PY) -m pytest tests/e2e -q $(if $(MOUNTING),,--ignore=tests/e2e/local_and_broker/test_mounted_disk.py)
ifeq ($(MOUNTING),)
	@echo "!! NOT RUN: the tests on a full and on a read-only disk (tests/e2e/local_and_broker/test_mounted_disk.py), because mounting is refused"
endif

# Each part prints what it found and whether its bars are met; one that misses some does not keep the others from running.
bench: setup ## figures of the engine, the platform and Dagster, then the engine beside Java Kafka Streams, Quix, Bytewax and Faust (hours)
	@missed=; run() { local part="$$1"; shift; echo "== bench: $$part"; "$$@" || missed="$$missed $$part;"; }; \
	run micro $(PY) -m tests.bench.micro; \
	run assignor $(PY) -m tests.bench.assignor; \
	run restore $(PY) tests/bench/restore_rate.py; \
	run "memory of a state" $(PY) -m tests.bench.state_memory; \
	run "scale out" $(PY) tests/bench/scale_out.py; \
	run rebalance $(PY) -m tests.bench.rebalance; \
	run definitions $(PY) tests/bench/definitions.py; \
	run platform $(PY) -m tests.bench.platform_scale; \
	run Dagster $(PY) -m tests.bench.dagster_locations; \
	run queries $(PY) tests/bench/query_cost.py; \
	run peers $(PY) -m tests.bench.peers.run; \
	run "peers, when Java has compiled" $(PY) -m tests.bench.peers.run --add --long; \
	test -z "$$missed" || { echo "!! bench: not as they should be:$$missed"; exit 1; }

record: setup ## record random scenarios with Java Kafka Streams and compare (Java 17, Maven); SEED=1 COUNT=100
	@rm -rf build/fuzz && $(PY) tests/conformance/recorder/generate.py build/fuzz/in --seed $(or $(SEED),1) --count $(or $(COUNT),100)
	@tests/conformance/recorder/record.sh build/fuzz/in build/fuzz/out || true  # a few hit the time limit, and are named
	@$(PY) tests/conformance/run.py build/fuzz/out

lock: setup ## resolve pyproject.toml anew into requirements.lock (after changing dependencies)
	@echo "== lock"; $(VENV)/bin/uv pip compile pyproject.toml --all-extras --universal --no-strip-extras --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet --upgrade --output-file requirements.lock
	@! grep -nE '://|--(extra-)?index-url|--find-links' requirements.lock || { echo "requirements.lock must not carry addresses"; exit 1; }

clean: ## remove what was built; the environment and the broker's data stay
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
