#!/usr/bin/env bash
# Makes the Debian package of the program, and proves it: the package is installed into a file system of its own,
# asked, removed and purged there.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

usage() {
	cat <<'TEXT'
usage: scripts/deb.sh [build|prove]...   (default: both)

  build   target/debian/headstart_VERSION_ARCH.deb, from target/release/headstart
  prove   installs that package below build/deb-root, and takes it away again (as root)
TEXT
}

cargo_deb_version=$(sed -n 's/^cargo-deb==//p' scripts/cargo-deb.txt)
cargo_deb=$TOOLS/cargo-deb-$cargo_deb_version/bin/cargo-deb
package() { compgen -G "$TARGET/debian/headstart_*.deb" | tail -n 1; }

build_package() {
	heading "The Debian package"
	[ -x "$cargo_deb" ] || die "cargo-deb is not there" "scripts/setup.sh deb installs it into build/tools"
	[ -x "$HEADSTART" ] || die "$HEADSTART is not there" "scripts/build.sh program builds it"
	[ -z "$(package)" ] || rm -f "$TARGET"/debian/headstart_*.deb
	"$cargo_deb" --quiet --no-build --no-strip --package headstart-cli --output "$TARGET/debian/"
	dpkg-deb --info "$(package)" | sed -n 's/^ \(Package\|Version\|Architecture\|Installed-Size\|Depends\)/  \1/p'
	dpkg-deb --contents "$(package)" | awk '{ print "  " $1, $6 }' | grep -v '/$'
}

# A Debian of its own, thrown away afterwards.
root=$BUILD/deb-root
in_root() { chroot "$root" "$@"; }
fails() { die "the package: $*" "what dpkg said is in $BUILD/logs/deb.log"; }

prove_package() {
	heading "The package, installed, asked and purged"
	[ "$(id -u)" = 0 ] || die "dpkg needs root to install" "run it as root, or scripts/deb.sh build alone"
	have debootstrap || die "debootstrap is not there" "scripts/setup.sh deb installs it"
	local deb name said
	deb=$(package)
	[ -n "$deb" ] || die "there is no package" "scripts/deb.sh build"
	name=$(dpkg-deb --field "$deb" Package)
	make_root
	trap 'rm -rf "$root"' EXIT
	trap 'exit 130' INT TERM HUP
	cp "$deb" "$root/tmp/headstart.deb"
	in_root dpkg --install /tmp/headstart.deb >"$BUILD/logs/deb.log" 2>&1 ||
		{ tail -n 5 "$BUILD/logs/deb.log" >&2 && fails "it cannot be installed"; }
	said=$(in_root headstart --version)
	say "  $said"
	in_root headstart run --check || fails "its own configuration is refused"
	[ "$(stat -c %a "$root/etc/headstart/headstart.toml")" = 600 ] || fails "others can read its configuration"
	say "  $(in_root dpkg --verify "$name" && echo "every file is as it was packed")"
	! in_root test -e /etc/systemd/system/multi-user.target.wants/headstart.service ||
		fails "it starts at boot, without being told to"
	# An upgrade keeps what the administrator wrote.
	echo '# mine' >>"$root/etc/headstart/headstart.toml"
	in_root dpkg --install /tmp/headstart.deb >>"$BUILD/logs/deb.log" 2>&1 || fails "it cannot be installed again"
	grep -q '# mine' "$root/etc/headstart/headstart.toml" || fails "an upgrade wrote over its configuration"
	in_root dpkg --remove "$name" >>"$BUILD/logs/deb.log" 2>&1 || fails "it cannot be removed"
	[ ! -e "$root/usr/bin/headstart" ] || fails "its program stays after it was removed"
	grep -q '# mine' "$root/etc/headstart/headstart.toml" || fails "removing it took its configuration"
	in_root dpkg --purge "$name" >>"$BUILD/logs/deb.log" 2>&1 || fails "it cannot be purged"
	[ ! -e "$root/etc/headstart" ] || fails "its configuration stays after it was purged"
	say "  installed, checked, installed again, removed, purged: nothing is left"
	if have systemd-analyze; then
		said=$(SYSTEMD_LOG_LEVEL=warning systemd-analyze verify packaging/headstart.service 2>&1 |
			grep -v 'Command /usr/bin/headstart is not executable' || true)
		[ -z "$said" ] || fails "systemd says of its unit: $said"
		say "  systemd has nothing to say against its unit"
	fi
}

# The smallest Debian that has what the package depends on.
make_root() {
	local log=$BUILD/logs/debootstrap.log release
	release=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mkdir -p "$BUILD/logs"
	if [ ! -e "$BUILD/deb-base/etc/debian_version" ]; then
		say "  debootstrap $release (once)"
		rm -rf "$BUILD/deb-base" # an attempt that was broken off
		debootstrap --variant=minbase --include=libelf1,zlib1g,ca-certificates "$release" "$BUILD/deb-base" "$(mirror)" \
			>"$log" 2>&1 || { tail -n 5 "$log" >&2 && die "debootstrap failed" "is the network reachable? See $log"; }
	fi
	rm -rf "$root"
	cp -a "$BUILD/deb-base" "$root"
}
# Where this machine has its own packages from.
mirror() {
	# shellcheck disable=SC2016 # apt's own variable
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v -e security | head -n 1
}

if [ $# -eq 0 ]; then
	set -- build prove
fi
for part in "$@"; do
	case $part in
	build) build_package ;;
	prove) prove_package ;;
	-h | --help) usage && exit 0 ;;
	*)
		usage >&2
		die "unknown part \"$part\"" "choose from build, prove"
		;;
	esac
done
