# minijax: `make learn` opens the course, `make test` runs every check.
#
#   make learn            environment, then JupyterLab on the first chapter
#   make learn CHECK=1    environment, then that chapter executed here, with what it found
#   make test             environment, ruff, mypy, and every check that a change can break
#   make test-all         all tests, with JAX asked anew, and those of the tests themselves
#   make notebooks        live cells from the package, then every chapter executed anew
#   make grade FILE=…     the score of a student's copy; with SEED=7 also on hidden inputs
#   make assignments      chapters without solutions, a bank of exercises, solutions apart
#   make slides           a page of slides for each week, in build/course
#   make progress         the page of a reader's progress, kept on this machine
#   make book             the chapters and the reference as a site, in book/_build/html
#   make book LIVE=1      the same, and the chapters that run in a browser (NumPy from a CDN)
#   make book PDF=1       the same, and each chapter, all of them, and slides as PDF, by a Chromium
#   make book CHECK=1     the same, and every page looked at in a Chromium, where there is one
#   make fuzz             generated programs, compiled and not, and what differs
#   make lint | bench | clean
#   make test-cuda        the tests on an NVIDIA GPU, and one table of what came of them
#   make bench-cuda       programs at sizes of a GPU, beside its copy, cuBLAS and JAX
#                         (both with DEVICE=emulator too: slow, and its times mean nothing; the
#                         tests with DEVICE=ptx, which runs a GPU's programs)
#
# PYTHON=python3.12 chooses the interpreter, NUMPY=2.1 NumPy's version: each such pair has an
# environment of its own. CPU=x86-64-v2, -v3 or -v4 has LLVM, NumPy and OpenBLAS make do with that
# level of x86-64 in tests. CHAPTER=notebooks/….ipynb chooses the chapter.

PYTHON  ?= python3
NUMPY   ?=
CPU     ?=
CHAPTER ?= notebooks/00_tour.ipynb
CHECK   ?=
LIVE    ?=
PDF     ?=
WORKERS ?= 2
DEVICE  ?= cuda
PARTS   ?=

VENV := .venv$(if $(filter-out python3,$(PYTHON)),-$(notdir $(PYTHON)))$(if $(NUMPY),-numpy$(NUMPY))
comma := ,
BIN  := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet $(if $(NUMPY),'numpy==$(NUMPY).*') --editable

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONUNBUFFERED := 1

# Without a display a browser cannot open; as root, Jupyter asks to be told that this is meant.
DISPLAYED := $(DISPLAY)$(WAYLAND_DISPLAY)$(filter Darwin,$(shell uname -s))
LAB_FLAGS := $(if $(DISPLAYED),,--no-browser) $(if $(filter 0,$(shell id -u)),--allow-root)

# NVIDIA's assembler has no wheel for a Mac: there its tests are skipped.
ASSEMBLER := $(if $(filter Darwin,$(shell uname -s)),,$(comma)assembler)

SIMULATED = $(if $(CPU),env $$($(BIN)/python -m tests.processors $(CPU)))

.PHONY: assignments slides progress learn test test-all test-cuda fuzz lint bench bench-cuda notebooks grade book clean
.DEFAULT_GOAL := learn

learn: $(VENV)/.course
ifeq ($(CHECK),1)
	$(BIN)/python notebooks/run_chapter.py check $(CHAPTER)
else
	$(BIN)/jupyter lab $(LAB_FLAGS) $(CHAPTER)
endif

# One pytest run: two workers share its files, doctests and notebooks alike. What tests the tests
# takes turns, by the number of commits.
test: export TURN := $(shell git rev-list --count HEAD 2>/dev/null)
test-all: export ORACLE := live
test-all: export REPLAY := off
test-all: export LARGE := 1
test test-all: lint
	$(SIMULATED) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
	  --max-worker-restart 1 --nbval --nbval-current-env --nbval-sanitize-with notebooks/sanitize.cfg \
	  minijax tests notebooks

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff check --preview --select E303,W391 .  # blank lines that a deleted function leaves
	$(BIN)/mypy

# Beside JAX; numbers and pictures in build/bench. BENCH="--quick ratios softmax": some rows, soon;
# BENCH=scaling: training steps on many ranks, by a model of messages
bench: $(VENV)/.dev
	$(BIN)/python -m tests.bench $(BENCH)

# Without a GPU they end with one sentence. PARTS="arrays laws": some of the tests
test-cuda: $(VENV)/.$(DEVICE)
	DEVICE=$(DEVICE) $(if $(filter command% environment%,$(origin WORKERS)),WORKERS=$(WORKERS)) \
	  $(BIN)/python -m tests.on_device $(PARTS)

bench-cuda: $(VENV)/.$(DEVICE)
	DEVICE=$(DEVICE) $(BIN)/python -m tests.bench.device $(BENCH)

# What is done is remembered: the same command goes on where it stopped. FUZZ="--against jax"
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.generated --programs 20000 --jobs $(WORKERS) $(FUZZ)

notebooks: $(VENV)/.course
	$(BIN)/python notebooks/run_chapter.py refresh

grade: $(VENV)/.course
	$(BIN)/python notebooks/run_chapter.py grade $(FILE) $(if $(SEED),--seed $(SEED))

assignments slides progress: $(VENV)/.course
	$(BIN)/python notebooks/teaching.py $@ $(if $(SEED),--seed $(SEED))

# From the outputs that the notebooks hold: nothing is executed, nothing is fetched.
book: $(VENV)/.book
	$(if $(LIVE),LIVE=1) $(BIN)/python book/build.py
ifeq ($(LIVE),1)
	$(PIP_INSTALL) '.[live]'
	$(BIN)/python book/live.py
endif
ifeq ($(CHECK),1)
	$(BIN)/python book/check.py
endif
ifeq ($(PDF),1)
	$(BIN)/python book/pdf.py
endif

clean:
	rm -rf .venv .venv-* book/_build build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find minijax tests notebooks -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps make a second run quick; editing pyproject.toml makes the environment anew.
$(VENV)/.course: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) '.[course]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) '.[course,dev,libraries,mpi$(ASSEMBLER)]'
	@touch $@ $(VENV)/.course

$(VENV)/.cuda: $(VENV)/.dev
	$(PIP_INSTALL) '.[cuda,numba-cuda]'
	@touch $@

$(VENV)/.emulator $(VENV)/.ptx: $(VENV)/.dev
	@touch $@

$(VENV)/.book: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) '.[course,book]'
	@touch $@ $(VENV)/.course

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "minijax needs Python 3.11 or newer; choose one with: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
