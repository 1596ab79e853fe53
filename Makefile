# make demo | test | test-slow | lint | check | clean
# Everything runs in .venv, which is made when it is missing. To use a torch of your own choice (a CUDA or a CPU build),
# install it into .venv first: what satisfies constraints.txt is left alone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One thread for each test process: two that share two cores wait for each other. Compiled modules are kept, whatever the
# machine says: tests start the program a hundred times.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal
PIP := $(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt

.PHONY: demo test test-slow lint check clean

demo: $(VENV)/.installed
	$(BIN)/photon-batch run manifests/demo.yaml --fresh
	$(BIN)/photon-batch eval outputs/demo --truth truth --picture outputs/demo-figures.png
	$(BIN)/photon-batch preview outputs/demo --out outputs/demo-preview.png
	$(BIN)/photon-batch report outputs/demo

test: $(VENV)/.installed-dev
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/.installed-dev
	$(PYTEST) -m slow

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy photon

check: lint
	$(PYTEST)

clean:
	rm -rf $(VENV)

# The stamps say what is installed; a change of either file below installs again.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing into $(VENV): minutes the first time"
	$(PIP) -e ".[eval]"
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing into $(VENV), with the tools for tests: minutes the first time"
	$(PIP) -e ".[dev]"
	@touch $@ $(VENV)/.installed
