#!/usr/bin/env bash
# Makes the table of features from the results of the conformance suite on every broker. Usage: scripts/features.sh FILE
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/needs.sh
out=${1:?usage: scripts/features.sh FILE}
need java "the tests start real brokers: install a JDK, 17 or later (Debian: apt-get install openjdk-17-jdk-headless)"
need mvn "the tests fetch brokers by their Maven coordinates: install Maven (Debian: apt-get install maven)"
rabbitmq
rabbitmq4
provide
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
failed=0
PERFMQ_TEST_FEATURES=$results go test -tags features -count=1 -p 2 -timeout 60m -run '^TestConformance' \
	./internal/drivers/... ./internal/broker/... || failed=$?
go test -count=1 -timeout 30m -run '^TestOrder' ./internal/crossing -order.messages 20000 || failed=$?
# Failed checks are in the table, which is written in any case.
go run ./internal/lab features -results "$results" >"$results/table.md" || failed=$?
mkdir -p "$(dirname "$out")"
cp "$results/table.md" "$out"
# docs/protocols.md lists what brokers lack, between two marks.
go run ./internal/lab features -short -results "$results" >"$results/short.md" || true # said above
awk -v table="$results/short.md" '
	/<!-- features begin -->/ { print; while ((getline line < table) > 0) print line; skip = 1 }
	/<!-- features end -->/ { skip = 0 }
	!skip || /<!-- features end -->/' docs/protocols.md >"$results/protocols.md"
cp "$results/protocols.md" docs/protocols.md
exit "$failed"
