# `make app` and `make test` are all that a fresh machine with Python 3.11 to 3.14 needs.
PYTHON ?= python3
PORT ?= 8501
VENV := .venv
# On Windows, with the make and the shell of Git Bash, the programs of an environment lie elsewhere.
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# Those for which the torch of requirements.txt is built.
FITS := -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))'
# LOCK=requirements.lock installs the exact versions that CI ran, instead of the newest that the ranges allow.
LOCK ?=
PIP := -m pip install --quiet --disable-pip-version-check $(addprefix --constraint ,$(LOCK))
# HASHES=requirements.hashes installs, on Linux with Python 3.11, those files alone whose SHA-256 is listed there; torch is not.
HASHES ?=
# TORCH=cpu takes torch from PyTorch's index of CPU wheels. On Linux PyPI's own build brings CUDA: 5.3 GB instead of 1.5.
TORCH ?=
ifneq ($(filter-out cpu,$(TORCH)),)
$(error TORCH=$(TORCH) is not known; TORCH=cpu takes the build of torch without CUDA)
endif
CPU_WHEELS := https://download.pytorch.org/whl/cpu
VERSION_OF_TORCH = $(shell sed -n 's/^torch==//p' requirements.txt)
# Which build of torch it is, as in 2.13.0+cpu, is left to the machine, and so are the packages of CUDA that some builds bring.
FREEZE := -m pip freeze --exclude-editable | sed -E '/^(cuda-|nvidia-|triton=)/d; s/\+.*//'

.PHONY: help app check quick test test-all lint lock locked hashes bench screenshots docs site lowest newest test-with dist clean
help: ## what can be made
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 14

app: $(VENV)/.app-installed ## start the app; PORT=8501 is where it listens; TORCH=cpu installs torch without CUDA
	@echo "Starting the app at http://localhost:$(PORT) - Ctrl-C stops it."
	@"$(BIN)/python" -m transformer_viz app --port "$(PORT)"

# PROCESSES=auto are as many as there are cores; those tests that are in a browser are in two.
PROCESSES ?= auto
# The tests start some hundred Pythons, each of which would compile the package anew where the environment forbids to keep it.
PYTEST := PYTHONDONTWRITEBYTECODE= "$(BIN)/python" -m pytest --numprocesses "$(PROCESSES)" --dist loadgroup

# What catches most faults in a minute: the numbers, the pictures and the arrows of the house; no page, no process, no fuzzing.
QUICK := tests/analysis tests/decoding tests/figures tests/model tests/tasks tests/trace tests/test_imports.py tests/test_edits.py \
	--ignore tests/model/test_incremental.py --ignore tests/trace/test_hostile_files.py
check: lint quick ## formatting, lint, types and the quick tests, in less than a minute

quick: $(VENV)/.dev-installed ## the quick tests alone, which need no POSIX
	$(PYTEST) -m "not slow and not browser" $(QUICK)

# MARKS="not slow and not browser" leaves those in a browser out; MARKS=browser runs all of them, the slow ones too.
MARKS ?= not slow
test: $(VENV)/.dev-installed ## run the tests but the slow ones; those in a browser need Chromium
	$(PYTEST) -m "$(MARKS)"

test-all: $(VENV)/.dev-installed ## run every test, the slow ones too
	$(PYTEST)

lint: $(VENV)/.dev-installed ## formatting, lint, types, whether the scripts can be read, and translations
	"$(BIN)/ruff" check . && "$(BIN)/ruff" format --check . && "$(BIN)/ty" check && "$(BIN)/python" -m tests.node \
	  && "$(BIN)/python" -m docs.catalogue --check

lock: $(VENV)/.dev-installed ## write what is installed to requirements.lock; after `make clean`, the newest that the ranges allow
	@"$(BIN)/python" $(FREEZE) > requirements.lock

locked: $(VENV)/.dev-installed ## is exactly that installed?
	@"$(BIN)/python" $(FREEZE) | diff requirements.lock - \
	  || { echo "requirements.lock (<) is not what is installed (>); renew it with: make clean lock" >&2; exit 1; }

hashes: $(VENV)/.dev-installed ## write requirements.hashes, which the image is installed by, from what is installed and pip's index
	@mkdir -p build
	@"$(BIN)/python" deploy/hashes.py > build/requirements.hashes && mv build/requirements.hashes requirements.hashes

bench: $(VENV)/.bench-installed ## measure against others; prints a table and verdicts, writes build/bench.json
	"$(BIN)/python" -m benchmarks

screenshots: $(VENV)/.dev-installed ## the README's pictures, from the running app
	"$(BIN)/python" -m docs.screenshots
	"$(BIN)/python" -m docs.port_pictures
	"$(BIN)/python" -m docs.tour

