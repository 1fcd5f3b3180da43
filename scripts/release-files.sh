#!/usr/bin/env bash
# Writes what a release has besides the binary: man pages, completions, and the licences of all that is linked.
# Usage: scripts/release-files.sh DIR
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(realpath -m "$1")
rm -rf "$dir"
mkdir -p "$dir/completions"
unset GOOS GOARCH
go run ./internal/mangen "$dir/man"
for shell in bash:perfmq.bash zsh:_perfmq fish:perfmq.fish powershell:perfmq.ps1; do
	go run ./cmd/perfmq completion "${shell%:*}" >"$dir/completions/${shell#*:}"
done
go run -C internal/lab/release . licences "$dir/THIRD-PARTY-LICENSES.txt"
