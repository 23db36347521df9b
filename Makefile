# The commands people run are the commands CI runs. Everything installs into .venv, once.

PYTHON ?= python3
BIN := .venv/bin
# onnxruntime's GPU build where there is an NVIDIA driver, the small CPU one elsewhere.
SERVER ?= $(shell command -v nvidia-smi >/dev/null 2>&1 && echo server || echo server-cpu)
TOO_OLD = Dragoman needs Python 3.11 or newer; name one that is: make PYTHON=python3.12 $(MAKECMDGOALS)
# Where it is set, each of the hundreds of processes that tests start would compile PyTorch's Python anew.
export PYTHONDONTWRITEBYTECODE :=
# xdist waits for ever for a process that it started in the place of another.
WORKERS := -n auto --dist loadgroup --max-worker-restart=0
# What properties are tried with: the same at each run, so that a failure is a change's own; SEED=1 draws others.
SEED ?= 0
PACKAGES := benchmarks dragoman dragoman_bundle dragoman_export dragoman_files dragoman_server dragoman_training

.DEFAULT_GOAL := help
.PHONY: help demo install check size test test-long mutants proto format clean

help:  ## Say what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: .venv/serving  ## Start a server with the shipped model and translate some German
	$(BIN)/python clients/demo.py

install: .venv/everything  ## Install what training, export and development need too

check: .venv/everything  ## Lint, format, types, imports, and whether the stubs match proto/
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(addprefix -p ,$(PACKAGES))
	$(BIN)/lint-imports
	$(BIN)/python proto/generate.py --check
	$(BIN)/python .ci/size.py

size:  ## Count lines of Python by room beside their budget; with STRICT=--strict, fail beyond one
	@$(PYTHON) .ci/size.py $(STRICT)

# In the order of tests/conftest.py: reordered by their number, the one file of a real model would come last and alone.
# A test that hangs ends its process with what each thread did, and a process that ended ends the run with an error.
test: .venv/everything  ## Run the tests, but for those that take minutes each
	$(BIN)/pytest $(WORKERS) --no-loadscope-reorder --hypothesis-seed=$(SEED) -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

test-long: .venv/everything  ## Run these: drills of whole servers, deep models
	$(BIN)/pytest $(WORKERS) -m long

proto: .venv/everything  ## Generate the stubs from proto/
	$(BIN)/python proto/generate.py

mutants: .venv/everything  ## Change lines one by one and name the changes that no test notices; goes on where it stopped
	$(BIN)/python -m tests.mutants

format: .venv/everything  ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:  ## Remove .venv and caches
	rm -rf .venv .mutants .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# It comes last: without it, as after Ctrl-C or where python3-venv is absent, .venv is made anew.
.venv/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "$(TOO_OLD)")'
	$(PYTHON) -m venv --clear .venv

# Serving and calling: no torch.
.venv/serving: pyproject.toml constraints.txt | .venv/bin/pip
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$(SERVER),web,get]'
	touch $@

# Serving, training, export and the tools of development. What is imported is compiled then: all would take minutes.
.venv/everything: pyproject.toml constraints.txt | .venv/bin/pip
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt \
		--editable '.[$(SERVER),web,training,export,dev]'
	touch .venv/serving $@
