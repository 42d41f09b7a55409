# Two commands do everything on a fresh machine: `make run` and `make test`.
# Needed beforehand: Python 3.11 or newer, and for its packages a network.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Tests of whole daemons come last: beside the others' load they would take long.
JOBS ?= auto
PYTEST := $(BIN)/pytest --quiet --numprocesses=$(JOBS) --dist=loadfile

HOST ?= 127.0.0.1
SMTP_PORT ?= 2525
SUBMISSION_PORT ?= 2587
HTTP_PORT ?= 8080

# What tests are run with: a virtual environment, and servers and clients of others.
TEST_NEEDS := bash scripts/install-test-needs && bash scripts/install-mcp-clients

.PHONY: run cluster test soak pictures lint types format clean

## run: start the daemon, ready to receive mail, and say what to do next
run: export MAILCHECK_SMTP_LISTEN ?= $(HOST):$(SMTP_PORT)
run: export MAILCHECK_SMTP_SUBMISSION_LISTEN ?= $(HOST):$(SUBMISSION_PORT)
run: export MAILCHECK_WEB_LISTEN ?= $(HOST):$(HTTP_PORT)
run: export MAILCHECK_ACCOUNTS_BOOTSTRAP ?= true
run: $(VENV)/installed
	@exec $(BIN)/twistd --nodaemon --pidfile= mailcheck

## cluster: PostgreSQL, Redis, HAProxy and three daemons on this machine; says what to try
cluster: export HOST := $(HOST)
cluster: export SMTP_PORT := $(SMTP_PORT)
cluster: export SUBMISSION_PORT := $(SUBMISSION_PORT)
cluster: export HTTP_PORT := $(HTTP_PORT)
cluster: $(VENV)/installed
	@bash scripts/install-cluster-needs
	@exec $(BIN)/python scripts/run-cluster

$(VENV)/installed: setup.cfg pyproject.toml
	@bash scripts/make-environment "$(PYTHON)" "$(VENV)"
	$(BIN)/pip install --quiet --editable .
	@$(BIN)/twistd --help > /dev/null
	@touch $@

## test: install what the tests need, then check the code and run everything
test: $(VENV)/installed-test
	@$(TEST_NEEDS)
	$(MAKE) --no-print-directory lint types
	$(BIN)/coverage erase
	$(PYTEST) --cov=mailcheck --cov-branch --cov-report= --ignore=tests/end_to_end
	$(PYTEST) tests/end_to_end
	$(BIN)/coverage report

## soak: what `make test` leaves out because it takes long: crowds, endurance, kills under load
soak: $(VENV)/installed-test
	@$(TEST_NEEDS)
	$(BIN)/pytest --quiet -m soak

## pictures: put a picture of each page, in three widths and two themes, into pictures/
pictures: $(VENV)/installed-test
	@$(TEST_NEEDS)
	$(BIN)/pytest --quiet -m pictures

$(VENV)/installed-test: $(VENV)/installed
	$(BIN)/pip install --quiet --editable '.[test]'
	@touch $@

## lint: style, and one spelling of it
lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

## types: mypy strict
types: $(VENV)/installed-test
	$(BIN)/mypy

## format: put the code into its one spelling
format: $(VENV)/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## clean: remove what was made here, but not var/: it holds mail
clean:
	rm -rf $(VENV) .venv-mcp node_modules *.egg-info build pictures .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
