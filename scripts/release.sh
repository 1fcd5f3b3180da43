#!/usr/bin/env bash
# Publishes the version of the tag at the last commit: a draft on GitHub, the manifests for Homebrew and Scoop, the image.
# Variables: GITHUB_TOKEN; TAP_TOKEN, which may write to the repositories of both manifests; IMAGE, the image's name without a
# tag, and IMAGE_USER, who pushes it with GITHUB_TOKEN. Usage: scripts/release.sh
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
make_value() { sed -n "s/^$1 *:= //p" Makefile; }
version=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' pkg/transport/version.go)
crane=$(make_value CRANE)
notes=$(mktemp)
trap 'rm -f "$notes"' EXIT
awk -v head="## $version" '/^## / { own = ($0 == head) } own && $0 != head' CHANGELOG.md >"$notes"
[ -s "$notes" ] || { echo "error: CHANGELOG.md has no section $version" >&2; exit 1; }
go run "$(make_value GORELEASER)" release --clean --release-notes "$notes"
go run -C internal/lab/release . image dist dist/image
if [ -n "${IMAGE:-}" ]; then
	if [ -n "${IMAGE_USER:-}" ]; then
		go run "$crane" auth login "${IMAGE%%/*}" -u "$IMAGE_USER" --password-stdin <<<"$GITHUB_TOKEN"
	fi
	go run "$crane" push --index dist/image "$IMAGE:$version"
fi