# Its tools lie in a folder of their own, so that the lock stays as it is. MkDocs tells of other programs at each build.
docs: $(VENV)/.app-installed build/docs-tools/.installed ## build the documentation site into build/docs, as static files
	PYTHONPATH=build/docs-tools NO_MKDOCS_2_WARNING=1 "$(BIN)/python" -m mkdocs build --strict

site: docs ## write the whole site into build/site: models that run in the browser, lessons, documents
	"$(BIN)/python" -m docs.static_site build/site build/docs $(ADDRESS)

build/docs-tools/.installed: $(VENV)/.app-installed docs/requirements.txt
	@"$(BIN)/python" $(PIP) --target build/docs-tools --upgrade -r docs/requirements.txt
	@touch $@

# In environments of their own. requirements.txt names one torch, so another comes after all else.
lowest: build/lowest.txt ## run the tests with the lowest versions that pyproject.toml allows
	$(MAKE) test-with VENV=build/lowest LOCK=$< OTHER="torch==$$(sed -n 's/.*"torch>=\([0-9.]*\),.*/\1/p' pyproject.toml).*"

newest: ## run the tests with the newest
	$(MAKE) test-with VENV=build/newest LOCK= OTHER="--upgrade torch"

test-with: $(VENV)/.dev-installed
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check $(if $(TORCH),--index-url $(CPU_WHEELS)) $(OTHER)
	$(PYTEST) -m "$(MARKS)"

build/lowest.txt: pyproject.toml
	@mkdir -p build
	@grep -oE '"[a-z0-9]+>=[0-9.]+' $< | sed -E 's/"//; s/>=/==/; /^(torch|hatchling)=/d' > $@

# Tools of their own, so that a machine that only publishes needs no torch, and the lock stays as it is.
TOOLS := build/dist-tools
dist: $(TOOLS)/.installed ## build the wheel and the source distribution into build/dist, and check them as a package index does
	rm -rf build/dist
	"$(TOOLS)/bin/python" -m build --outdir build/dist
	"$(TOOLS)/bin/twine" check --strict build/dist/*
	"$(TOOLS)/bin/check-wheel-contents" build/dist/*.whl

$(TOOLS)/.installed:
	@"$(PYTHON)" -m venv "$(TOOLS)"
	@"$(TOOLS)/bin/python" $(PIP) 'build>=1.2,<2' 'twine>=6.1,<8' 'check-wheel-contents>=0.6,<1'
	@touch $@

clean: ## remove the environment and caches
	rm -rf "$(VENV)" .pytest_cache .ruff_cache .hypothesis

# The stamps make a second start quick: pip runs again only when the lists of packages change.
$(VENV)/.app-installed: requirements.txt $(LOCK) $(HASHES)
	@"$(PYTHON)" $(FITS) 2>/dev/null \
	  || { echo "$(PYTHON) is not Python 3.11 to 3.14; name one that is: make app PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -m venv "$(VENV)" \
	  || { echo "$(PYTHON) cannot make a virtual environment; on Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }
	@"$(BIN)/python" $(FITS) \
	  || { echo "$(VENV) was made by another Python than 3.11 to 3.14; remove it with: make clean" >&2; exit 1; }
	@echo "Installing what requirements.txt lists into $(VENV); the first time takes about a minute, and longer where torch brings CUDA."
ifeq ($(TORCH),cpu)
	@"$(BIN)/python" $(PIP) --retries 1 --no-deps --index-url $(CPU_WHEELS) torch==$(VERSION_OF_TORCH) \
	  || { echo "torch $(VERSION_OF_TORCH) could not be installed from $(CPU_WHEELS); is it reached from here?" \
	    "Go on with: make app, which takes torch from pip's own index (on Linux with CUDA, 5.3 GB in all)." \
	    "Or put torch's CPU wheel into a folder, and: PIP_FIND_LINKS=FOLDER make app TORCH=cpu" >&2; exit 1; }
endif
ifneq ($(HASHES),)
	@"$(BIN)/python" $(PIP) --no-deps --only-binary :all: --require-hashes -r "$(HASHES)"
endif
	@"$(BIN)/python" $(PIP) $(if $(HASHES),$(if $(TORCH),--no-index)) -r requirements.txt
	@touch $@

# The test tools go in after requirements.txt, so that the torch that is there by then stays.
$(VENV)/.dev-installed: $(VENV)/.app-installed requirements-dev.txt
	@"$(BIN)/python" $(PIP) -r requirements-dev.txt
	@touch $@

$(VENV)/.bench-installed: $(VENV)/.dev-installed benchmarks/requirements.txt
	@"$(BIN)/python" $(PIP) -r requirements-dev.txt -r benchmarks/requirements.txt
	@touch $@
