#!/usr/bin/env bash
# Runs all tests: vet, the unit tests, and the tests on real brokers, with the race detector if there is a C compiler. Brokers listen on loopback only and end with the tests. Usage: scripts/test.sh [TIMEOUT]
set -euo pipefail
cd "$(dirname "$0")/.."

timeout=${1:-24m}
. scripts/needs.sh
need go "install Go $(awk '/^go /{print $2}' go.mod) or later"
need curl "the tests run the commands of the documentation (Debian: apt-get install curl)"
need java "the tests start real brokers: install a JDK, 17 or later (Debian: apt-get install openjdk-17-jdk-headless)"
need mvn "the tests fetch brokers by their Maven coordinates: install Maven (Debian: apt-get install maven)"
need openssl "the tests make key stores for brokers (Debian: apt-get install openssl)"

rabbitmq
rabbitmq4
# A real Prometheus scrapes a running load; promtool checks metrics and alerts.
command -v prometheus >/dev/null && command -v promtool >/dev/null || package "the tests start a Prometheus" prometheus
command -v chromium >/dev/null || package "the pages of reports are tested in a browser" chromium
python stomp || package "stomp.py asks and answers requests over STOMP" python3-stomp
python pandas || package "the tests run the examples of docs/results.md" python3 python3-pandas
command -v ansible-playbook >/dev/null || package "the tests run deploy/ansible/perfmq.yml" ansible-core
command -v ip >/dev/null || package "the tests make networks of three hosts" iproute2
provide

race=()
if command -v "${CC:-gcc}" >/dev/null; then
	race=(-race)
else
	echo "note: there is no C compiler, so the race detector is off"
fi
# The race detector alone needs cgo. Everything is compiled for it, or as the binary is, and for nothing else: vet, too.
racing() { CGO_ENABLED=${#race[@]} go "$1" "${race[@]}" "${@:2}"; }
export CGO_ENABLED=0

# The race detector runs where goroutines meet: in the embedded broker, whose tests run the conformance suite of each driver,
# and in the tests of drivers that need no broker, without those of client libraries: rocketmq-client-go has data races of its
# own, and the others take minutes with it. What waits for real brokers runs without it, and so does the arithmetic of
# internal/load, ten times slower with it. What takes longest begins first.
mapfile -t races < <(go list ./internal/{hostile,engine,reconnect,load,stats,verify,run,listen,rendezvous,report} \
	./internal/{broker,wire}/... ./pkg/driver/... ./pkg/transport)
mapfile -t drivers < <(go list ./internal/drivers/... ./pkg/library | grep -vE '/drivers(/library/.*)?$')
mapfile -t others < <(go list ./internal/{e2e,drivers/rocketmq,lab,promtest,drivers/stomp,drivers/amqp,crossing,load} ./internal/drivers/... ./... |
	awk '!seen[$0]++' | grep -vxFf <(printf '%s\n' "${races[@]}" | grep -v '/load$'))

racing vet "${races[@]}"
go vet "${others[@]}"
# Three and two packages at a time: most of them wait for a broker, or for time to pass, more than they compute.
go test -vet=off -count=1 -p 3 -timeout "$timeout" "${others[@]}" &
beside=$!
# Modules of their own: Helm, the types of Kubernetes and the libraries for images are no dependency of perfmq.
modules() {
	local status=0
	for module in deploy/test internal/lab/release; do
		(cd "$module" && go vet ./... && go test -vet=off -count=1 ./...) || status=$?
	done
	scripts/example.sh go test -count=1 ./... || status=$?
	return "$status"
}
modules &
modules=$!
status=0
log=$(mktemp)
trap 'rm -f "$log" "$log.short"' EXIT
detect() { racing test -vet=off -count=1 -timeout "$timeout" "${@:2}" 2>&1 | tee -a "$1"; }
# The drivers have a log of their own.
detect "$log.short" -p 1 -short "${drivers[@]}" &
short=$!
detect "$log" -p 2 "${races[@]}" || status=$?
wait "$short" || status=$?
cat "$log.short" >>"$log"
# The detector's own runtime, the only code here that is not Go, may end a test binary: that says nothing about its
# package. (A nil pointer of Go is a panic.)
mapfile -t again < <(awk '/^(ThreadSanitizer: CHECK failed|SIGSEGV: segmentation violation)/ { broke = 1 }
	/^(ok *|FAIL)\t/ { if (broke && $1 == "FAIL") print $2; broke = 0 }' "$log")
if ((${#again[@]})); then
	echo "note: the race detector itself failed: once more ${again[*]}"
	(($(grep -c $'^FAIL\t' "$log") > ${#again[@]})) || status=0
	detect "$log" -p 2 "${again[@]}" || status=$?
fi
wait "$beside" || status=$?
wait "$modules" || status=$?
exit "$status"
