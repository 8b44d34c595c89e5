# Touchstone. `make run` and `make test` are all one needs; both install what is missing first.

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
PY := $(VENV)/bin/python
# Named after the lock's content: a changed lock installs again, an unchanged one costs nothing
INSTALLED := $(VENV)/.installed-$(shell sha256sum requirements.lock | cut -c1-12)
VLLM := .venv-vllm
VLLM_INSTALLED := $(VLLM)/.installed-$(shell cat requirements.lock requirements-vllm.lock | sha256sum | cut -c1-12)
# What `make gpu` has laid over the lock; once it has, every later setup keeps it so
ON_GPU := $(VENV)/.gpu-2-$(shell cat requirements.lock requirements-gpu.sha256 | sha256sum | cut -c1-12)
# vLLM calls ninja as a program, and its Python package has the name of django-ninja's package: installed beside it, it would replace
# it, and no page could be served. So it has a folder of its own.
APART := ninja
# $(call with_ninja,LOCK,PYTHON,ENVIRONMENT,OPTIONS): installs the lock into the environment
with_ninja = grep -v '^$(APART)==' $(1) | $(2) $(INSTALL) --no-deps $(4) -r /dev/stdin \
	&& grep '^$(APART)==' $(1) | $(2) $(INSTALL) --no-deps --upgrade --target $(3)/$(APART) $(4) -r /dev/stdin \
	&& ln -sf ../$(APART)/bin/ninja $(3)/bin/ninja
# Files with tests of a marker: the others, some of which load torch, need not be imported
MARKED = $(shell grep -rl --include='test_*.py' 'mark\.$(1)' tests | sort $(2))
# Ray's workers are by default so nice that tests which run beside them would leave them nothing. What has two threads for a model
# that is too small for them (jobs of the stack have one for each core) waits for the other one asleep: by default it spins,
# which doubled the processor time
TESTING := OMP_NUM_THREADS=1 GOMP_SPINCOUNT=0 RAY_worker_niceness=0
PYTEST := $(TESTING) $(PY) -m pytest
# What waits for services and browsers, and what computes: the first has the right of way
LANES := test-stack,test-browser test-trainer,test-web
AGAIN :=
TESTS := test-trainer test-web test-browser test-stack
TRAINER := tests/trainer tests/benchmarks
# Those of the trainer that train, or start a process that holds a model
TRAINING := tests/benchmarks tests/trainer/test_every_recipe.py $(addprefix tests/trainer/,claims loops memory runners serving weights)
SELECT := not stack and not browser
UNIT = $(PYTEST) -n $(JOBS) --dist loadfile -m "$(SELECT)"
DJADE := $(VENV)/bin/djade --target-version 5.2
TEMPLATES = $(shell find templates -name '*.html')
INSTALL := -m pip install -qq --disable-pip-version-check --no-compile

# Container images often forbid Python to keep what it has compiled. Each of the many processes would compile torch again
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test test-fast $(TESTS) gpu gpu-fits gpu-check vllm test-vllm lint format bench bench-results bench-live bench-judges bench-trainer bench-recipes bench-judge-training bench-curricula chaos soak screenshot pictures tour sbom audit-packages bundle bundle-check clean

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(INSTALLED) $(if $(wildcard $(VENV)/.gpu-*),$(ON_GPU))  ## Install everything into .venv and the browser libraries beside the pages
	@$(PY) scripts/vendor.py

# The lock is complete for every Python and machine we support (`python -m scripts.lock` makes it), so pip need not resolve it.
# requirements.sha256 is the lock with digests: pip takes no other file. What has only a source is built with the setuptools of the
# lock, which therefore comes first. torch comes apart: its files, and the packages it brings (CUDA libraries beside the build for
# GPUs, none beside the build for CPUs), differ from index to index; scripts/digests.py compares what came.
# TORCH_INDEX may name an index that has the smaller CPU build. Python compiles what it imports when it first does, a fifth
# of the files; pip would compile them all, one after the other, for longer than it takes to install them.
# The pip that comes with Python 3.11 compares each file of an index with all tags of this Python, and goes through all installed packages
# for each new one. So a newer pip comes first, if the index has it: with it, an installation needs 56 processor seconds instead of 92.
$(INSTALLED): requirements.lock
	@command -v $(PYTHON) > /dev/null || { echo "There is no $(PYTHON) here: install Python, or name one, as in \`make run PYTHON=python3.12\`." >&2; exit 1; }
	@$(PYTHON) scripts/check_python.py
	@$(PY) -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing Python packages (a few minutes, once)"
	@$(PY) $(INSTALL) --no-deps --require-hashes -r requirements-pip.sha256 \
		|| echo "This pip could not be renewed. It installs the same packages, and takes longer." >&2
	@grep '^setuptools==' requirements.sha256 | $(PY) $(INSTALL) --no-deps --require-hashes -r /dev/stdin
	@$(PY) $(INSTALL) --no-deps --no-build-isolation --use-pep517 -r requirements.sha256
	@$(PY) $(INSTALL) --report $(VENV)/torch.json -c requirements.lock $$(grep '^torch==' requirements.lock) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX),-c requirements-torch.lock)
	@$(PY) -I -S scripts/digests.py $(VENV)/torch.json $(if $(TORCH_INDEX),--index-named)
	@rm -f $(VENV)/.installed-* && touch $@

