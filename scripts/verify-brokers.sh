#!/usr/bin/env bash
# Sends verified messages through every broker of the test harness, over each of its protocols, and prints the findings:
# by default a million messages each, which takes some four minutes. Usage: scripts/verify-brokers.sh [MESSAGES] [CONSUMERS]
set -euo pipefail
cd "$(dirname "$0")/.."

messages=${1:-1000000}
consumers=${2:-1}
dir=$(mktemp -d)
pid=
finish() {
	[ -z "$pid" ] || { kill -INT "$pid" && wait "$pid"; } 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT
CGO_ENABLED=0 go build -o "$dir/perfmq" ./cmd/perfmq
go build -o "$dir/broker" ./internal/brokertest/cmd/broker

failed=0
for kind in artemis activemq rabbitmq rocketmq; do
	"$dir/broker" "$kind" >"$dir/env" &
	pid=$!
	for _ in $(seq 120); do
		grep -q READY=1 "$dir/env" && break
		kill -0 "$pid" || exit 1
		sleep 1
	done
	login=()
	if [ "$kind" = rabbitmq ]; then
		login=(PERFMQ_USER="$(sed -n 's/^BROKER_USER=//p' "$dir/env")" PERFMQ_PASSWORD="$(sed -n 's/^BROKER_PASSWORD=//p' "$dir/env")")
	fi
	for protocol in amqp stomp rocketmq; do
		url=$(sed -n "s/^${protocol^^}_URL=//p" "$dir/env")
		[ -n "$url" ] || continue
		printf '\n%s over %s\n' "$kind" "$protocol"
		env "${login[@]}" timeout 600 "$dir/perfmq" "$protocol" client --url "$url" --verify --max-pending 200 \
			--message-count "$messages" --consumers "$consumers" "queue://VERIFY" >"$dir/out" || failed=1
		grep -E '^--- (result|total sent|verified|problem|redelivered|total redelivered)' "$dir/out" || true
	done
	kill -INT "$pid"
	wait "$pid" || true
	pid=
done
exit "$failed"
