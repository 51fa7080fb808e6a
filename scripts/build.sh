#!/usr/bin/env bash
# Builds the program (target/release/headstart) and the Python package (into .venv).
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

usage() { echo "usage: scripts/build.sh [program|python]...   (default: both)"; }

build_program() {
	local features=()
	heading "The program"
	if ! can_build_kernel_part; then
		warn "clang, libelf or zlib is missing: built without the live-kernel verbs (compare --on kernel, exec, run)"
		warn "next, as root: apt-get install clang llvm libelf-dev zlib1g-dev, then run it again"
		features=(--no-default-features)
	fi
	cargo build --release "${LOCKED[@]}" -p headstart-cli "${features[@]}"
	say "$HEADSTART"
}

# What the extension is made from. Its Python files are not in the list: .venv refers to them where they are.
extension_sources() {
	local path
	for path in Cargo.toml Cargo.lock rust-toolchain.toml core crates python/Cargo.toml python/pyproject.toml \
		python/build.rs python/src; do
		[ ! -e "$path" ] || echo "$path"
	done
}

build_python() {
	local stamp=$VENV/.headstart-built sources newer
	heading "The Python package"
	if [ ! -e python/pyproject.toml ]; then
		warn "python/pyproject.toml is not there: nothing to build"
		return
	fi
	if [ ! -x "$VENV/bin/maturin" ]; then
		die "$VENV/bin/maturin is not there" "scripts/setup.sh build makes the environment .venv"
	fi
	mapfile -t sources < <(extension_sources)
	# The stamp names the interpreter: another one needs another extension.
	if [ "$(cat "$stamp" 2>/dev/null)" = "$(cat "$VENV/.headstart-setup" 2>/dev/null)" ]; then
		newer=$(find "${sources[@]}" -type f -newer "$stamp" -print -quit)
		if [ -z "$newer" ] && compgen -G 'python/headstart/*.so' >/dev/null; then
			say "up to date"
			return
		fi
	fi
	touch "$VENV/.headstart-building" # what changes while it builds counts as newer
	PIP_QUIET=1 VIRTUAL_ENV=$VENV "$VENV/bin/maturin" develop --release "${LOCKED[@]}" -m python/Cargo.toml
	cat "$VENV/.headstart-setup" >"$stamp" 2>/dev/null || : >"$stamp"
	touch -r "$VENV/.headstart-building" "$stamp"
	rm -f "$VENV/.headstart-building"
}

have cargo || die "cargo is not there" "scripts/setup.sh build installs Rust"
started=$SECONDS
if [ $# -eq 0 ]; then
	set -- program python
fi
for part in "$@"; do
	case $part in
	program) build_program ;;
	python) build_python ;;
	-h | --help) usage && exit 0 ;;
	*)
		usage >&2
		die "unknown part \"$part\"" "choose from program, python"
		;;
	esac
done
printf '\nBuilt in %s.\n' "$(duration $((SECONDS - started)))"
