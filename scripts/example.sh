#!/usr/bin/env bash
# Runs a command in examples/driver-mqtt, with the perfmq of this checkout: scripts/example.sh go test ./...
# The example's go.mod is that of a module elsewhere, which requires a release of perfmq: it is copied as it is. A replace in
# it would hold for no one who copies it, and a go.work beside it would change the builds of perfmq itself. So a workspace in a
# scratch folder puts this checkout in the place of the release, published or not.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
	grep '^go ' go.mod
	printf 'use %s\nreplace github.com/perfmq/perfmq => %s\n' "$PWD/examples/driver-mqtt" "$PWD"
} >"$work/go.work"
cp go.sum "$work/go.work.sum"
cd examples/driver-mqtt
GOWORK=$work/go.work "$@"
