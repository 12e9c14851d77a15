# Everything runs in .venv, made from requirements.txt; the programs come from PATH or from pinned Go modules (make tools).

PYTHON ?= python3
VENV := .venv/bin
INSTALLED := .venv/.installed
LOAD_TEST := .venv-load-test
STACK ?= local
FORMAT ?= text

.DEFAULT_GOAL := help
.PHONY: help up down preview leftovers kubeconfig env tools test test-long load-test lint bench lock

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: $(INSTALLED) ## local control plane, then `pulumi up -s local` under the policy pack
	@$(VENV)/python -m tools.rehearsal up

down: $(INSTALLED) ## end and remove all that `make up` made
	@$(VENV)/python -m tools.rehearsal down

preview: $(INSTALLED) ## preview STACK under the policy pack; OFFLINE=1 asks no account, FORMAT=markdown makes a comment
	@$(VENV)/python -m tools.preview "$(STACK)" --format $(FORMAT) $(if $(filter 1,$(OFFLINE)),--offline)

leftovers: $(INSTALLED) ## what on AWS still carries the tags of STACK; it only reads
	@$(VENV)/python -m tools.leftovers "$(STACK)"

kubeconfig: $(INSTALLED) ## path of the local control plane's kubeconfig
	@$(VENV)/python -m tools.control_plane kubeconfig

env: $(INSTALLED) ## export lines: eval "$(make -s env)" puts this checkout's tools and Pulumi state into a shell
	@$(VENV)/python -m tools.environment

tools: $(INSTALLED) ## find or build the programs (10 to 25 minutes where nothing is there)
	@$(VENV)/python -m tools.toolchain

# Two at a time. The engine tests measure time on real control planes: they run beside each other, not beside the others.
test: $(INSTALLED) $(LOAD_TEST)/.installed tools ## the tests, in about fifteen minutes on two cores
	@$(VENV)/pytest --quiet --numprocesses 2 --dist loadfile --ignore tests/engine
	@$(VENV)/pytest --quiet --numprocesses 2 --dist loadfile -m "not long" tests/engine

test-long: $(INSTALLED) tools ## the other tests, in about half an hour: whole AWS stacks, pull requests, replayed rollouts
	@$(VENV)/pytest --quiet -m long tests/engine

load-test: $(LOAD_TEST)/.installed ## load on the model server at URL by PROFILE (concurrency, llmperf, overload), beside the source's
	@$(LOAD_TEST)/bin/python -m tools.load_test "$(URL)" "$(PROFILE)"

lint: $(INSTALLED) ## ruff and mypy
	@$(VENV)/ruff format --check .
	@$(VENV)/ruff check .
	@$(VENV)/mypy .
	@$(VENV)/python -m tools.policy_docs --check
	@$(VENV)/python -m tools.alert_docs --check

bench: $(INSTALLED) tools ## what layers, policy pack and model artifacts cost, as ratios of one run
	@$(VENV)/python -m tools.bench
	@$(VENV)/python -m tools.bench_artifact

lock: ## pin what requirements.txt brings, from a fresh virtual environment
	@rm -rf .venv && : > constraints.txt && $(MAKE) $(INSTALLED)
	@$(VENV)/pip freeze > constraints.txt

$(INSTALLED): requirements.txt constraints.txt
	@echo "installing Python packages into .venv (about a minute)"
	@$(PYTHON) -m venv .venv
	@$(VENV)/pip install --quiet --disable-pip-version-check --requirement requirements.txt
	@touch $@

$(LOAD_TEST)/.installed: requirements-load-test.txt
	@echo "installing the load tool into $(LOAD_TEST) (about a minute)"
	@$(PYTHON) -m venv $(LOAD_TEST)
	@$(LOAD_TEST)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement requirements-load-test.txt
	@touch $@
