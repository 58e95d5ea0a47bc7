# The contributor's manual: `make help` lists the tasks.
# Needs Python 3.11 or newer and make. Everything else goes into .venv/.

PYTHON ?= python3
LOCK_PYTHON ?= python3.11
WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
CREATED := $(VENV)/.created
RUNTIME := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
WEB := $(VENV)/.installed-web
LOCK := requirements.lock
LOCK_VENV := .venv-lock
OLDEST_VENV := .venv-oldest
ENGINES_VENV := .venv-engines

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo page test test-machine test-docs test-slow test-certificates test-cpus test-browser test-oldest test-peers test-engines lint format hooks release-check bench reproduce fuzz kills coverage data docs notebooks pictures lock clean

help: ## List the tasks
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUNTIME) ## Show the main job on real house prices
	$(BIN)/python examples/demo.py

PORT ?= 8000
page: $(WEB) ## Open the page of the demo: move sliders, watch the proof hold; PORT=8000
	$(BIN)/python -m counterlvq demo --page --port $(PORT)

PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --durations=15 --dist
test: $(DEV) ## Run the test suite and the docstring examples
	$(PYTEST) loadfile

test-machine: $(DEV) ## Run the tests of processes, signals, memory and compiled code on disk
	$(PYTEST) loadfile -m "machine and not docs and not slow"

test-docs: $(DEV) ## Run pages, pictures, reports, the service, examples, benchmarks and the reproduction
	$(PYTEST) loadfile -m "docs and not slow"

test-slow: $(DEV) ## Run everything, with the longer proofs and with new draws
	$(PYTEST) load -m "slow or not slow" --hypothesis-profile=drawn

# One process, so that one table holds it all; an hour or so on a busy machine.
CORPUS := benchmarks/results/certificate_corpus.md
test-certificates: $(DEV) ## Check the corpus of certificate files and 5,000 mutations exactly, and store a table
	CERTIFICATE_CORPUS=$(CORPUS) $(BIN)/python -m pytest -n 0 -m slow -rP --timeout=0 tests/certificates/test_corpus.py

test-cpus: $(DEV) ## Run the test suite as on other processors
	$(BIN)/python scripts/other_cpus.py -n $(WORKERS) --dist loadfile -m "not slow"

# On Debian and its kin; elsewhere any Chromium on the path will do.
test-browser: $(DEV) ## Run the tests of the page in a real browser, which is installed if need be
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || apt-get install -y chromium
	$(BIN)/python -m pytest -n 0 -m "not slow" tests/page tests/service

