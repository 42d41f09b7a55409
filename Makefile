# Two commands do everything on a fresh machine: `make run` and `make test`.
# Requirements: Python 3.11 or newer, and a network connection for packages.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# tests/conftest.py sorts the files, the slowest first. There is one job more than processors, since
# many tests wait for a daemon, a browser or a disk. Each run prints its seed with the command, and
# SEED=1234 repeats the order of a run.
JOBS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
SEED := $(or $(SEED),$(shell od -An -N3 -tu4 /dev/urandom | tr -d ' '))
PYTEST := $(BIN)/pytest --quiet --numprocesses=$(JOBS) --dist=loadfile --no-loadscope-reorder --randomly-seed=$(SEED)

# Tests that need no programs of other people but PostgreSQL, Redis and a name server.
OWN := --ignore=tests/browser --ignore=tests/interop

# Own tests without a daemon and without attacks.
FAST := $(OWN) --ignore=tests/end_to_end -m "not (end_to_end or attack or interop or soak or pictures)"

# The files with tests of foreign programs.
INTEROP = tests/browser tests/interop $(shell grep -rl --include='test_*.py' mark.interop tests)

HOST ?= 127.0.0.1
SMTP_PORT ?= 2525
SUBMISSION_PORT ?= 2587
HTTP_PORT ?= 8080
IMAP_PORT ?= 1143
POP3_PORT ?= 1110

# Tests start hundreds of daemons, which must not compile their modules each time. So compiled modules
# are always written, even if the caller's environment forbids it.
unexport PYTHONDONTWRITEBYTECODE

# Install the packages, servers and clients for tests in parallel.
INSTALL := $(MAKE) --no-print-directory --jobs=3 --output-sync=target

.PHONY: run cluster test interop fast coverage soak pictures docs release wheel npm deb debian-root lock sbom audit reference client-calls test-needs interop-needs mcp-clients generators provider-sdks inbox-clients inbound-receivers scim-checkers lint types tests format clean

## run: start a daemon that receives mail, and print the next steps
run: export MAILCHECK_SMTP_LISTEN ?= $(HOST):$(SMTP_PORT)
run: export MAILCHECK_SMTP_SUBMISSION_LISTEN ?= $(HOST):$(SUBMISSION_PORT)
run: export MAILCHECK_IMAP_LISTEN ?= $(HOST):$(IMAP_PORT)
run: export MAILCHECK_WEB_LISTEN ?= $(HOST):$(HTTP_PORT)
run: export MAILCHECK_ACCOUNTS_BOOTSTRAP ?= true
run: export MAILCHECK_WEBHOOKS_ALLOW ?= developer=127.0.0.0/8,developer=::1/128
run: export MAILCHECK_ACCOUNTS_REGISTRATION ?= $(if $(filter 127.% localhost [::1],$(HOST)),open,invite)
run: $(VENV)/installed
	@$(BIN)/python -m compileall -q mailcheck twisted
	@exec $(BIN)/twistd --nodaemon --pidfile= mailcheck

## cluster: start PostgreSQL, Redis, HAProxy and three daemons on this machine, and print what to try
cluster: export HOST := $(HOST)
cluster: export SMTP_PORT := $(SMTP_PORT)
cluster: export SUBMISSION_PORT := $(SUBMISSION_PORT)
cluster: export IMAP_PORT := $(IMAP_PORT)
cluster: export POP3_PORT := $(POP3_PORT)
cluster: export HTTP_PORT := $(HTTP_PORT)
cluster: $(VENV)/installed
	@bash scripts/install-cluster-needs
	@exec $(BIN)/python scripts/run-cluster

$(VENV)/bin/pip:
	@bash scripts/make-environment "$(PYTHON)" "$(VENV)"

$(VENV)/installed: setup.cfg pyproject.toml | $(VENV)/bin/pip
	@echo "installing mailcheck and its packages ..."
	@$(BIN)/pip install --quiet --editable .
	@$(BIN)/twistd --help > /dev/null
	@touch $@

## test: install the tests' requirements, check the code, and run the project's own tests
test:
	@$(INSTALL) test-needs $(VENV)/installed-test
	@$(MAKE) --no-print-directory --jobs=3 lint types tests

# Each process of xdist imports all tests. One process compiles them before, while mypy and ruff use
# another processor.
$(VENV)/compiled-tests: $(VENV)/installed-test
	@$(BIN)/pytest --quiet --collect-only $(OWN) | tail -n 5
	@touch $@

tests: $(VENV)/compiled-tests
	$(PYTEST) $(OWN) -m "not (interop or soak or pictures)"

## interop: install a fixed list of third-party clients and servers, among them a browser, and test
## the daemon with them
interop:
	@$(INSTALL) mcp-clients generators provider-sdks inbox-clients inbound-receivers scim-checkers debian-root $(VENV)/installed-test
	@$(INSTALL) $(VENV)/installed-release
	$(PYTEST) $(INTEROP) -m "interop and not (soak or pictures)"

## soak: run the slow tests that `make test` omits: load, endurance, kills under load, and property
## tests with a thousand examples in place of fifty
soak:
	@$(INSTALL) mcp-clients $(VENV)/installed-test
	$(BIN)/pytest --quiet -m soak --timeout=7200
	$(PYTEST) -m "hypothesis and not soak" --hypothesis-profile=thorough --timeout=7200