run: setup  ## Start everything, load the demo and launch its run; Ctrl-C stops it all
	@exec $(PY) manage.py up

test: setup  ## Run the whole test suite; a part that fails keeps no other from running
	@$(PY) -m scripts.phases $(AGAIN) $(LANES)

# Those of the trainer need no database and those of the rest no torch: together, each process would pay for both
test-trainer: export WITHOUT_DATABASE := 1
test-trainer: setup  ## Run the trainer's tests that need no services
	$(UNIT) $(TRAINER)

test-web: setup  ## Run all other tests that need no services
	$(UNIT) tests $(TRAINER:%=--ignore=%)

# Half the time these wait for a page, so there is one more at a time
test-browser: setup  ## Run the tests of the pages in Chromium
	$(PYTEST) -n $$(($(JOBS) + 1)) --dist loadfile -m "browser and not stack" $(call MARKED,browser)

# Real services and runs take their time to start and to be found dead, so these run one after the other, and what runs beside them
# yields to them. Those that share one whole stack come last, or it would idle beside the others until the end.
test-stack: setup  ## Run the tests of the real services and of Ray
	$(PYTEST) -m stack $(call MARKED,stack,-r)

# Three minutes: the walls of the house, and every function that is tested by itself
test-fast: export WITHOUT_DATABASE := 1
test-fast: SELECT := not stack and not browser and not slow and not database
test-fast: setup  ## Run what needs no database, browser or service, trains no model and is not marked slow
	$(UNIT) tests $(patsubst %,--ignore=%,tests/e2e tests/upgrade $(TRAINING))

gpu: gpu-fits $(ON_GPU)  ## Put torch for CUDA and vLLM into .venv, where driver, card and disk suit (about 4 GB to fetch)

# Before anything is fetched
gpu-fits:
	@$(PYTHON) scripts/check_python.py && $(PYTHON) scripts/check_gpu.py

# Into the same environment, so that what samples and what trains see the same torch. Every file has its digest in the lock, so no index
# can give another build; a torch without CUDA goes first, for pip takes it for the same version. Environments of the first such recipe
# have ninja in the place of django-ninja.
$(ON_GPU): requirements-gpu.sha256 | $(INSTALLED)
	@! $(PY) scripts/check_gpu.py --replaced || $(PY) -m pip uninstall -qq --disable-pip-version-check -y torch
	@echo "Installing CUDA libraries and vLLM (some minutes, once)"
	@! $(PY) -m pip show -qq $(APART) 2> /dev/null || { $(PY) -m pip uninstall -qq -y $(APART) \
		&& grep '^django-ninja==' requirements.sha256 | $(PY) $(INSTALL) --no-deps --force-reinstall -r /dev/stdin; }
	@$(call with_ninja,requirements-gpu.sha256,$(PY),$(VENV))
	@$(PY) scripts/check_gpu.py --works
	@rm -f $(VENV)/.gpu-* && touch $@

# PARTS="a b" takes these alone; `python -m benchmarks.gpu --help` tells them
gpu-check: setup  ## Compare and measure the trainer on this machine's GPU (under nine minutes); writes docs/results/gpu-CARD.json
	@$(PY) -m benchmarks.gpu $(PARTS)

vllm: $(VLLM_INSTALLED)  ## Make .venv-vllm, in which runs can sample with vLLM on the processor (about 1 GB more)

