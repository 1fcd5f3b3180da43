#!/usr/bin/env bash
# Runs all tests: vet, the unit tests, and the tests on real brokers, with the race detector if there is a C compiler. Brokers listen on loopback only and end with the tests. Usage: scripts/test.sh [TIMEOUT]
set -euo pipefail
cd "$(dirname "$0")/.."

timeout=${1:-24m}
need() {
	command -v "$1" >/dev/null && return
	echo "error: $1 is missing: $2" >&2
	exit 1
}
need go "install Go $(awk '/^go /{print $2}' go.mod) or later"
need curl "the tests run the commands of the documentation (Debian: apt-get install curl)"
need java "the tests start real brokers: install a JDK, 17 or later (Debian: apt-get install openjdk-17-jdk-headless)"
need mvn "the tests fetch brokers by their Maven coordinates: install Maven (Debian: apt-get install maven)"

# RabbitMQ is the one broker that comes as a Debian package instead of by Maven coordinates.
if ! command -v rabbitmq-server >/dev/null && [ ! -x /usr/sbin/rabbitmq-server ]; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "note: installing rabbitmq-server for the tests; its system service is not started"
		apt-get update -qq
		RUNLEVEL=1 apt-get install -y -qq --no-install-recommends rabbitmq-server >/dev/null
	else
		need rabbitmq-server "the tests start a RabbitMQ (Debian: apt-get install --no-install-recommends rabbitmq-server)"
	fi
fi

# A real Prometheus scrapes a running load; promtool checks metrics and alerts.
if ! command -v prometheus >/dev/null || ! command -v promtool >/dev/null; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "note: installing prometheus for the tests; its system service is not started"
		apt-get update -qq
		RUNLEVEL=1 apt-get install -y -qq --no-install-recommends prometheus >/dev/null
	else
		need prometheus "the tests start a Prometheus (Debian: apt-get install --no-install-recommends prometheus)"
	fi
fi

# Independent clients of the embedded broker: Qpid Proton's and stomp.py, for Python.
# (A python3 that comes first in the PATH need not be Debian's, which has the packages.)
if ! python3 -c 'import proton, stomp' 2>/dev/null && ! /usr/bin/python3 -c 'import proton, stomp' 2>/dev/null; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "note: installing python3-qpid-proton and python3-stomp: the tests use them as clients"
		apt-get update -qq
		apt-get install -y -qq --no-install-recommends python3 python3-qpid-proton python3-stomp >/dev/null
	else
		echo "error: Python's proton and stomp are missing: the tests use them as clients" \
			"(Debian: apt-get install python3-qpid-proton python3-stomp)" >&2
		exit 1
	fi
fi

# The pages of reports are tested in a browser.
if ! command -v chromium >/dev/null; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "note: installing chromium: the pages of reports are tested in it"
		apt-get update -qq
		apt-get install -y -qq --no-install-recommends chromium >/dev/null
	else
		need chromium "the pages of reports are tested in a browser (Debian: apt-get install chromium)"
	fi
fi

# The examples of docs/results.md for pandas.
if ! python3 -c 'import pandas' 2>/dev/null && ! /usr/bin/python3 -c 'import pandas' 2>/dev/null; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "note: installing python3-pandas, for the examples of docs/results.md"
		apt-get update -qq
		apt-get install -y -qq --no-install-recommends python3 python3-pandas >/dev/null
	else
		echo "error: Python's pandas is missing: the tests run the examples of docs/results.md (Debian: apt-get install python3-pandas)" >&2
		exit 1
	fi
fi

race=()
if command -v "${CC:-gcc}" >/dev/null; then
	race=(-race)
else
	echo "note: there is no C compiler, so the race detector is off"
fi
# The race detector alone needs cgo. Everything is compiled for it, or as the binary is, and for nothing else: vet, too.
racing() { CGO_ENABLED=${#race[@]} go "$1" "${race[@]}" "${@:2}"; }
export CGO_ENABLED=0

# These run beside the others, without the race detector. internal/e2e watches other processes, which the detector does
# not see; rocketmq-client-go has data races of its own.
apart=(./internal/e2e ./internal/drivers/library/rocketmqgo/...)
# The manifests are a module of their own: the types of Kubernetes are no dependency of perfmq.
beside() {
	local status=0
	(cd deploy/kubernetes/test && go vet ./... && go test -vet=off -count=1 ./...) || status=$?
	go test -vet=off -count=1 -p 1 -timeout "$timeout" "${apart[@]}" || status=$?
	return "$status"
}

racing vet ./...
beside &
beside=$!
# Three packages at a time: most of them wait for a broker, or for time to pass, more than they compute.
status=0
go list ./... | grep -vxFf <(go list "${apart[@]}") |
	{ mapfile -t packages && racing test -vet=off -count=1 -p 3 -timeout "$timeout" "${packages[@]}"; } || status=$?
wait "$beside" || status=$?
exit "$status"
