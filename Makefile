# Every target sets up what it needs in .venv, from the pins in requirements/.
.DELETE_ON_ERROR:
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3.14; do $$name -c "" 2>/dev/null && echo $$name && exit; done; echo python3)
BIN := .venv/bin
READY := .venv/ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: run docs test check few-kills wheel-learns nightly test-wheel test-everywhere lint truth torture fuzz bench bench-auto bench-quality examples lock clean

run: .venv/ready-run
	$(BIN)/hindsight learn sample:diabetes --report report.html

# The site in build/site, with what its code prints: make docs PICTURES=--pictures also draws those of docs/pictures anew.
docs: $(READY) .venv/ready-docs
	$(BIN)/python scripts/build_docs.py $(PICTURES)

# A file of tests stays with one worker, and the files that take longest come first.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

# What must pass before every merge: a fixed choice of what `make nightly` runs whole, two things at a time.
test: $(READY)
	$(MAKE) --jobs 2 check .venv/ready-docs
	$(PYTEST)
	$(MAKE) --jobs 2 few-kills wheel-learns

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

few-kills: $(READY)
	$(BIN)/python tests/torture.py --kills 3 --seed 0
	$(BIN)/python tests/serve_torture.py --kills 5

wheel-learns: $(READY)
	$(BIN)/python tests/installed.py --quick

# All tests, the wheel on other Pythons, the mutants, and a part of what truth, torture and fuzz draw: two at a time.
NIGHT := $(addprefix night-,mutants truth fuzz_parsers torture serve_torture cluster_torture)
.PHONY: $(NIGHT)
nightly: $(READY) .venv/ready-docs
	$(PYTEST) --nightly
	$(BIN)/python tests/installed.py
	$(MAKE) --jobs 2 $(NIGHT)

night-truth: DRAWS := --streams 1000
night-fuzz_parsers: DRAWS := 10000 --bounds
night-torture: DRAWS := --kills 100
night-serve_torture: DRAWS := --kills 200
night-cluster_torture: DRAWS := --kills 5
$(NIGHT): night-%: $(READY)
	$(BIN)/python $(wildcard tests/$*.py tests/$*/__main__.py) $(DRAWS)

# A choice of the tests with the installed wheel: the lowest versions on Python 3.11, the newest on the newest Python.
test-wheel: $(READY)
	$(BIN)/python tests/installed.py

# The whole suite with each of them, and once more without private parts of numba and Python.
test-everywhere: $(READY) .venv/ready-docs
	$(BIN)/python tests/installed.py --all
	HINDSIGHT_PLAIN=1 $(PYTEST) --nightly

lint: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# The whole truth suite: ten thousand streams a theorem, and the mutants it must catch.
truth: $(READY)
	$(BIN)/python tests/truth --streams 10000 --jobs 2
	$(BIN)/python tests/mutants.py --jobs 2

# A thousand kills of a run with checkpoints, one at every system call of a save where strace is there, and of workers.
torture: $(READY)
	$(BIN)/python tests/torture.py --kills 1000
	$(BIN)/python tests/torture.py --strace
	$(BIN)/python tests/cluster_torture.py --kills 50
	$(BIN)/python tests/serve_torture.py --kills 500

# A million inputs for each parser of text, with every index checked.
fuzz: $(READY)
	$(BIN)/python tests/fuzz_parsers.py 1000000 --bounds

# Writes docs/benchmarks.md and the ratios of the README.
bench: $(READY) .venv/ready-bench
	$(BIN)/python benchmarks/page.py --write

# What the default learners lose, against peers: docs/quality.md. HINDSIGHT_STREAMS may name a folder of more streams.
bench-quality: $(READY) .venv/ready-bench
	$(BIN)/python benchmarks/quality.py --page docs/quality.md

# The speed of the learner without a rate alone.
bench-auto: $(READY) .venv/ready-bench
	$(BIN)/python benchmarks/auto.py --markdown

# Each draws a picture, in a temporary folder or in the one named: make examples FOLDER=/tmp/pictures
EXAMPLES := $(filter-out examples/pictures.py, $(wildcard examples/*.py))
examples: $(READY)
	for file in $(EXAMPLES); do echo "== $$file"; $(BIN)/python $$file $(FOLDER) || exit 1; done

NEEDED = import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or later is needed, and $(PYTHON) is " + sys.version.split()[0] + "; name another one: make PYTHON=/path/to/python")

# What the command needs: Python compiles the modules that are imported when they are, all of them would take 20 s.
.venv/ready-run: requirements/run.txt pyproject.toml
	@$(PYTHON) -c '$(NEEDED)'
	$(PYTHON) -m venv .venv
	$(PIP) --no-compile --require-hashes -r requirements/run.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

$(READY): requirements/dev.txt .venv/ready-run
	$(PIP) --no-compile --require-hashes -r requirements/dev.txt
	touch $@

.venv/ready-bench: requirements/bench.txt $(READY)
	$(PIP) --require-hashes -r requirements/bench.txt
	touch $@

# And all modules compiled, which is done once for all processes: warnings of the compiler would be errors in tests.
.venv/ready-docs: requirements/docs.txt $(READY)
	$(PIP) --no-compile --require-hashes -r requirements/docs.txt
	-$(BIN)/python -W ignore -m compileall -qq -j 0 -x "/tests?/" .venv/lib src
	touch $@

# Pins with hashes and without addresses, for the oldest Python we support.
lock: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-tools
	$(BIN)/pip-compile --quiet --strip-extras --allow-unsafe --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --no-annotate --extra charts --extra serve --extra test --extra lint --output-file requirements/dev.txt requirements/build.in pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --allow-unsafe --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --no-annotate --extra bench --constraint requirements/dev.txt --output-file requirements/bench.txt pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --allow-unsafe --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --no-annotate --extra docs --constraint requirements/dev.txt --output-file requirements/docs.txt pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --allow-unsafe --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --no-annotate --extra charts --constraint requirements/dev.txt --output-file requirements/run.txt requirements/build.in pyproject.toml
	$(BIN)/python tests/installed.py --lock

clean:
	rm -rf .venv .venv-lowest .venv-newest build