# Old libraries warn about what newer ones beside them will take away; that is no fault of ours.
OLDEST ?=
test-oldest: $(OLDEST_VENV)/.installed ## Run the suite with the lowest versions that pyproject.toml allows; OLDEST=tests/cli
	$(OLDEST_VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile -W default::DeprecationWarning -W default::FutureWarning $(OLDEST)

PEERS ?=
test-peers: $(DEV) ## Confirm answers in environments of other LVQ libraries, built on request
	$(BIN)/python -m pytest -rPs tests/peers $(if $(PEERS),-k "$(PEERS)")

# On Debian and its kin; elsewhere any Java that Spark takes will do.
test-engines: $(ENGINES_VENV)/.installed ## Run the recipes for clusters on Spark, Ray and Dask, on this machine alone
	@command -v java > /dev/null || apt-get install -y default-jre-headless
	$(ENGINES_VENV)/bin/python -m pytest -n 0 tests/engines

lint: $(DEV) ## Check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(DEV) ## Format the code and apply the safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

hooks: $(DEV) ## Check style, format and types before each commit
	$(BIN)/pre-commit validate-config
	$(BIN)/pre-commit install

RELEASE ?=
release-check: $(DEV) ## Build, look at and try out what would be released; RELEASE=--newest
	$(BIN)/python scripts/release_check.py $(RELEASE)

BENCH_PEERS ?=
BENCH_DICE ?=
BENCH_IMAGES ?=
BENCH_BEFORE ?=
bench: $(DEV) ## Run the benchmarks; BENCH_PEERS=1 fits in other libraries too, BENCH_DICE=python asks DiCE there, BENCH_IMAGES=python reads MNIST there, BENCH_BEFORE=folder compares plain batches with another checkout
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.fits $(if $(BENCH_PEERS),--peers)
	$(BIN)/python -m benchmarks.local
	$(BIN)/python -m benchmarks.local --columns
	$(BIN)/python -m benchmarks.mixed
	$(BIN)/python -m benchmarks.datasets
	$(BIN)/python -m benchmarks.workers
	$(BIN)/python -m benchmarks.mixed_batches
	$(if $(BENCH_BEFORE),$(BIN)/python -m benchmarks.plain_batches --before $(BENCH_BEFORE)/src)
	$(BIN)/python -m benchmarks.service
	$(BIN)/python -m benchmarks.single
	$(BIN)/python -m benchmarks.certificates
	$(BIN)/python -m benchmarks.first_answer
	$(BIN)/python -m benchmarks.images $(if $(BENCH_IMAGES),--images $(BENCH_IMAGES))
	$(BIN)/python -m benchmarks.questions $(if $(BENCH_DICE),--dice $(BENCH_DICE)) $(if $(BENCH_IMAGES),--images $(BENCH_IMAGES))

REPRODUCE ?=
reproduce: $(DEV) ## Run the paper's experiments again; REPRODUCE="--quick --peers --fresh"
	$(BIN)/python -m experiments.paper --cache $(VENV)/reproduce $(REPRODUCE)

FUZZ_CASES ?= 1000
FUZZ_SEED ?= 0
FUZZ ?=
FUZZ_FILES ?= 3000
fuzz: $(DEV) ## Look for false claims and for files that do harm; FUZZ_CASES=14000 FUZZ_FILES=15000 FUZZ_SEED=1
	$(BIN)/python -m fuzz truth --cases $(FUZZ_CASES) --seed $(FUZZ_SEED) --jobs $(WORKERS) $(FUZZ)
	@for target in model-files exports tables constraints folders texts; do \
	  $(BIN)/python -m fuzz $$target --cases $(FUZZ_FILES) --seed $(FUZZ_SEED) --jobs $(WORKERS) || exit 1; done

KILLS ?= 200
kills: $(DEV) ## Kill the command at random moments and look at what is left; KILLS=40
	$(BIN)/python scripts/kills.py --count $(KILLS)

coverage: $(DEV) ## Run the test suite and report the lines it misses
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow" --cov --cov-report=term-missing

data: $(DEV) ## Regenerate the house-price table that ships with the package
	$(BIN)/python scripts/make_ames_csv.py

docs: $(DEV) ## Build the documentation as a site in build/docs/
	$(BIN)/python -m sphinx -W --keep-going -n -q -d build/doctrees docs build/docs
	@echo "Open build/docs/index.html in a browser."

notebooks: $(DEV) ## Run the notebooks in examples/ anew
	$(BIN)/python scripts/run_notebooks.py

pictures: $(DEV) ## Draw the pictures of the documentation anew
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python scripts/draw_rooms.py

# The setuptools that some Pythons put into a new environment would hide the one to be pinned.
lock: ## Resolve the newest versions on Python 3.11 and pin them
	rm -rf $(LOCK_VENV)
	$(LOCK_PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "make lock resolves on Python 3.11, the oldest one supported; set LOCK_PYTHON to it.")'
	$(LOCK_PYTHON) -m venv $(LOCK_VENV)
	$(LOCK_VENV)/bin/python -m pip uninstall --quiet --yes setuptools
	$(LOCK_VENV)/bin/python -m pip install --quiet -e ".[dev]"
	{ echo "# The exact versions that counterlvq is developed and tested with, resolved on Python 3.11."; \
	  echo "# Used as constraints: pip install -c $(LOCK) -e \".[dev]\""; \
	  echo "# Regenerate with: make lock"; } > $(LOCK_VENV)/$(LOCK)
	$(LOCK_VENV)/bin/python -m pip freeze --exclude-editable --all --exclude pip > $(LOCK_VENV)/frozen
	@if grep -vE '^[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+$$' $(LOCK_VENV)/frozen; then \
	  echo "make lock: the lines above are not of the form name==version; $(LOCK) is unchanged." >&2; exit 1; fi
	cat $(LOCK_VENV)/frozen >> $(LOCK_VENV)/$(LOCK)
	mv $(LOCK_VENV)/$(LOCK) $(LOCK)
	rm -rf $(LOCK_VENV)

clean: ## Remove the environment, the caches and what was built
	rm -rf $(VENV) $(LOCK_VENV) $(OLDEST_VENV) $(ENGINES_VENV) .venv-peers build docs/gallery dist htmlcov .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(CREATED):
	@command -v $(PYTHON) > /dev/null || { \
	  echo "There is no command '$(PYTHON)'. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "counterlvq needs Python 3.11 or newer, and $(PYTHON) is %d.%d. Name a newer one: make PYTHON=/path/to/python3.11" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# The package alone: all that the demo needs.
$(RUNTIME): pyproject.toml $(LOCK) | $(CREATED)
	@echo "Installing counterlvq into $(VENV)/ ..."
	$(BIN)/python -m pip install --quiet -c $(LOCK) -e .
	@touch $@

# The package with the service and its page.
$(WEB): pyproject.toml $(LOCK) | $(CREATED)
	@echo "Installing counterlvq and its service into $(VENV)/ ..."
	$(BIN)/python -m pip install --quiet -c $(LOCK) -e ".[serve]"
	@touch $(RUNTIME) $@

# The package with all extras and the development tools.
$(DEV): pyproject.toml $(LOCK) | $(CREATED)
	@echo "Installing counterlvq and its development tools into $(VENV)/ ..."
	$(BIN)/python -m pip install --quiet -c $(LOCK) -e ".[dev]"
	@touch $(RUNTIME) $(WEB) $@

# The lowest versions that pyproject.toml allows, on the oldest Python.
$(OLDEST_VENV)/.installed: pyproject.toml scripts/oldest.py
	$(LOCK_PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "make test-oldest needs Python 3.11, the oldest one supported; set LOCK_PYTHON to it.")'
	rm -rf $(OLDEST_VENV)
	$(LOCK_PYTHON) -m venv $(OLDEST_VENV)
	$(OLDEST_VENV)/bin/python scripts/oldest.py > $(OLDEST_VENV)/oldest.txt
	@echo "Installing the lowest versions into $(OLDEST_VENV)/ ..."
	$(OLDEST_VENV)/bin/python -m pip install --quiet -c $(OLDEST_VENV)/oldest.txt -e ".[dev]"
	@touch $@

# The package beside engines for clusters, which are no part of the development environment.
$(ENGINES_VENV)/.installed: pyproject.toml $(LOCK) tests/engines/requirements.txt
	rm -rf $(ENGINES_VENV)
	$(PYTHON) -m venv $(ENGINES_VENV)
	@echo "Installing counterlvq and engines for clusters into $(ENGINES_VENV)/ ..."
	$(ENGINES_VENV)/bin/python -m pip install --quiet -c $(LOCK) -e ".[cli,dask]" -r tests/engines/requirements.txt
	@touch $@
