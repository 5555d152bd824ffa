# `make app` and `make test` need Python 3.11 or newer and make, and nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
DATA_DIR ?= data/local
# Where an NVIDIA driver answers, recording needs its packages too.
GPU := $(shell nvidia-smi -L >/dev/null 2>&1 && echo yes)

.PHONY: app record test test-gpu lint format clean

app: $(BIN)/.app
	$(BIN)/python -m collectors record --if-none --cases quick --label "this machine" --data-dir $(DATA_DIR)
	$(BIN)/python -m streamlit run dashboard/app.py --server.port $(PORT) -- --data-dir $(DATA_DIR)

record: $(BIN)/.app
	$(BIN)/python -m collectors record $(ARGS) --data-dir $(DATA_DIR)

test: $(BIN)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup

test-gpu:
	$(PYTHON) -m pytest -m gpu

lint: $(BIN)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(BIN)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV)

# pip can install everything, but uv does it in a tenth of the time.
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Warpladder needs Python 3.11 or newer; set PYTHON=python3.12, for example")'
	$(PYTHON) -m venv $(VENV)


$(BIN)/.app: requirements.txt $(if $(GPU),requirements-gpu.txt) | $(BIN)/python
	@echo "Installing what the dashboard needs (about 20 s the first time)"
	@$(call install,-r requirements.txt $(if $(GPU),-r requirements-gpu.txt))
	@touch $@

$(BIN)/.dev: requirements-dev.txt requirements.txt | $(BIN)/python
	@echo "Installing what the tests need"
	@$(call install,-r requirements-dev.txt)
	@touch $@

define install
if $(BIN)/python -m pip install -q uv 2>/dev/null; then \
	$(BIN)/uv pip install -q --python $(BIN)/python $(1); \
else \
	$(BIN)/python -m pip install -q $(1); \
fi
endef
