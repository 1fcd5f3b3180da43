# What the tests need of a machine. Sourced by the scripts beside it.
#
# A script calls need and package for all that it needs, then provide: it prints what is missing, and with INSTALL=1 it installs the
# Debian packages, as root.

missing=()  # in words
packages=() # of Debian
tools=0     # missing that no package of the list brings

# need TOOL HINT: a tool that the user installs.
need() {
	command -v "$1" >/dev/null && return
	missing+=("$1 is missing: $2")
	tools=$((tools + 1))
}

# package WHY PACKAGE... notes Debian packages that are missing.
package() {
	missing+=("${*:2} missing: $1")
	packages+=("${@:2}")
}

# provide installs the missing packages if INSTALL=1, without starting their services; otherwise it ends the script.
provide() {
	[ ${#missing[@]} -gt 0 ] || return 0
	if [ "${INSTALL:-}" = 1 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && [ ${#packages[@]} -gt 0 ]; then
		echo "note: installing ${packages[*]}"
		apt-get update -qq
		RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
		[ "$tools" -gt 0 ] || return 0
	fi
	printf 'error: %s\n' "${missing[@]}" >&2
	[ ${#packages[@]} -eq 0 ] || echo "hint: with INSTALL=1, as root on Debian, the command installs: ${packages[*]}" >&2
	exit 1
}

# rabbitmq notes the one broker that comes as a Debian package instead of by Maven coordinates.
rabbitmq() {
	command -v rabbitmq-server >/dev/null || [ -x /usr/sbin/rabbitmq-server ] || package "the tests start a RabbitMQ" rabbitmq-server
}

# rabbitmq4 notes what the test harness lacks to fetch RabbitMQ 4 from the next Debian, once, and to start it in a scratch root.
rabbitmq4() {
	local root=() mirror file
	[ "$(id -u)" = 0 ] || root=(--map-root-user)
	if ! unshare --mount "${root[@]}" true 2>/dev/null; then
		missing+=("a mount namespace, in which the tests start RabbitMQ 4, is refused: be root, or allow user namespaces")
		tools=$((tools + 1))
	fi
	[ ! -d "${PERFMQ_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/perfmq-brokertest}/debian-trixie-rabbitmq-server" ] || return 0
	mirror=$(apt-get indextargets --format '$(REPO_URI)' "Created-By: Packages" "Origin: Debian" "Label: Debian" 2>/dev/null | head -n 1) || true
	mirror=${mirror:-http://deb.debian.org/debian}
	file=$(mktemp)
	if ! /usr/lib/apt/apt-helper download-file "${mirror%/}/dists/trixie/InRelease" "$file" >/dev/null 2>&1; then
		missing+=("RabbitMQ 4 is missing: the tests fetch it by apt-get from a mirror of Debian 13, which does not answer here")
		tools=$((tools + 1))
	fi
	rm -f "$file"
}

# python MODULES is whether Python has them. A python3 that comes first in the PATH need not be Debian's, which has the
# packages.
python() {
	python3 -c "import $1" 2>/dev/null || /usr/bin/python3 -c "import $1" 2>/dev/null
}
