#!/usr/bin/env bash
# Makes the table of features from the results of the conformance suite on every broker. Usage: scripts/features.sh FILE
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:?usage: scripts/features.sh FILE}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
failed=0
# RabbitMQ 4 comes from the next Debian, unpacked into the cache of the test harness.
if ! command -v debootstrap >/dev/null; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "note: installing debootstrap, to fetch RabbitMQ 4"
		apt-get update -qq
		apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
	else
		echo "error: debootstrap is missing: it fetches RabbitMQ 4 (Debian: apt-get install debootstrap; run this as root)" >&2
		exit 1
	fi
fi
PERFMQ_TEST_FEATURES=$results go test -tags features -count=1 -p 2 -timeout 60m -run '^(TestConformance|TestReal)' \
	./internal/drivers/... ./internal/broker/... ./internal/amqppeer/... || failed=$?
go test -count=1 -timeout 30m -run '^TestOrder' ./internal/crossing -order.messages 20000 || failed=$?
# Failed checks are in the table, which is written in any case.
go run ./internal/brokertest/cmd/features "$results" >"$results/table.md" || failed=$?
mkdir -p "$(dirname "$out")"
cp "$results/table.md" "$out"
# docs/protocols.md lists what brokers lack, between two marks.
go run ./internal/brokertest/cmd/features -short "$results" >"$results/short.md" || true # said above
awk -v table="$results/short.md" '
	/<!-- features begin -->/ { print; while ((getline line < table) > 0) print line; skip = 1 }
	/<!-- features end -->/ { skip = 0 }
	!skip || /<!-- features end -->/' docs/protocols.md >"$results/protocols.md"
cp "$results/protocols.md" docs/protocols.md
exit "$failed"
