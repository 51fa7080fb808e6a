# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is used by the scripts that source this file
#
# Shared by the scripts beside it: where things are, and how progress and errors are shown. To be sourced.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

if [ -z "${HOME:-}" ]; then
	HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
	export HOME
fi

VENV=$ROOT/.venv
BUILD=$ROOT/build
TOOLS=$BUILD/tools
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
HEADSTART=$TARGET/release/headstart
export ROOT VENV BUILD TOOLS TARGET HEADSTART

# What rustup installs is not on the PATH of the shell that asked for it; nor is sbin on a user's.
cargo_bin=${CARGO_HOME:-$HOME/.cargo}/bin
if [ -x "$cargo_bin/rustup" ] && ! command -v rustup >/dev/null; then
	PATH=$cargo_bin:$PATH
fi
PATH=$PATH:/usr/sbin:/sbin
export PATH

# One interpreter for every build of the Python extension, so that cargo does not rebuild it for another.
if [ -x "$VENV/bin/python" ]; then
	export PYO3_PYTHON=$VENV/bin/python
fi
# Cargo must not link the extension with libpython: the interpreter that loads it brings the symbols.
export PYO3_BUILD_EXTENSION_MODULE=1

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
if [ "${CI:-}" = true ]; then
	export CARGO_TERM_PROGRESS_WHEN=never PIP_PROGRESS_BAR=off
	# A lock file that does not fit the manifests is an error there, not something to repair.
	LOCKED=(--locked)
else
	LOCKED=()
fi

if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ] && [ -z "${NO_COLOR:-}" ]; then
	BOLD=$'\e[1m' RED=$'\e[31m' GREEN=$'\e[32m' YELLOW=$'\e[33m' PLAIN=$'\e[0m'
else
	BOLD='' RED='' GREEN='' YELLOW='' PLAIN=''
fi

say() { printf '%s\n' "$*"; }
heading() { printf '\n%s== %s ==%s\n' "$BOLD" "$*" "$PLAIN"; }
warn() { printf '%swarning: %s%s\n' "$YELLOW" "$*" "$PLAIN" >&2; }
have() { command -v "$1" >/dev/null; }

# die MESSAGE [NEXT STEP]
die() {
	printf '%serror: %s%s\n' "$RED" "$1" "$PLAIN" >&2
	[ $# -lt 2 ] || printf '  next: %s\n' "$2" >&2
	exit 1
}

# version_at_least HAVE WANT: dotted numbers, whatever follows them is ignored.
version_at_least() {
	local i have want
	IFS=. read -r -a have <<<"${1%%[!0-9.]*}"
	IFS=. read -r -a want <<<"${2%%[!0-9.]*}"
	for i in 0 1 2; do
		[ "${have[i]:-0}" -le "${want[i]:-0}" ] || return 0
		[ "${have[i]:-0}" -ge "${want[i]:-0}" ] || return 1
	done
}

# What the kernel part of the program needs at build time.
can_build_kernel_part() {
	have "${CLANG:-clang}" && have pkg-config && pkg-config --exists libelf zlib
}

# The Rust release that the project is developed with, and the oldest that it promises to build with.
rust_pinned() { sed -n 's/^channel *= *"\(.*\)".*/\1/p' rust-toolchain.toml; }
rust_oldest() { sed -n 's/^rust-version *= *"\(.*\)".*/\1/p' Cargo.toml; }

# duration SECONDS
duration() {
	if [ "$1" -ge 60 ]; then
		printf '%d min %02d s' $(($1 / 60)) $(($1 % 60))
	else
		printf '%d s' "$1"
	fi
}
