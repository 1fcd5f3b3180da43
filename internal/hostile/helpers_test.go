//go:build unix

package hostile

import "strings"

// tls makes a job that encrypts, and does not verify the identity of the peer.
func tls(j job) job {
	j.TLS = true
	return j
}

// transacted makes a job that sends in transactions of n messages.
func transacted(j job, n int) job {
	j.Tx = n
	return j
}

func zeros(n int) string { return strings.Repeat("\x00", n) }

// sayAndHear is for peers that say something at once and then listen.
func sayAndHear(text string) func(*wire) {
	return func(w *wire) {
		w.say(text)
		w.hear()
	}
}

// endlessHandshake is a TLS handshake message (RFC 8446, section 4) of 2^24 - 1 bytes, in records of 16 KiB.
func endlessHandshake(w *wire) {
	w.say("\x16\x03\x03\x40\x00\x0b\xff\xff\xff" + zeros(1<<14-4))
	w.endless("\x16\x03\x03\x40\x00" + zeros(1<<14))
}

// shared makes a job of two consumers on one connection. Only the first runs.
func shared(j job) job {
	j.Shared = true
	return j
}

// topical makes a job for a topic, not a queue.
func topical(j job) job {
	j.Topic = true
	return j
}

// ordered makes a job that checks the order of each queue.
func ordered(j job) job {
	j.Ordered = true
	return j
}
