// Package hostile holds two suites that try to take perfmq over from the broker's end of a connection.
//
// # Hostile servers
//
// For each protocol there is a table of [cases]: a scripted peer on loopback plays a broker that behaves until one
// stage of the conversation, and then misbehaves: it lies about lengths, sends data without an end, answers requests
// that were not made, or stays silent. Each case states the expected outcome: which of opening and load fails, with
// which class of error, or that all goes well. Every case also checks the following:
//
//   - no panic, no hang: opening ends with the connect time-out, all else soon after the order to end
//   - each send ends exactly once, and no more sends are accepted than the peer confirmed
//   - every error has a class and a hint, and is of a length that a person can read
//   - nothing is left behind when the driver is closed
//   - the process stays below 256 MiB
//
// The drivers run in processes of their own, which execute the test binary again, so that a panic, a hang or a gigabyte
// can be attributed to a case. The cases that try to exhaust memory run once more through the program itself, as it is
// released; these check the exit status, too.
//
// A driver is put through a table by one line in subjects. There are no exceptions.
//
// # Fuzzed sessions
//
// TestSession runs a load between the drivers and the embedded broker through a proxy that mutates, truncates, splits
// and delays the bytes, in both directions, and checks the same; see docs/lab/hostile.md.
package hostile
