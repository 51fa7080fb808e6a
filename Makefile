# Each target first installs what it needs, and says what it installs: see scripts/setup.sh.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory --no-builtin-rules
.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := help

.PHONY: help
help: ## This list
	@echo 'Headstart: makes the first round trips of a TCP connection fast on Linux.'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo 'On a fresh Debian 12, as root: make demo, then make test.'

.PHONY: demo
demo: ## Compare start-ups over an emulated satellite path, and draw the result (as root)
	@scripts/setup.sh demo
	@scripts/build.sh
	@scripts/demo.sh

.PHONY: build
build: ## The program target/release/headstart, and the Python package in .venv
	@scripts/setup.sh build
	@scripts/build.sh

.PHONY: test
test: ## Everything that must pass: formats, lints, licences, tests
	@scripts/setup.sh test
	@scripts/test.sh

.PHONY: test-kernels
test-kernels: ## The tests on Debian's kernel in virtual time; ACCEPT=1 writes their snapshots anew
	@scripts/setup.sh test
	@scripts/test.sh kernels

.PHONY: hunt
hunt: ## New random cases for the property tests, by the thousand; CASES=5000 SEED=1 draws these again
	@scripts/setup.sh build
	@scripts/hunt.sh

.PHONY: lint
lint: ## The formats and the lints alone
	@scripts/setup.sh lint
	@scripts/test.sh format lint c docs

.PHONY: fmt
fmt: ## Format Rust, C and Python
	@scripts/setup.sh lint
	@scripts/fmt.sh

.PHONY: bench
bench: ## How fast and how true the path emulator is on this machine (as root)
	@scripts/setup.sh bench
	@scripts/bench.sh

.PHONY: deb
deb: ## The Debian package, installed and purged in a Debian of its own (as root)
	@scripts/setup.sh deb
	@scripts/build.sh program
	@scripts/deb.sh

.PHONY: experiment
experiment: ## Initial windows of 3 and 10 as arms behind 40 paths, as docs/experiment.md has it (as root)
	@scripts/setup.sh demo
	@scripts/build.sh
	@scripts/experiment.sh

.PHONY: doctor
doctor: ## What this machine can do, and what it lacks
	@scripts/setup.sh build
	@scripts/build.sh program
	@$${CARGO_TARGET_DIR:-target}/release/headstart doctor

.PHONY: clean
clean: ## Remove what was built and .venv; results/ stays
	rm -rf target build .venv
	find python -name __pycache__ -prune -exec rm -rf {} + -o -name '_native*.so' -exec rm -f {} +