## pictures: take screenshots of each page in three widths and two themes, and the pictures in docs/
pictures: docs
	@$(INSTALL) interop-needs $(VENV)/installed-test
	$(BIN)/pytest --quiet -m pictures

## fast: run the tests without daemons and attacks; also with another Python (VENV=, PYTHON=)
fast:
	@$(INSTALL) test-needs $(VENV)/installed-test
	$(PYTEST) $(FAST)

## coverage: run the fast tests and those of foreign programs that start no daemon, and fail if their
## coverage is too low
coverage:
	@$(INSTALL) interop-needs $(VENV)/installed-test
	$(PYTEST) --cov=mailcheck --cov-report=term \
	    $(OWN) --ignore=tests/end_to_end -m "not (end_to_end or attack or soak or pictures)"

## docs: build the documentation, which daemons serve below /docs and wheels include
docs: $(VENV)/installed-docs
	@PYTHON=$(BIN)/python bash scripts/build-docs

## wheel: build a wheel with the documentation in dist/
wheel: docs
	rm -rf build/lib build/bdist.* dist/mailcheck_daemon-*.whl
	@printf '[metadata]\nversion = %s\n' "$$(bash scripts/build-version)" > build/version.cfg
	DIST_EXTRA_CONFIG=$(CURDIR)/build/version.cfg $(BIN)/pip wheel --quiet --no-deps --wheel-dir=dist .

## npm: build the package mailcheck-client in dist/, with the client libraries that daemons serve
npm: $(VENV)/installed
	@$(BIN)/python -m scripts.build_npm

## deb: build the Debian package with the documentation in dist/, for the Debian release of this machine
deb: docs
	@PYTHON=$(BIN)/python bash scripts/build-deb

## release: build all files of a release in dist/ from a clean checkout, and try each of them
release:
	@$(INSTALL) interop-needs $(VENV)/installed-test
	@$(INSTALL) $(VENV)/installed-release
	@PYTHON=$(BIN)/python bash scripts/build-release dist
	RELEASE_FOLDER=$(CURDIR)/dist $(BIN)/pytest --quiet -m interop tests/interop/test_artefacts.py

## lock: pin each dependency with its hashes in requirements.lock, after a change of setup.cfg
lock: $(VENV)/installed-release
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	    --extra manhole --output-file requirements.lock setup.cfg

## sbom: write the software bill of materials (CycloneDX) of requirements.lock to dist/
sbom: $(VENV)/installed-release
	@mkdir -p dist
	$(BIN)/cyclonedx-py requirements --output-reproducible --output-file dist/sbom.json requirements.lock

## audit: look up the versions of requirements.lock in the database of known vulnerabilities
audit: $(VENV)/installed-release
	$(BIN)/pip-audit --disable-pip --require-hashes --strict --requirement requirements.lock

## reference: generate docs/reference/ from the code
reference: $(VENV)/installed-test
	$(BIN)/python -m scripts.write_reference

## client-calls: call the functions of other products' clients, and record the results with their page
client-calls:
	@$(INSTALL) provider-sdks inbox-clients $(VENV)/installed-test
	RECORD_CLIENT_CALLS=yes $(BIN)/pytest --quiet -p no:randomly tests/interop/test_client_calls.py
	@$(MAKE) --no-print-directory reference

# Debian packages are installed after the environment, since its setup may run apt-get too.
test-needs: | $(VENV)/bin/pip
	@bash scripts/install-test-needs

interop-needs: | $(VENV)/bin/pip
	@bash scripts/install-test-needs interop

mcp-clients: interop-needs
	@PYTHON=$(BIN)/python bash scripts/install-mcp-clients

generators: interop-needs
	@PYTHON=$(BIN)/python bash scripts/install-generators

debian-root: interop-needs
	@for release in bookworm trixie; do for purpose in run build; do \
	    bash scripts/make-debian-root $$release $$purpose > /dev/null; done; done
	@bash scripts/make-debian-root trixie image > /dev/null

provider-sdks: interop-needs
	@PYTHON=$(BIN)/python bash scripts/install-provider-sdks

inbox-clients: interop-needs
	@PYTHON=$(BIN)/python bash scripts/install-inbox-clients

inbound-receivers: interop-needs
	@bash scripts/install-inbound-receivers

scim-checkers: interop-needs
	@PYTHON=$(BIN)/python bash scripts/install-scim-checkers

$(VENV)/installed-test: $(VENV)/installed
	@echo "installing the packages for tests ..."
	@$(BIN)/pip install --quiet --editable '.[test]'
	@touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(BIN)/pip install --quiet --editable '.[docs]'
	@touch $@

$(VENV)/installed-release: $(VENV)/installed
	$(BIN)/pip install --quiet --editable '.[release]'
	@touch $@

## lint: check the style, the format and the layers of imports
lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

## types: check the types with mypy in strict mode
types: $(VENV)/installed-test
	$(BIN)/mypy

## format: format the code
format: $(VENV)/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## clean: delete all generated files except var/, which has mail
clean:
	rm -rf mailcheck/web/site/docs.zip $(VENV) .venv-mcp .venv-generators node_modules *.egg-info build pictures .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
