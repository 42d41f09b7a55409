# Two commands do everything on a fresh machine: `make run` and `make test`.
# Needed beforehand: Python 3.11 or newer, and for its packages a network.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Tests of whole daemons come last: beside the others' load they would take long. What fails is run
# once more, since real servers share a busy machine; what passes only then is listed as RERUN.
# tests/conftest.py has the files in order, those first that take longest. One more job than there
# are processors: many tests wait for a daemon, a browser or a disk.
JOBS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
PYTEST := $(BIN)/pytest --quiet --numprocesses=$(JOBS) --dist=loadfile --no-loadscope-reorder --reruns=1

# The tests that need no daemon and are no attack.
FAST := --ignore=tests/browser --ignore=tests/end_to_end --ignore=tests/interop -m "not (end_to_end or attack or soak or pictures)"

HOST ?= 127.0.0.1
SMTP_PORT ?= 2525
SUBMISSION_PORT ?= 2587
HTTP_PORT ?= 8080

# Tests start hundreds of daemons: none may have to compile all of its modules, whatever the caller's
# environment says.
unexport PYTHONDONTWRITEBYTECODE

# What tests are run with, got at the same time: packages, and servers and clients of others.
INSTALL := $(MAKE) --no-print-directory --jobs=3 --output-sync=target

.PHONY: run cluster test interop fast coverage soak pictures docs wheel lock sbom audit reference test-needs interop-needs mcp-clients generators lint types format clean

## run: start the daemon, ready to receive mail, and say what to do next
run: export MAILCHECK_SMTP_LISTEN ?= $(HOST):$(SMTP_PORT)
run: export MAILCHECK_SMTP_SUBMISSION_LISTEN ?= $(HOST):$(SUBMISSION_PORT)
run: export MAILCHECK_WEB_LISTEN ?= $(HOST):$(HTTP_PORT)
run: export MAILCHECK_ACCOUNTS_BOOTSTRAP ?= true
run: export MAILCHECK_ACCOUNTS_REGISTRATION ?= $(if $(filter 127.% localhost [::1],$(HOST)),open,invite)
run: $(VENV)/installed
	@$(BIN)/python -m compileall -q mailcheck twisted
	@exec $(BIN)/twistd --nodaemon --pidfile= mailcheck

## cluster: PostgreSQL, Redis, HAProxy and three daemons on this machine; says what to try
cluster: export HOST := $(HOST)
cluster: export SMTP_PORT := $(SMTP_PORT)
cluster: export SUBMISSION_PORT := $(SUBMISSION_PORT)
cluster: export HTTP_PORT := $(HTTP_PORT)
cluster: $(VENV)/installed
	@bash scripts/install-cluster-needs
	@exec $(BIN)/python scripts/run-cluster

$(VENV)/bin/pip:
	@bash scripts/make-environment "$(PYTHON)" "$(VENV)"

$(VENV)/installed: setup.cfg pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install --quiet --editable .
	@$(BIN)/twistd --help > /dev/null
	@touch $@

## test: install what the tests need, check the code, and run the project's own tests
test:
	@$(INSTALL) test-needs lint types
	$(PYTEST) --ignore=tests/end_to_end --ignore=tests/interop
	$(PYTEST) tests/end_to_end

## interop: install foreign clients and servers, a fixed list of packages, and run the daemon with them
interop:
	@$(INSTALL) mcp-clients generators $(VENV)/installed-test
	$(PYTEST) tests/interop

## soak: what `make test` leaves out because it takes long: crowds, endurance, kills under load,
## and a thousand examples of what it tries fifty of
soak:
	@$(INSTALL) mcp-clients $(VENV)/installed-test
	$(BIN)/pytest --quiet -m soak --timeout=7200
	$(PYTEST) -m "hypothesis and not soak" --hypothesis-profile=thorough --timeout=7200

## pictures: each page in three widths and two themes, into pictures/, and the pictures in docs/
pictures:
	@$(INSTALL) test-needs $(VENV)/installed-test
	$(BIN)/pytest --quiet -m pictures

## fast: run the tests that need no daemon and are no attack; also with another Python (VENV=, PYTHON=)
fast:
	@$(INSTALL) test-needs $(VENV)/installed-test
	$(PYTEST) $(FAST)

## coverage: run the same tests traced, which takes a third longer, and fail if they cover too little
coverage:
	@$(INSTALL) test-needs $(VENV)/installed-test
	$(PYTEST) --cov=mailcheck --cov-report=term $(FAST)

## docs: build the documentation; a daemon serves it below /docs, and a wheel made now has it
docs: $(VENV)/installed-docs
	rm -rf build/docs
	$(BIN)/sphinx-build -q -W --keep-going -d build/docs-read -b html docs build/docs
	rm -f build/docs/.buildinfo
	@cd build/docs && $(abspath $(BIN))/python -m zipfile --create $(CURDIR)/build/docs.zip .
	@mv build/docs.zip mailcheck/web/site/docs.zip

## wheel: build a wheel, with the documentation in it, into dist/
wheel: docs
	rm -rf build/lib build/bdist.* dist/mailcheck_daemon-*.whl
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir=dist .

## lock: pin each dependency with its hashes in requirements.lock, after a change of setup.cfg
lock: $(VENV)/installed-release
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	    --output-file requirements.lock setup.cfg

## sbom: write the software bill of materials (CycloneDX) of requirements.lock to dist/
sbom: $(VENV)/installed-release
	@mkdir -p dist
	$(BIN)/cyclonedx-py requirements --output-reproducible --output-file dist/sbom.json requirements.lock

## audit: look up the versions of requirements.lock in the database of known vulnerabilities
audit: $(VENV)/installed-release
	$(BIN)/pip-audit --disable-pip --require-hashes --strict --requirement requirements.lock

## reference: write docs/reference/ anew, from the code
reference: $(VENV)/installed-test
	$(BIN)/python -m tests.docs.reference

# Debian's packages come after the environment, which may need one of them too.
test-needs: | $(VENV)/bin/pip
	@bash scripts/install-test-needs

interop-needs: | $(VENV)/bin/pip
	@bash scripts/install-test-needs interop

mcp-clients: interop-needs
	@PYTHON=$(BIN)/python bash scripts/install-mcp-clients

generators: interop-needs
	@PYTHON=$(BIN)/python bash scripts/install-generators

$(VENV)/installed-test: $(VENV)/installed
	$(BIN)/pip install --quiet --editable '.[test]'
	@touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(BIN)/pip install --quiet --editable '.[docs]'
	@touch $@

$(VENV)/installed-release: $(VENV)/installed
	$(BIN)/pip install --quiet --editable '.[release]'
	@touch $@

## lint: style, one spelling of it, and the layers that imports keep to
lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

## types: mypy strict
types: $(VENV)/installed-test
	$(BIN)/mypy

## format: put the code into its one spelling
format: $(VENV)/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## clean: remove what was made here, but not var/: it holds mail
clean:
	rm -rf mailcheck/web/site/docs.zip $(VENV) .venv-mcp .venv-generators node_modules *.egg-info build pictures .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
