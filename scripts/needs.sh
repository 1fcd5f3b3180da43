# What the tests need of a machine. Sourced by the scripts beside it.

# need TOOL HINT ends the script if the tool is missing.
need() {
	command -v "$1" >/dev/null && return
	echo "error: $1 is missing: $2" >&2
	exit 1
}

# debian WHY PACKAGE... installs Debian packages as root, without starting their services, and otherwise ends the script.
debian() {
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "error: ${*:2} missing: $1 (Debian: apt-get install --no-install-recommends ${*:2})" >&2
		exit 1
	fi
	echo "note: installing ${*:2}: $1"
	apt-get update -qq
	RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${@:2}" >/dev/null
}

# rabbitmq installs the one broker that comes as a Debian package instead of by Maven coordinates.
rabbitmq() {
	command -v rabbitmq-server >/dev/null || [ -x /usr/sbin/rabbitmq-server ] || debian "the tests start a RabbitMQ" rabbitmq-server
}

# python MODULES is whether Python has them. A python3 that comes first in the PATH need not be Debian's, which has the
# packages.
python() {
	python3 -c "import $1" 2>/dev/null || /usr/bin/python3 -c "import $1" 2>/dev/null
}
