#!/usr/bin/env bash
# Formats everything that `make test` checks the format of.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

cargo fmt --all
mapfile -t files < <(find core bpf -name '*.[ch]')
if [ ${#files[@]} -gt 0 ]; then
	clang-format -i "${files[@]}"
fi
if [ -x "$VENV/bin/ruff" ]; then
	# What ruff cannot repair, make lint names.
	"$VENV/bin/ruff" check --fix --quiet python || true
	"$VENV/bin/ruff" check --fix --quiet --config python/pyproject.toml scripts || true
	"$VENV/bin/ruff" format --quiet python
	"$VENV/bin/ruff" format --quiet --config python/pyproject.toml scripts
fi
say "formatted: Rust, C, Python"
