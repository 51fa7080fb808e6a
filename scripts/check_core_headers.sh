#!/usr/bin/env bash
# Each header of core/ compiles alone, freestanding, with no warning, with every C compiler that is here.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

flags=(-std=c11 -ffreestanding -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -pedantic -Werror -fsyntax-only)
compilers=()
for compiler in gcc clang; do
	if have "$compiler"; then
		compilers+=("$compiler")
	fi
done
[ ${#compilers[@]} -gt 0 ] || die "neither gcc nor clang is here" "scripts/setup.sh build"

count=0
failed=0
for header in core/*.h; do
	[ -e "$header" ] || continue
	for compiler in "${compilers[@]}"; do
		# As an #include, as every user sees it: a header given as the main file draws other warnings.
		printf '#include "%s"\n' "${header#core/}" |
			"$compiler" "${flags[@]}" -I core -x c - || { failed=$((failed + 1)) && say "$compiler: $header"; }
	done
	count=$((count + 1))
done
say "$count headers, with ${compilers[*]}: $failed failed"
[ "$failed" -eq 0 ]
