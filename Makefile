# Everything a person does with this repository. Needs Python 3.11 or newer, git and make; the rest is fetched.

PYTHON ?= python3
ARGS ?=
MAKEFLAGS += --jobs=3 --no-print-directory

# Also if the shell sets it: the tests start a thousand processes, and each would compile all of its modules again.
export PYTHONDONTWRITEBYTECODE :=

BIN := .venv/bin
PIP_OPTIONS := --quiet --disable-pip-version-check --no-deps
PIP := $(BIN)/python -m pip install $(PIP_OPTIONS)
# The lock files name every dependency. Their versions agree, so that two of them may be installed at the same time.
LOCKED := $(PIP) --require-hashes
NPM_IN := PATH="$(CURDIR)/$(BIN):$$PATH" npm --no-update-notifier --prefix
NPM := $(NPM_IN) ui
# A read-only home is enough: npm's cache is then in the tree, and pip works without one.
ifneq ($(shell test -w "$$HOME" && echo writable),writable)
export npm_config_cache ?= $(CURDIR)/.venv/npm-cache
endif

# `setup` makes the command and the page, at the same time. `tools` adds what checks and tests need.
VENV := .venv/.made
PACKAGES := .venv/.packages
EDITABLE := .venv/.editable
NODE := .venv/.node
MODULES := ui/node_modules/.installed
PACKAGE_TOOLS := .venv/.package-tools
MODULE_TOOLS := ui/node_modules/.module-tools
MUTATION_TOOLS := .venv/.mutation-tools
MCP_PREVIOUS := .venv/mcp-previous/.packages
AGENTS := tests/real_agents/node_modules/.installed
PAGE := src/bullpen/web/ui/index.html
PAGE_SOURCES := $(shell find ui/src ui/build ui/public -type f 2>/dev/null) ui/index.html ui/vite.config.ts ui/tsconfig.json

.PHONY: setup tools serve check types pages test pytest ui-test test-agents mutants screenshots bench wheel lock clean
.DELETE_ON_ERROR:

setup: $(EDITABLE) $(PAGE)

tools: setup $(PACKAGE_TOOLS) $(MODULE_TOOLS)

# The pip that comes with Python 3.11 needs twice as long to read the pages of an index. The pip outside installs the new
# one, which takes a second; if Python has none, ensurepip provides the first one.
$(VENV): requirements-pip.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Bullpen needs Python 3.11 or newer; name one with: make PYTHON=python3.x' >&2; exit 1; }
	@echo 'Bullpen: creating a Python environment in .venv'
	@$(PYTHON) -m venv --without-pip .venv
	@$(PYTHON) -m pip --python $(BIN)/python install $(PIP_OPTIONS) --require-hashes -r $< 2>/dev/null \
		|| { $(BIN)/python -m ensurepip >/dev/null && $(LOCKED) -r $<; }
	@touch $@

$(PACKAGES): requirements.txt | $(VENV)
	@echo 'Bullpen: installing the Python packages of the server into .venv'
	@$(LOCKED) -r requirements.txt
	@touch $@

$(EDITABLE): pyproject.toml $(PACKAGES)
	@echo 'Bullpen: installing the command .venv/bin/bullpen'
	@$(PIP) --no-build-isolation -e .
	@touch $@

# Not compiled: most modules of these packages are never imported.
$(PACKAGE_TOOLS): requirements-dev.txt | $(PACKAGES) $(NODE)
	@echo 'Bullpen: installing the Python packages of checks and tests into .venv'
	@$(LOCKED) --no-compile -r $<
	@touch $@

$(MUTATION_TOOLS): requirements-mutants.txt | $(PACKAGE_TOOLS)
	@echo 'Bullpen: installing the Python packages of the mutation tests into .venv'
	@$(LOCKED) --no-compile -r $<
	@touch $@

# Two major versions of one package need two environments; tests/conformance uses the second one.
$(MCP_PREVIOUS): requirements-mcp-previous.txt | $(VENV)
	$(BIN)/python -m venv --clear --without-pip $(@D)
	$(BIN)/python -m pip --python $(@D)/bin/python install $(PIP_OPTIONS) --require-hashes --no-compile -r $<
	@touch $@

