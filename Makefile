# One virtual environment inside the project; every target makes it first, so each works on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-all lint format clean

$(READY): pyproject.toml constraints.txt setup.py $(wildcard src/lrcnet/kernels/csrc/*)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: $(READY)  ## train LRC and a Neural ODE on two dynamical systems and draw them
	$(BIN)/lrcnet demo --out demo

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint  ## under ten minutes on two cores
	$(BIN)/python -m pytest -m "not slow"

test-all: $(READY)  ## the slow half
	$(BIN)/python -m pytest -m slow

clean:
	rm -rf $(VENV) build demo runs src/*.egg-info
	find . -name '*.so' -path './src/*' -delete
