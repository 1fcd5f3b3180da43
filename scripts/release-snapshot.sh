#!/usr/bin/env bash
# Makes DIR/: a release of the last commit, of all systems, that is published nowhere. It is made twice, in other folders and
# under another umask, time zone and language: the checksums must agree. Then its packages, archives and image are tested.
# Usage: scripts/release-snapshot.sh DIR
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(realpath -m "$1")
. scripts/needs.sh
command -v rpm >/dev/null || package "the package for rpm is installed into a scratch folder" rpm
command -v runc >/dev/null || package "the image is started" runc
provide

export CGO_ENABLED=0
goreleaser=$(sed -n 's/^GORELEASER *:= //p' Makefile)
version=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' pkg/transport/version.go)
commit=$(git rev-parse HEAD)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
build() {
	git clone -q --no-checkout . "$scratch/$1"
	cd "$scratch/$1"
	git checkout -q --detach "$commit"
	GORELEASER_CURRENT_TAG=v$version go run "$goreleaser" release --snapshot --clean
	go run -C internal/lab/release . image dist dist/image
}
(build one)
(
	umask 027
	export TZ=Asia/Tokyo LC_ALL=C
	build another
)
for file in SHA256SUMS image/index.json; do
	diff "$scratch/one/dist/$file" "$scratch/another/dist/$file"
done
echo "two builds have the same checksums"
cd "$scratch/one/internal/lab/release"
go vet -tags dist . && go test -tags dist -count=1 . -dist "$scratch/one/dist"
rm -rf "$dir"
mv "$scratch/one/dist" "$dir"