$(NODE): requirements-node.txt | $(VENV)
	@echo 'Bullpen: installing node into .venv'
	@$(LOCKED) -r requirements-node.txt
	@touch $@

# Once the tools are installed, they stay: `npm ci` removes everything that it does not install.
$(MODULES): ui/package.json ui/package-lock.json ui/.npmrc | $(NODE)
	@echo 'Bullpen: installing the npm packages of the page into ui/node_modules'
	@$(NPM) ci --loglevel=error $(if $(wildcard $(MODULE_TOOLS)),,--omit=dev) >/dev/null
	@touch $@

$(MODULE_TOOLS): $(MODULES) | $(PAGE)
	@echo 'Bullpen: installing the npm packages of checks and tests into ui/node_modules'
	@$(NPM) install --no-save --loglevel=error >/dev/null
	@touch $@

$(PAGE): $(MODULES) $(PAGE_SOURCES)
	@echo 'Bullpen: building the page'
	@$(NPM) run --silent build -- --logLevel warn
	@touch $@

serve: setup
	@$(BIN)/bullpen serve $(ARGS)

check: tools
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet
	$(BIN)/mypy
	$(NPM) run --silent check

# After a change of a shape or an event: the page's types are what the server says of itself.
types: $(EDITABLE)
	$(BIN)/python scripts/ui_types.py

# After a change of a module docstring or of the state tables: the pages that are generated from the code.
pages: $(EDITABLE)
	$(BIN)/python scripts/code_map.py > docs/map.md
	$(BIN)/python scripts/states_page.py > docs/states.md
	$(BIN)/python scripts/requirements_page.py > docs/requirements.md

ui-test: tools
	$(NPM) run --silent test

# More processes than cores, since most tests wait. One test at a time to each: the long ones (kills, browsers)
# then never wait in one queue. Tests that fail (exit code 1) are run once more, alone: docs/decisions/0025.
pytest: tools $(MCP_PREVIOUS)
	@scripts/test-tools
	$(BIN)/pytest -n 4 --dist loadgroup --maxschedchunk 1 $(ARGS) || { \
		test $$? -eq 1 \
		&& echo 'Bullpen: the tests that failed are run once more, alone. One that passes now has a race: fix it.' \
		&& $(BIN)/pytest --last-failed --last-failed-no-failures none --maxfail 3 $(ARGS); }

# At the same time, for the same reason.
test: check ui-test pytest
	@echo 'Bullpen: every check and every test passed.'

# Every main view, light and dark, desktop and phone, into docs/screenshots.
screenshots: tools
	@scripts/test-tools
	$(BIN)/python scripts/screenshots.py $(ARGS)

# Not `ci`: it wants opencode for every platform there is, and a registry may not have them all.
$(AGENTS): $(addprefix tests/real_agents/,package.json package-lock.json .npmrc) | $(NODE)
	$(NPM_IN) tests/real_agents install --no-save --loglevel=error
	@touch $@

# Real agents against a stub model: 700 MB to install, some minutes to run, and no account.
test-agents: tools $(AGENTS)
	$(BIN)/pytest -m real_agents tests/real_agents --record docs/agents.md $(ARGS)

# Mutation tests of the parts where an error loses or doubles something, one process with the lowest priority:
# `make mutants ARGS="keeper --seed 26"`. The survivors are explained in docs/mutants.md.
mutants: tools $(MUTATION_TOOLS)
	$(BIN)/python scripts/mutants.py $(ARGS)

# Everything that is measured, beside its peers; on a quiet machine, for half an hour, into docs/benchmarks.md.
bench: tools
	@scripts/test-tools
	$(BIN)/python bench/everything.py $(ARGS)

# Into dist/, both with the page inside: who installs them needs neither node nor make.
wheel: tools
	$(BIN)/python -m build --wheel --sdist --no-isolation

# After an edit of the dependencies in pyproject.toml; `make lock ARGS=--upgrade` also takes newer versions.
lock: | $(PACKAGE_TOOLS)
	scripts/lock $(ARGS)

clean:
	rm -rf .venv ui/node_modules tests/real_agents/node_modules src/bullpen/web/ui dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .mutants
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
