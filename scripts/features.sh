#!/usr/bin/env bash
# Makes the table of features from the results of the conformance suite on every broker. Usage: scripts/features.sh FILE
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:?usage: scripts/features.sh FILE}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
failed=0
PERFMQ_TEST_FEATURES=$results go test -count=1 -p 1 -timeout 15m -run '^TestConformance' ./internal/drivers/... ./internal/broker/... || failed=$?
# Checks that failed are in the table, which is written all the same.
go run ./internal/brokertest/cmd/features "$results" >"$results/table.md" || failed=$?
mkdir -p "$(dirname "$out")"
cp "$results/table.md" "$out"
# The README has the table, too, between two marks.
awk -v table="$results/table.md" '
	/<!-- features begin -->/ { print; while ((getline line < table) > 0) if (line ~ /^(\||[0-9]+\.)/ || line == "") { if (line != "" || last != "") print line; last = line }; skip = 1 }
	/<!-- features end -->/ { skip = 0 }
	!skip || /<!-- features end -->/' README.md >"$results/README.md"
cp "$results/README.md" README.md
exit "$failed"
