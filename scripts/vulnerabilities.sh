#!/usr/bin/env bash
# Looks for known vulnerabilities in the code that perfmq reaches, in Go's database at https://vuln.go.dev; where that cannot be
# reached, in the copy of a fixed day that is a Go module, and says so. Those of a module are a failure; those of Go's standard
# library are a warning, as a newer Go mends them, and a failure with RELEASE=1.
# Usage: scripts/vulnerabilities.sh GOVULNCHECK@VERSION VULNDB@VERSION
set -euo pipefail
cd "$(dirname "$0")/.."
unreachable='fetching vulnerabilities: .*dial tcp'
status=0
text=$(go run "$1" ./cmd/... 2>&1) || status=$?
if [ "$status" -ne 0 ] && grep -q "$unreachable" <<<"$text"; then
	db=${XDG_CACHE_HOME:-$HOME/.cache}/perfmq/vulndb-${2#*@}
	if [ ! -e "$db/index/db.json" ]; then
		source=$(cd / && GOFLAGS= go mod download -json "$2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p') || true
		if [ ! -d "${source:-}" ]; then
			echo "warning: vulnerabilities NOT checked: neither vuln.go.dev nor $2 can be fetched" >&2
			exit 0
		fi
		go run "${2%@*}/cmd/indexdb@${2#*@}" -vulns "$source/data/osv" -out "$db"
	fi
	echo "warning: vuln.go.dev cannot be reached: vulnerabilities known after $2 are NOT found" >&2
	status=0
	text=$(go run "$1" -db "file://$db" ./cmd/... 2>&1) || status=$?
fi
if [ "$status" -ne 0 ] && grep -q 'from the Go standard library\.$' <<<"$text" && [ "${RELEASE:-}" != 1 ]; then
	grep -E '^Vulnerability|^    (Found|Fixed) in: ' <<<"$text"
	echo "warning: $(go env GOVERSION) has known vulnerabilities: make releases by a newer Go" >&2
	exit 0
fi
echo "$text"
exit "$status"
