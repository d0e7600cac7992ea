# `make app` and `make test` are all that a fresh machine with Python 3.11 or later needs.
PYTHON ?= python3
PORT ?= 8501
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help app test lint bench screenshots clean
help: ## what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

app: $(VENV)/.app-installed ## start the app; PORT=8501 is where it listens
	"$(BIN)/python" -m transformer_viz app --port $(PORT)

test: $(VENV)/.dev-installed ## run all tests; those in a browser need Chromium
	"$(BIN)/python" -m pytest

lint: $(VENV)/.dev-installed ## formatting, lint and types
	"$(BIN)/ruff" check . && "$(BIN)/ruff" format --check . && "$(BIN)/ty" check

bench: $(VENV)/.dev-installed ## measure; prints numbers, asserts nothing
	"$(BIN)/python" -m benchmarks

screenshots: $(VENV)/.dev-installed ## the README's pictures, from the running app
	"$(BIN)/python" -m docs.screenshots

clean: ## remove the environment and caches
	rm -rf "$(VENV)" .pytest_cache .ruff_cache .hypothesis

$(VENV)/.app-installed: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or later is needed; name one with: make app PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv "$(VENV)" \
	  || { echo "Python cannot make a virtual environment; on Debian or Ubuntu: apt install python3-venv"; exit 1; }
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

# The test tools go in after requirements.txt, whose exact torch keeps CUDA packages away.
$(VENV)/.dev-installed: $(VENV)/.app-installed requirements-dev.txt
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@
