# `make app` and `make test` need Python 3.11 or newer and make, and nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
DATA_DIR ?= data/local
# Where an NVIDIA driver answers, recording needs the packages of its CUDA version too.
CUDA := $(shell nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9]*\).*/\1/p')
# What tests the core: declare, record, compare, summary.
CORE := tests/data tests/commands tests/collectors/core tests/test_comparing.py tests/dashboard/core tests/dashboard/text
GPU_REQUIREMENTS := $(if $(CUDA),$(if $(filter 11 12,$(CUDA)),requirements-gpu-cuda12.txt,requirements-gpu.txt))

.PHONY: app record test test-fast test-all test-lowest test-newest walk test-gpu lint format lock clean

# Exit code 1 says that a variant is not right on this machine; the dashboard shows which.
app: $(BIN)/.app
	$(BIN)/warpladder record --if-none --set quick --label "this machine" --data-dir "$(DATA_DIR)" || [ $$? -eq 1 ]
	$(BIN)/warpladder app --port $(PORT) --data-dir "$(DATA_DIR)"

record: $(BIN)/.app
	$(BIN)/warpladder record $(ARGS) --data-dir $(DATA_DIR)

# Compiled files are kept for the hundreds of processes that tests start; and threads of BLAS would wait for each other, spinning, where
# several workers share the processors.
test test-fast test-all: export PYTHONDONTWRITEBYTECODE =
test test-fast test-all: export OPENBLAS_NUM_THREADS = 1
test: $(BIN)/.dev
	$(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder -m "not thorough"

test-fast: $(BIN)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder -m "not slow and not thorough and not browser"

test-all: $(BIN)/.dev
	$(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder

walk: $(BIN)/.dev
	$(BIN)/python -m tests.walk $(ARGS)

test-gpu: $(BIN)/.dev
	$(BIN)/python -m pytest -m gpu

lint: $(BIN)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports --no-logo

format: $(BIN)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The packages that `make app` and `make test` install, of the ranges in pyproject.toml. What a lock has stays; ARGS=--upgrade takes the newest.
lock: $(BIN)/.dev
	$(call locked,requirements.txt,--universal --extra dashboard --extra host)
	$(call locked,requirements-dev.txt,--universal -c requirements.txt --group dev $(addprefix --extra ,dashboard host mcp mpi ncu sql))
	$(call locked,requirements-peers.txt,--python-platform linux -c requirements.txt --extra gpu --extra peers)
	$(call locked,requirements-gpu.txt,--python-platform linux -c requirements-peers.txt --extra gpu)
	$(call locked,requirements-gpu-cuda12.txt,--python-platform linux -c requirements.txt --extra gpu-cuda12)

# The tests of the core with the lowest and the newest packages that pyproject.toml allows, in environments of their own.
test-lowest: RESOLUTION := lowest-direct
test-newest: RESOLUTION := highest
test-lowest test-newest: $(BIN)/.dev
	$(BIN)/uv venv -q --clear --python $(PYTHON) .$@
	$(BIN)/uv pip install -q --python .$@ --resolution $(RESOLUTION) -r pyproject.toml $(addprefix --extra ,dashboard host mcp mpi ncu sql)
	$(BIN)/uv pip install -q --python .$@ --no-deps --editable .
	$(BIN)/uv pip install -q --python .$@ 'hypothesis' 'pytest<9.2' pytest-xdist
	.$@/bin/python -m pytest -n 2 --dist loadgroup -m "not thorough and not browser" $(CORE)

clean:
	rm -rf $(VENV) .test-lowest .test-newest

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Warpladder needs Python 3.11 or newer: make PYTHON=python3.12, for example")'
	@$(PYTHON) -m venv $(VENV)

$(BIN)/.app: requirements.txt $(GPU_REQUIREMENTS) pyproject.toml | $(BIN)/python
	@echo "Installing what the dashboard needs (about 20 s the first time)"
	@$(call install,$(addprefix -r ,$(filter %.txt,$^)) --editable .,--compile-bytecode)
	@touch $@

# The driver's own CUDA packages come last: the tests need NVRTC, and a GPU needs that of its driver.
$(BIN)/.dev: requirements-dev.txt $(GPU_REQUIREMENTS) pyproject.toml | $(BIN)/python
	@echo "Installing what the tests need"
	@$(call install,-r requirements-dev.txt --editable .)
	@$(if $(GPU_REQUIREMENTS),$(call install,-r $(GPU_REQUIREMENTS)))
	@touch $@

define locked
$(BIN)/uv pip compile -q --python-version 3.11 --no-annotate --no-strip-extras --custom-compile-command "make lock" $(ARGS) pyproject.toml $(2) -o $(1)
endef

# uv takes a tenth of pip's time; where it cannot be had, pip does it. It compiles all modules for the dashboard, whose first start is
# waited for; tests import a fifth of theirs, which Python compiles then.
define install
if $(BIN)/python -m pip install -q uv 2>/dev/null; then \
	$(BIN)/uv pip install -q $(2) --python $(BIN)/python $(1); \
else \
	$(BIN)/python -m pip install -q $(1); \
fi
endef
