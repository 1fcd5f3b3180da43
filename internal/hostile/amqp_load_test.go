//go:build unix

package hostile

import (
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// amqpLinks: answers to attach.
func amqpLinks() []testCase {
	at := func(do func(*amqpPeer, *amqpFrame)) func(*wire) { return amqpStart(amqpAttach, do) }
	zero := uint32Of(0)
	// as is the attach of a correct broker with one field replaced.
	as := func(field int, value string) func(*wire) {
		return at(func(p *amqpPeer, f *amqpFrame) {
			p.handle = uintIn(f.fields[1])
			fields := []string{f.fields[0], f.fields[1], boolOf(!p.receives(f)), f.fields[3], f.fields[4], f.fields[5], f.fields[6], null, null, zero, null, null, null, null}
			fields[field] = value
			p.send(amqpAttach, fields...)
			p.grant(100)
		})
	}
	refused := func(err ...string) func(*wire) {
		return at(func(p *amqpPeer, f *amqpFrame) {
			p.attachAs(f, null, null, null)
			p.send(amqpDetach, append([]string{f.fields[1], "\x41"}, err...)...)
		})
	}
	return []testCase{
		{name: "attach: silence", job: producing(), play: at(amqpSay("")), want: openFails("", timeout)},
		{name: "attach: refused", job: producing(), play: refused(errorOf("amqp:not-found", "there is no such thing")), want: openFails("no such thing", driver.ClassNotFound)},
		{name: "attach: refused with a condition of 60 KB", job: producing(), play: refused(errorOf(strings.Repeat("condition:", 6000), "")), want: openFails("condition", driver.ClassOther)},
		{name: "attach: refused without a reason", job: producing(), play: refused(), want: openFails("", byBroker)},
		{name: "attach: refused with an error that is none", job: producing(), play: refused(uint32Of(5)), want: openFails("", protocol)},
		{name: "attach: another link's name", job: producing(), play: as(0, str("somebody else")), want: openFails("", protocol)},
		{name: "attach: no name", job: producing(), play: as(0, null), want: openFails("", protocol)},
		{name: "attach: the same role", job: producing(), play: as(2, "\x42"), want: openFails("", protocol)},
		{name: "attach: handle 2^32-1", job: producing(), play: as(1, uint32Of(1<<32-1)), want: fails("", protocol)},
		{name: "attach: a settle mode of 77", job: producing(), play: as(3, "\x50\x4d"), want: openFails("", driver.ClassUnsupported)},
		{name: "attach: a source that is a number", job: consuming(), play: as(5, uint32Of(5)), want: openFails("", protocol)},
		{name: "attach: a source that is described by itself", job: consuming(), play: as(5, "\x00\x53\x28\x00\x53\x28\x45"), want: openFails("", protocol)},
		{name: "attach: a filter nested 6000 deep", job: consuming(), heavy: true, play: as(5, listOf(0x28, str("q"), null, null, null, null, null, null, counted(0xd1, 2, symbol("f")+nested(6000)))), want: works()},
		{name: "attach: a largest message of 1 byte", job: producing(), play: as(10, uint64Of(1)), want: runFails("", tooLarge).after(0)},
		{name: "attach: a largest message of 2^64-1 bytes", job: producing(), play: as(10, uint64Of(1<<64-1)), want: works()},
		{name: "attach: twice", job: producing(), want: fails("", protocol), play: at(func(p *amqpPeer, f *amqpFrame) {
			p.attach(f)
			p.attach(f)
		})},
		{name: "attach: links that nobody asked for", job: producing(), heavy: true, want: fails("", protocol), play: at(func(p *amqpPeer, f *amqpFrame) {
			p.endless(frameOf(0, p.channel, listOf(amqpAttach, str("x"), uint32Of(77), "\x41", null, null, null, null, null, null, zero)))
		})},
		{name: "attach: an end of the session", job: producing(), play: at(amqpSend(amqpEnd, errorOf("amqp:internal-error", "oh"))), want: openFails("oh", driver.ClassOther)},
		{name: "attach: a close of the connection", job: consuming(), play: at(amqpSend(amqpClose, errorOf("amqp:connection:forced", "go"))), want: openFails("go", lost)},
		{name: "attach: a transfer instead", job: consuming(), play: at(amqpSend(amqpTransfer, uint32Of(55), zero, binaryOf("t"), zero)), want: openFails("", protocol)},
		{name: "attach: garbage", job: consuming(), play: at(amqpSay(frameOf(0, 0, "\xff\xff\xff\xff"))), want: openFails("", protocol)},
	}
}

// amqpCredit: flows for a producer, after its attach.
func amqpCredit() []testCase {
	at := func(do func(*amqpPeer)) func(*wire) {
		return amqpStart(amqpAttach, func(p *amqpPeer, f *amqpFrame) {
			p.attach(f)
			do(p)
		})
	}
	// after lets the broker accept n of the messages that it has given credit for, and then do something.
	after := func(n int, do func(*amqpPeer)) func(*wire) {
		seen := 0
		return amqpStart(amqpTransfer, func(p *amqpPeer, f *amqpFrame) {
			if seen++; seen <= n {
				p.settle(f)
			}
			if seen == n {
				do(p)
			}
		})
	}
	return []testCase{
		{name: "credit: none", job: producing(), play: at(func(*amqpPeer) {}), want: quiet(0)},
		{name: "credit: 2^32-1", job: producing(), play: at(func(p *amqpPeer) { p.flow(0, 1<<32-1) }), want: works()},
		{name: "credit: one at a time", job: producing(), want: works(), play: func(w *wire) {
			n := uint32(0)
			amqpStart(amqpTransfer, func(p *amqpPeer, f *amqpFrame) {
				p.settle(f)
				n++
				p.flow(n, 1)
			})(w)
		}},
		{name: "credit: of a count that we have not reached", job: producing(), play: at(func(p *amqpPeer) { p.flow(1000, 5) }), want: want{quiet: true, some: -1}},
		{name: "credit: withdrawn while messages are under way", job: producing().messages(50), want: quiet(5), play: amqpWithdraw(5)},
		{name: "credit: to be drained", job: producing(), want: quiet(0), play: at(func(p *amqpPeer) { p.flow(0, 0, null, "\x41") })},
		{name: "credit: for a link that is not there", job: producing(), want: runFails("", protocol).after(0), play: at(func(p *amqpPeer) {
			p.handle = 77
			p.grant(10)
		})},
		{name: "credit: a session window of 0", job: producing(), want: quiet(0), play: at(func(p *amqpPeer) {
			p.send(amqpFlow, uint32Of(0), uint32Of(0), uint32Of(0), uint32Of(5000), uint32Of(p.handle), uint32Of(0), uint32Of(10))
		})},
		{name: "credit: a flow of texts", job: producing(), want: runFails("", protocol).after(0), play: at(func(p *amqpPeer) {
			p.send(amqpFlow, str("a"), str("b"), str("c"), str("d"))
		})},
		{name: "credit: echoes without end", job: producing().watched(time.Second), heavy: true, want: want{quiet: true, some: -1}, play: at(func(p *amqpPeer) {
			go p.endless(frameOf(0, p.channel, listOf(amqpFlow, uint32Of(0), uint32Of(5000), uint32Of(0), uint32Of(5000), uint32Of(p.handle), uint32Of(0), uint32Of(0), null, null, "\x41")))
		})},
		{name: "credit: echoes without end, of a broker that does not read", job: producing(), heavy: true, want: runFails("", lost), play: at(func(p *amqpPeer) {
			p.endless(frameOf(0, p.channel, listOf(amqpFlow, uint32Of(0), uint32Of(5000), uint32Of(0), uint32Of(5000), uint32Of(p.handle), uint32Of(0), uint32Of(0), null, null, "\x41")))
		})},
		{name: "credit: the link is detached", job: producing(), want: runFails("gone", driver.ClassNotFound).after(5), play: after(5, func(p *amqpPeer) {
			p.send(amqpDetach, uint32Of(p.handle), "\x41", errorOf("amqp:resource-deleted", "gone"))
		})},
		{name: "credit: the link is detached without a reason", job: producing(), want: runFails("", byBroker).after(5), play: after(5, func(p *amqpPeer) {
			p.send(amqpDetach, uint32Of(p.handle), "\x41")
		})},
	}
}

// amqpWithdraw gives credit, accepts the first n messages, and then at once takes back the rest of the credit.
func amqpWithdraw(n uint32) func(*wire) {
	return func(w *wire) {
		seen := uint32(0)
		amqpStart(amqpTransfer, func(p *amqpPeer, f *amqpFrame) {
			if seen++; seen > n {
				return
			}
			p.settle(f)
			if seen == n { // the delivery-count is that of the messages seen, and no credit is left
				p.flow(n, 0)
			}
		})(w)
	}
}

// amqpDispositions: answers to transfers.
func amqpDispositions() []testCase {
	at := func(do func(*amqpPeer, *amqpFrame)) func(*wire) { return amqpStart(amqpTransfer, do) }
	each := func(state string) func(*wire) {
		return at(func(p *amqpPeer, f *amqpFrame) { p.dispose(uintIn(f.fields[1]), uintIn(f.fields[1]), state) })
	}
	// all waits for all ten messages; do then confirms them.
	all := func(do func(*amqpPeer)) func(*wire) {
		return at(func(p *amqpPeer, _ *amqpFrame) {
			if p.nextID++; p.nextID == 10 {
				p.peer.confirmed.Add(10)
				do(p)
			}
		})
	}
	return []testCase{
		{name: "disposition: none", job: producing(), play: at(amqpSay("")), want: quiet(0)},
		{name: "disposition: reset", job: producing(), play: at(func(p *amqpPeer, _ *amqpFrame) { p.reset() }), want: runFails("", lost).after(0)},
		{name: "disposition: of 0 to 2^32-1, again and again", job: producing(), heavy: true, want: works(), play: all(func(p *amqpPeer) {
			for range 1000 {
				p.dispose(0, 1<<32-1, accepted)
			}
		})},
		{name: "disposition: of a range around zero", job: producing(), want: works(), play: all(func(p *amqpPeer) { p.dispose(1<<32-10, 9, accepted) })},
		{name: "disposition: of a range that ends before it begins", job: producing(), want: quiet(0), play: at(func(p *amqpPeer, _ *amqpFrame) { p.dispose(1<<31, 1<<31-10, accepted) })},
		{name: "disposition: without an end of its range", job: producing(), want: works(), play: at(func(p *amqpPeer, f *amqpFrame) {
			p.peer.confirmed.Add(1)
			p.send(amqpDisposition, "\x41", f.fields[1], null, "\x41", accepted)
		})},
		{name: "disposition: of texts", job: producing(), want: runFails("", protocol).after(0), play: at(amqpSend(amqpDisposition, str("x"), str("y")))},
		{name: "disposition: of what was never sent", job: producing(), want: quiet(0), play: at(func(p *amqpPeer, _ *amqpFrame) { p.dispose(1000, 2000, accepted) })},
		{name: "disposition: each three times", job: producing(), want: works(), play: at(func(p *amqpPeer, f *amqpFrame) {
			p.settle(f)
			for range 2 {
				p.dispose(uintIn(f.fields[1]), uintIn(f.fields[1]), accepted)
			}
		})},
		{name: "disposition: of a sender", job: producing(), want: quiet(0), play: at(func(p *amqpPeer, f *amqpFrame) {
			p.send(amqpDisposition, "\x42", f.fields[1], f.fields[1], "\x41", accepted)
		})},
		{name: "disposition: not settled", job: producing(), want: want{quiet: true, some: -1}, play: at(func(p *amqpPeer, f *amqpFrame) {
			p.peer.confirmed.Add(1)
			p.send(amqpDisposition, "\x41", f.fields[1], f.fields[1], "\x42", accepted)
		})},
		{name: "disposition: settled without a state", job: producing(), want: runFails("", protocol).after(0), play: each(null)},
		{name: "disposition: an unknown state", job: producing(), want: runFails("", protocol).after(0), play: each(listOf(0x7f))},
		{name: "disposition: a state nested 6000 deep", job: producing(), heavy: true, want: runFails("", protocol).after(0), play: each(listOf(0x25, nested(6000)))},
		{name: "disposition: a state of 2^32-1 fields", job: producing(), heavy: true, want: runFails("", protocol).after(0), play: each("\x00\x53\x25" + counted(0xd0, 1<<32-1, null))},
		{name: "disposition: received", job: producing(), want: quiet(0), play: at(func(p *amqpPeer, f *amqpFrame) {
			p.send(amqpDisposition, "\x41", f.fields[1], f.fields[1], "\x42", listOf(0x23, uint32Of(0), uint64Of(1<<63)))
		})},
		{name: "disposition: rejected with 60 KB of words", job: producing(), want: runFails("full", driver.ClassFull).after(0), play: each(listOf(0x25, errorOf("amqp:resource-limit-exceeded", strings.Repeat("full of words ", 4300))))},
		{name: "disposition: rejected with a description of 2^31 bytes", job: producing(), want: runFails("", protocol).after(0), play: each(listOf(0x25, listOf(0x1d, symbol("a:b"), sized(0xb1, 1<<31, "x"))))},
		{name: "disposition: released", job: producing(), want: want{run: []driver.Class{driver.ClassOther}, some: 0}, play: each(listOf(0x26))},
		{name: "disposition: modified with annotations nested 6000 deep", job: producing(), heavy: true, want: want{run: []driver.Class{driver.ClassOther}, some: 0}, play: each(listOf(0x27, "\x41", "\x41", counted(0xd1, 2, symbol("a")+nested(6000))))},
		{name: "disposition: an unknown performative instead", job: producing(), want: runFails("", protocol).after(0), play: at(amqpSend(0x7e, null))},
		{name: "disposition: the session ends", job: producing(), want: runFails("", driver.ClassClosedByBroker).after(0), play: at(amqpSend(amqpEnd, errorOf("amqp:session:window-violation", "w")))},
		{name: "disposition: the connection is closed", job: producing(), want: runFails("shutdown", lost).after(0), play: at(amqpSend(amqpClose, errorOf("amqp:connection:forced", "shutdown")))},
		{name: "disposition: the broker does not read", job: producing("idle-timeout=0").messages(200), want: quiet(0), play: at(func(p *amqpPeer, _ *amqpFrame) { p.deaf() })},
	}
}
