# make demo and make test do all the set-up themselves, in .venv; the rest is for developers.
PYTHON ?= python3
BIN := .venv/bin
# A package is compiled when it is first imported, and not all of it at once; what was compiled is kept for the next process.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile
unexport PYTHONDONTWRITEBYTECODE

# What an installation is made of; Python's own files are read in place. The C sources are the compiled step's.
BUILT_OF := pyproject.toml setup.py $(wildcard src/_step/*.[ch])

.PHONY: demo test test-numerical bytecode lint stubs types bench bench-peers soak tables gallery docs check-release clean

demo: .venv/demo
	OMP_NUM_THREADS=1 $(BIN)/dither reproduce digits --runs 6 --block 3 --jobs 2 --out demo
	OMP_NUM_THREADS=1 $(BIN)/dither reproduce fig3-linear --panel d=10 --runs 20 --block 10 --jobs 2 --out demo
	$(BIN)/dither report demo -o demo/report.html

# One process more than there are cores: many tests wait for a disk, a database or another process.
test: .venv/test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n `$(BIN)/python -c "import os; print(os.cpu_count() + 1)"` --dist worksteal -q

# What depends on how products round, or on the step: all but the commands, files, pages and laws of chance alone. For
# another kernel of OpenBLAS: OPENBLAS_CORETYPE=Haswell make test-numerical (.ci/kernels lists those that the processor
# has). Without the compiled step: DITHER_COMPILED=0 make test-numerical. `make check-release` runs all tests so.
NUMERICAL := tests/base/test_arrays.py tests/bandit tests/house/test_conformance.py tests/models tests/ope/test_ope.py \
  tests/ope/test_ope_sums.py tests/deciding/test_explain.py tests/policies tests/propensity \
  tests/simulation/test_simulate.py tests/theory/test_theory.py
# In these folders: what torch or scikit-learn computes; what is refused or told; laws of chance; histories that fade or
# find λ, whose fits are those of the other tests of GLM
ASIDE := $(patsubst %,tests/models/test_network_%.py,at_once gradients laws modules torch) \
  $(patsubst %,tests/models/test_%.py,adapting forgetting_glm forgetting_widths glm_penalty history own_models regressor regressor_edges \
    regressor_files) \
  $(patsubst %,tests/bandit/test_%.py,bandit_settings contract raw_columns) \
  $(patsubst %,tests/policies/test_%.py,general_fp own_policies policies_laws stated)
# array_api_strict has NumPy's own products; two laws of chance
NOT_ASKED := strict or beats_uniform or chi_square

test-numerical: .venv/test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n logical --dist worksteal -q $(NUMERICAL) $(addprefix --ignore=,$(ASIDE)) \
	  -k 'not ($(NOT_ASKED))'

# What tests import, compiled by one process: else each process of `make test` compiles all of it at once, in a fresh
# clone. What is wrong with a test's imports, `make test` says.
bytecode: .venv/test
	$(BIN)/python -m pytest -q --collect-only > /dev/null || true

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# What type checkers and editors know of `dither.LinFP(`: made of the table, after an algorithm or a setting has changed.
stubs: .venv/test
	$(BIN)/python .ci/stubs.py

# mypy --strict and pyright over examples/ and the blocks of the docs, as a user's code.
types: .venv/test
	$(BIN)/python .ci/check_types.py

bench: .venv/test
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/speed.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/glm.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/glm.py --fixed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/online.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/propensity.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/neural.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/convolution.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/coverage.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/evaluate.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/features.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/imports.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/walks.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/live.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/live.py --million
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/http_load.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/http_load.py --postgres

# Other libraries beside this one, in .venv-peers, and docs/peers.md: ten minutes. AGAIN=--again measures all anew.
bench-peers: .venv/test
	$(BIN)/python benchmarks/peers.py $(AGAIN)

soak: .venv/test
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/soak.py
	OMP_NUM_THREADS=1 $(BIN)/python tests/support/kills.py --rounds 50 --events 20 --restores 20 --full 20
	OMP_NUM_THREADS=1 $(BIN)/python tests/support/kills.py --rounds 50 --events 20 --restores 20 --full 20 --postgres
	OMP_NUM_THREADS=1 $(BIN)/python tests/support/kills.py --rounds 50 --pooler
	OMP_NUM_THREADS=1 $(BIN)/python tests/support/promotions.py --rounds 20
	OMP_NUM_THREADS=1 $(BIN)/python tests/support/promotions.py --rounds 20 --wait

tables: .venv/test
	$(BIN)/python -m dither_bench.commands.tables_page > docs/tables.md

gallery: .venv/test
	$(BIN)/dither gallery $(RESULTS) --out docs/results --processor "AMD EPYC"
	$(BIN)/python -m dither_bench.commands.results_pages

docs: .venv/docs
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build

check-release: .venv/test
	bash .ci/check-release

clean:
	rm -rf .venv .venv-peers demo docs/_build build dist src/dither/_step*.so

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo: $(BUILT_OF) | .venv/bin/python
	@echo "installing into .venv: half a minute or so"
	$(PIP) -e '.[experiments]'
	touch $@

.venv/test: $(BUILT_OF) constraints.txt | .venv/bin/python
	@echo "installing into .venv: two minutes or so"
	$(PIP) -c constraints.txt -e '.[test,lint]' torch
	touch $@

.venv/docs: $(BUILT_OF) | .venv/bin/python
	$(PIP) -e '.[experiments,docs]'
	touch $@
