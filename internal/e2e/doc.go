// Package e2e has no code, only acceptance tests: they build the real binary, run it as a user would against real
// brokers, mostly Artemis, and hold its output against the broker's own counters.
//
//	TestMain: go build ./cmd/perfmq -> one binary
//	start(args...) -> process -> wait(limit) -> result: status, output, JSON
//	every result of every run is checked by check (console_test.go), then by its test against the broker
//
// The requirements on every run stand in one place: the console's lines equal `artemis perf`'s to the character,
// console and JSON agree, every message that was sent has exactly one end, the latencies have as many values as there
// are messages, and the exit status agrees with the result. Tests add their own requirements, above all that the
// totals are the broker's.
//
// Times are bounded generously, since machines that run tests are slow, but they are bounded: a run that does not end
// is sent SIGQUIT, and its stacks are logged. No test asserts a latency or a throughput.
//
// A test fails, and is never skipped, when no broker can be started. Tests share brokers; tests that kill or freeze
// their broker, or need another configuration, start their own.
package e2e
