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
	"$VENV/bin/ruff" check --fix --quiet python scripts || true # what it cannot repair, make lint names
	"$VENV/bin/ruff" format --quiet python scripts
fi
say "formatted: Rust, C, Python"
