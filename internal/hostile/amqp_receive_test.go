//go:build unix

package hostile

import (
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// onCredit is a case's act when the driver, which receives, gives credit for the first time.
func onCredit(do func(*amqpPeer)) func(*wire) {
	return amqpStart(amqpFlow, func(p *amqpPeer, f *amqpFrame) {
		if handle, ok := creditIn(f); ok && !p.sent[handle] {
			p.sent[handle], p.handle = true, handle
			do(p)
		}
	})
}

// amqpMessages sends ten messages.
func amqpMessages(payload string) func(*wire) {
	return onCredit(func(p *amqpPeer) {
		for range 10 {
			p.peer.delivered.Add(1)
			p.transfer(payload)
		}
	})
}

// amqpTransfers: frames in place of messages.
func amqpTransfers() []testCase {
	say := func(text string) func(*wire) { return onCredit(func(p *amqpPeer) { p.say(text) }) }
	fields := func(fields ...string) func(*wire) {
		return onCredit(func(p *amqpPeer) {
			p.peer.delivered.Add(1)
			p.say(frameOf(0, p.channel, listOf(amqpTransfer, fields...)+dataOf("body")))
		})
	}
	bad := func(payload string) func(*wire) {
		return onCredit(func(p *amqpPeer) {
			p.peer.delivered.Add(1)
			p.transfer(payload)
		})
	}
	handle, id, tag, format := uint32Of(0), uint32Of(0), binaryOf("t"), uint32Of(0)
	body := dataOf("body")
	application := func(pairs ...string) string {
		return "\x00\x53\x74" + counted(0xd1, uint32(len(pairs)), strings.Join(pairs, "")) + body
	}
	return []testCase{
		{name: "transfer: closed", job: consuming(), play: onCredit(func(p *amqpPeer) { _ = p.Close() }), want: runFails("", lost).after(0)},
		{name: "transfer: silence in mid-message", job: consuming(), want: quiet(0), play: onCredit(func(p *amqpPeer) { p.transfer(body, "\x42", "\x41") })},
		{name: "transfer: each byte of a message in a frame", job: consuming(), want: works(), play: onCredit(func(p *amqpPeer) {
			for n := range uint32(10) {
				p.peer.delivered.Add(1)
				for i := range body {
					p.say(frameOf(0, p.channel, listOf(amqpTransfer, uint32Of(p.handle), uint32Of(n), tag, format, "\x42", boolOf(i < len(body)-1))+body[i:i+1]))
				}
			}
		})},
		{name: "transfer: without a tag", job: consuming(), play: fields(handle, id, null, format), want: runFails("", protocol).after(0)},
		{name: "transfer: a tag of 60 KB", job: consuming(), play: fields(handle, id, binaryOf(zeros(60_000)), format), want: runFails("", protocol).after(0)},
		{name: "transfer: one delivery within another", job: consuming(), want: runFails("", protocol).after(0), play: onCredit(func(p *amqpPeer) {
			p.transfer(body, "\x42", "\x41")
			p.transfer(body)
		})},
		{name: "transfer: aborted ones", job: consuming(), want: works(), play: onCredit(func(p *amqpPeer) {
			for n := range uint32(10) {
				p.say(frameOf(0, p.channel, listOf(amqpTransfer, uint32Of(p.handle), uint32Of(2*n), tag, format, "\x42", "\x41")+body))
				p.say(frameOf(0, p.channel, listOf(amqpTransfer, uint32Of(p.handle), uint32Of(2*n), tag, format, "\x42", "\x42", null, null, null, "\x41")))
				p.peer.delivered.Add(1)
				p.say(frameOf(0, p.channel, listOf(amqpTransfer, uint32Of(p.handle), uint32Of(2*n+1), tag, format)+body))
			}
		})},
		{name: "transfer: settled, although not asked for", job: consuming(), want: works(), play: onCredit(func(p *amqpPeer) {
			p.peer.delivered.Add(10)
			for range 10 {
				p.transfer(body, "\x41")
			}
		})},
		{name: "transfer: no message at all", job: consuming(), play: bad(""), want: runFails("", protocol).after(0)},
		{name: "transfer: garbage for a message", job: consuming(), play: bad("\xde\xad\xbe\xef"), want: runFails("", protocol).after(0)},
		{name: "transfer: an unknown section", job: consuming(), play: bad("\x00\x53\x7f" + binaryOf("x")), want: runFails("", protocol).after(0)},
		{name: "transfer: a body of 2^32-1 bytes", job: consuming(), play: bad("\x00\x53\x75" + sized(0xb0, 1<<32-1, "body")), want: runFails("", protocol).after(0)},
		{name: "transfer: a body that is a number", job: consuming(), play: bad("\x00\x53\x75" + uint32Of(5)), want: runFails("", protocol).after(0)},
		{name: "transfer: a value nested 6000 deep", job: consuming().messages(1), heavy: true, play: bad("\x00\x53\x77" + nested(6000)), want: works()},
		{name: "transfer: a value described 50,000 deep", job: consuming().messages(1), heavy: true, play: bad("\x00\x53\x77" + describedBy(25_000)), want: works()},
		{name: "transfer: a value of 2^32-1 elements", job: consuming(), heavy: true, play: bad("\x00\x53\x77" + counted(0xd0, 1<<32-1, null)), want: runFails("", protocol).after(0)},
		{name: "transfer: properties of 2^32-1 pairs", job: consuming(), heavy: true, play: bad("\x00\x53\x74" + counted(0xd1, 1<<32-1, str("a")+null) + body), want: runFails("", protocol).after(0)},
		{name: "transfer: an odd number of properties", job: consuming(), play: bad(application(str("a"), null, str("b"))), want: runFails("", protocol).after(0)},
		{name: "transfer: properties whose names are numbers", job: consuming().messages(1), play: bad(application(uint32Of(1), null)), want: works()},
		{name: "transfer: times of other types", job: consuming(), want: works(), play: amqpMessages(application(str("time"), "\x82\x7f\xf0\x00\x00\x00\x00\x00\x00", str("perfmq_id"), uint32Of(5)))},
		{name: "transfer: times of texts", job: consuming(), want: works(), play: amqpMessages(application(str("time"), str("yesterday \x1b[2J"), str("perfmq_id"), str(strings.Repeat("9", 5000))))},
		{name: "transfer: a header of texts", job: consuming(), play: bad(listOf(0x70, str("x"), str("y")) + body), want: runFails("", protocol).after(0)},
		{name: "transfer: a frame of SASL", job: consuming(), play: say(frameOf(typeSASL, 0, listOf(saslOutcome, "\x50\x00"))), want: runFails("", protocol).after(0)},
	}
}

// amqpLargeTransfers: messages that try to exhaust memory.
func amqpLargeTransfers() []testCase {
	const chunk = 32 << 10
	// large sends messages of n bytes each.
	large := func(p *amqpPeer, messages uint32, n int) {
		payload := "\x00\x53\x75" + sized(0xb0, uint32(n), "")
		for m := range messages {
			p.peer.delivered.Add(1)
			for left := n; left >= 0; left -= chunk {
				frame := listOf(amqpTransfer, uint32Of(p.handle), uint32Of(m), binaryOf("t"), uint32Of(0), "\x42", boolOf(left > chunk)) + payload
				p.say(frameOf(0, p.channel, frame+zeros(min(left, chunk))))
				payload = ""
				if left <= chunk {
					break
				}
			}
			payload = "\x00\x53\x75" + sized(0xb0, uint32(n), "")
		}
	}
	more := func(payload string) func(*wire) {
		return onCredit(func(p *amqpPeer) {
			p.endless(frameOf(0, p.channel, listOf(amqpTransfer, uint32Of(p.handle), uint32Of(0), binaryOf("t"), uint32Of(0), "\x42", "\x41")+payload))
		})
	}
	frame := func(size uint32) func(*wire) {
		return onCredit(func(p *amqpPeer) {
			p.say(frameHead(size, 2, 0, p.channel) + listOf(amqpTransfer, uint32Of(p.handle), uint32Of(0), binaryOf("t"), uint32Of(0)))
			p.endless("x")
		})
	}
	const most = driver.DefaultMaxBody
	return []testCase{
		{name: "large: more without end", job: consuming(), heavy: true, play: more(strings.Repeat("x", chunk)), want: runFails("16777216", tooLarge).after(0)},
		{name: "large: more of nothing without end", job: consuming(), heavy: true, play: more(""), want: runFails("1048576 frames", protocol).after(0)},
		{name: "large: the largest messages", job: consuming().messages(8), heavy: true, want: works(), play: onCredit(func(p *amqpPeer) { large(p, 8, most-1<<10) })},
		{name: "large: a message that is too large", job: consuming(), want: runFails("perfmq accepts at most 16777216", tooLarge).after(0), play: onCredit(func(p *amqpPeer) { large(p, 1, 2*most) })},
		{name: "large: a frame of 2^31-1 bytes", job: consuming(), heavy: true, want: runFails("2147483647 bytes", protocol).after(0), play: frame(1<<31 - 1)},
		{name: "large: a whole frame, and silence", job: consuming(), want: quiet(0), play: onCredit(func(p *amqpPeer) { p.say(frameHead(amqpMaxFrame, 2, 0, p.channel)) })},
	}
}

// amqpFloods: frames that are each correct, in excess.
func amqpFloods() []testCase {
	const second = time.Second
	flood := func(frames func(p *amqpPeer) string) func(*wire) {
		return onCredit(func(p *amqpPeer) { p.endless(frames(p)) })
	}
	thousand := func(p *amqpPeer) string {
		var b strings.Builder
		for range 1000 {
			b.WriteString(p.transferFrame(dataOf("x")))
		}
		return b.String()
	}
	return []testCase{
		// The driver cannot tell a broker that sends beyond its credit from one that got new credit in time: it takes the
		// messages, one after the other, and keeps none.
		{name: "flood: messages beyond all credit", job: consuming().messages(1 << 30).watched(2 * second), heavy: true, want: want{quiet: true, some: -1}, play: onCredit(func(p *amqpPeer) {
			go p.hear()
			for p.peer.delivered.Add(1000); p.say(thousand(p)); {
				p.peer.delivered.Add(1000)
			}
		})},
		{name: "flood: messages of a broker that reads no dispositions", job: consuming("idle-timeout=0").messages(1 << 30).watched(2 * second), heavy: true, want: want{quiet: true, some: -1}, play: onCredit(func(p *amqpPeer) {
			for p.peer.delivered.Add(1000); p.say(thousand(p)); {
				p.peer.delivered.Add(1000)
			}
		})},
		{name: "flood: dispositions of all that there can be", job: consuming().watched(second), heavy: true, want: quiet(0), play: flood(func(p *amqpPeer) string {
			return frameOf(0, p.channel, listOf(amqpDisposition, "\x41", uint32Of(0), uint32Of(1<<32-1), "\x41", accepted))
		})},
		{name: "flood: aborted messages", job: consuming().watched(second), heavy: true, want: quiet(0), play: flood(func(p *amqpPeer) string {
			return frameOf(0, p.channel, listOf(amqpTransfer, uint32Of(p.handle), uint32Of(0), binaryOf("t"), uint32Of(0), "\x42", "\x42", null, null, null, "\x41"))
		})},
	}
}

// amqpEnds: how it ends.
func amqpEnds() []testCase {
	end := func(code int, do func(*amqpPeer, *amqpFrame)) func(*wire) { return amqpStart(code, do) }
	silent := onCredit(func(*amqpPeer) {})
	return []testCase{
		{name: "end: nothing is heard for the idle time-out", job: consuming("idle-timeout=200ms"), play: silent, want: runFails("nothing was heard", lost).after(0)},
		{name: "end: heartbeats only", job: consuming("idle-timeout=200ms"), want: quiet(0), play: onCredit(func(p *amqpPeer) {
			go func() {
				for p.say(heartbeat) {
					<-time.After(20 * time.Millisecond)
				}
			}()
		})},
		{name: "end: a second open", job: consuming(), want: runFails("", protocol).after(0), play: onCredit(func(p *amqpPeer) { p.send(amqpOpen, str("x")) })},
		{name: "end: detach is not answered", job: consuming(), play: end(amqpDetach, amqpSay("")), want: works()},
		{name: "end: end is not answered", job: consuming(), play: end(amqpEnd, amqpSay("")), want: works()},
		{name: "end: close is not answered", job: producing(), play: end(amqpClose, amqpSay("")), want: works()},
		{name: "end: end is answered by messages without end", job: consuming(), heavy: true, want: works(), play: end(amqpEnd, func(p *amqpPeer, _ *amqpFrame) { p.endless(p.transferFrame(dataOf("x"))) })},
		{name: "end: close is answered by empty frames without end", job: producing(), heavy: true, play: end(amqpClose, amqpEndless("", heartbeat)), want: works()},
	}
}
