#!/usr/bin/env bash
# Builds perfmq for each system that it is meant for, and their checksums. Usage: scripts/dist.sh DIR
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$1
version=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' internal/transport/version.go)
mkdir -p "$dir"
rm -f "$dir"/perfmq-* "$dir"/SHA256SUMS
for os in linux darwin windows; do
	for arch in amd64 arm64; do
		name=perfmq-$version-$os-$arch
		[ "$os" = windows ] && name=$name.exe
		CGO_ENABLED=0 GOOS=$os GOARCH=$arch "${GO:-go}" build -trimpath -ldflags '-s -w' -o "$dir/$name" ./cmd/perfmq
	done
done
own=$dir/perfmq-$version-$("${GO:-go}" env GOHOSTOS)-$("${GO:-go}" env GOHOSTARCH)
[ ! -x "$own" ] || "$own" version | grep -qF "perfmq $version "
(cd "$dir" && sha256sum perfmq-* >SHA256SUMS && cat SHA256SUMS)