# An environment on top of .venv: what both need is installed once. vLLM's metadata asks for versions that break the lock,
# hence --no-deps. The CPU build of vLLM wants the CPU build of torch.
$(VLLM_INSTALLED): requirements-vllm.lock | $(INSTALLED)
	@$(PY) scripts/check_gpu.py --cpu
	@$(PY) -m venv --without-pip $(VLLM)
	@$(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > $$($(VLLM)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/base.pth
	@echo "Installing vLLM (some minutes, once)"
	@{ $(call with_ninja,requirements-vllm.lock,$(VLLM)/bin/python,$(VLLM),$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))); } \
		|| { echo "Name an index that has the CPU build of torch in TORCH_INDEX, as in: make vllm TORCH_INDEX=https://..."; exit 1; }
	@rm -f $(VLLM)/.installed-* && touch $@

test-vllm: vllm  ## Run the tests that need vLLM itself (not part of `make test`)
	$(TESTING) $(VLLM)/bin/python -m pytest tests/trainer/inference/vllm

lint: setup  ## Check style, templates, types and import rules
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(DJADE) --check $(TEMPLATES)
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

format: setup  ## Bring code and templates into their one format
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(DJADE) $(TEMPLATES)

bench: setup  ## Measure launch, ingest, datasets, annotation, training and judging (about an hour); prints a table and one JSON line
	$(PY) -m benchmarks

bench-results: setup  ## Train what docs/results.md shows: the demo, reward models, planted bias, hackable proxy, reward hacking, judged rubrics (hours)
	$(PY) -m benchmarks --results

bench-backup: setup  ## Measure a backup, the next one, and a restoration of 1 GB; says what 20 GB would take
	$(PY) -m benchmarks backup

# LIVE="--only charts" takes some of its parts alone; `python -m benchmarks.live --help` tells them
bench-live: setup  ## Measure ingest, charts, comparisons and pages of runs, beside MLflow and Trackio where these can be fetched
	$(PY) -m benchmarks.live $(LIVE)

bench-judges: setup  ## Measure judging through an endpoint, beside a bare loop and autorubric
	$(PY) -m benchmarks judges

bench-trainer: setup  ## Measure a training step beside TRL's: time, tokens/s and peak memory, float32 and bfloat16
	$(PY) -m benchmarks trainer tree_attention products

bench-curricula: setup  ## Measure what the schedule of a step costs, K-center, and that each state resumes bit for bit
	$(PY) -m benchmarks curricula

bench-judge-training: setup  ## Measure judgements trained per second beside TRL's GRPOTrainer, and the matching of 10,000 pairs of reason lists
	$(PY) -m benchmarks judge_training

bench-recipes: setup  ## Measure updates of sft, reward_model and dpo beside TRL's trainers, and rewards through a judge
	$(PY) -m benchmarks recipes judged_runs

# CHAOS="--minutes 60 --seed 7 network full-disk" for other lengths and scenes; `python -m benchmarks.chaos --help` lists them
chaos: setup  ## Kill every process at random for five minutes while everything works, and count what is lost
	$(PY) -m benchmarks.chaos $(CHAOS)

soak: setup  ## One hour of 50 annotators, 100 viewers, a judge and a run: memory of each process, p95s, reconnects (MINUTES=60)
	$(PY) -m benchmarks.soak $(if $(MINUTES),--minutes $(MINUTES))

screenshot: setup  ## Take the README's picture from the running product
	@$(PY) -m scripts.screenshot

pictures: setup  ## Take the pictures of docs/from-opinions.md on an installation of their own
	@PICTURES=docs/images/journey $(PY) -m pytest -q -o faulthandler_timeout=0 tests/e2e/test_journeys.py

tour: setup  ## Take the pictures of docs/tour.md on an installation of their own
	@$(PY) -m scripts.tour

sbom: setup  ## Write what this product is made of, as CycloneDX JSON
	@$(PY) -m scripts.sbom

audit-packages: setup  ## Compare every pin with the known faults that osv.dev lists (asks the network; 1: some are known, 2: not asked)
	@$(PY) -m scripts.audit_packages

bundle: setup  ## Make one file that installs without network, for this Python and machine (KEY=FILE: signs it)
	@$(PY) -m scripts.bundle $(if $(KEY),--key $(KEY))

bundle-check: setup  ## Install the newest bundle where there is no network, and wait for the demo's first point (root)
	@$(PY) -m scripts.bundle_check

clean:  ## Remove what can be made again; data under var/ stays
	rm -rf $(VENV) $(VLLM) node_modules webapp/static/vendor .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
