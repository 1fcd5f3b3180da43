//go:build unix

package hostile

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-stomp/stomp/v3/frame"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Classes of failures that several cases want.
const (
	connect  = driver.ClassConnect
	lost     = driver.ClassConnectionLost
	protocol = driver.ClassProtocol
	timeout  = driver.ClassTimeout
	tooLarge = driver.ClassTooLarge
	byBroker = driver.ClassClosedByBroker
)

func stompCases() []testCase {
	return slices.Concat(stompConnect(), stompGreetings(), stompEndlessGreetings(), stompSubscribe(), stompReceipts(), stompErrors(),
		stompMessages(), stompLargeMessages(), stompFloods(), stompEnds())
}

// stompConnect: before anything like STOMP was said.
func stompConnect() []testCase {
	at := func(do func(*stompPeer, *frame.Frame)) func(*wire) { return stompAt(frame.CONNECT, do) }
	return []testCase{
		{name: "connect: silence", job: producing(), play: (*wire).hear, want: openFails("did not answer CONNECT", timeout)},
		{name: "connect: silence, consuming", job: consuming(), play: (*wire).hear, want: openFails("did not answer CONNECT", timeout)},
		{name: "connect: deaf", job: producing(), play: (*wire).deaf, want: openFails("did not answer CONNECT", timeout)},
		{name: "connect: closed at once", job: producing(), play: func(*wire) {}, want: openFails("closed the connection", connect)},
		{name: "connect: reset", job: producing(), play: (*wire).reset, want: openFails("", connect)},
		{name: "connect: closed after CONNECT", job: producing(), play: at(stompEnd("")), want: openFails("closed", connect)},
		{name: "connect: a web server", job: producing(), play: at(stompEnd("HTTP/1.1 400 Bad Request\r\n\r\n")), want: openFails("web server", protocol)},
		{name: "connect: AMQP", job: producing(), play: at(stompEnd("AMQP\x00\x01\x00\x00")), want: openFails("speaks AMQP", protocol)},
		{name: "connect: a TLS alert", job: producing(), play: at(stompEnd("\x15\x03\x03\x00\x02\x02\x28")), want: openFails("encrypted", protocol)},
		{name: "connect: garbage", job: producing(), play: at(stompSay("\xff\xfe\x00\x01garbage")), want: openFails("not a STOMP broker", protocol)},
		{name: "connect: garbage without end", job: producing(), play: at(stompEndless("", "garbage!")), want: openFails("not a STOMP broker", protocol)},
		{
			name: "connect: zeros without end", job: producing(), play: at(stompEndless("", "\x00")),
			want: openFails("not a STOMP broker", protocol), heavy: true,
		},
		{
			name: "connect: line feeds without end", job: producing(), play: at(stompEndless("", "\n")),
			want: openFails("did not answer CONNECT", timeout), heavy: true,
		},
		{
			name: "connect: a C without end", job: producing(), play: at(stompEndless("", "C")),
			want: openFails("", protocol), heavy: true,
		},
		{name: "connect: control characters", job: producing(), play: at(stompEnd("\x1b[2J\x1b[31m\x07")), want: openFails("not a STOMP broker", protocol)},
		{name: "tls: an answer in clear", job: tls(producing()), play: at(stompEnd(stompGreeting)), want: openFails("", driver.ClassTLS, connect)},
		{name: "tls: said before asked", job: tls(producing()), play: sayAndHear(stompGreeting), want: openFails("", driver.ClassTLS)},
		{name: "tls: silence", job: tls(producing()), play: (*wire).hear, want: openFails("TLS handshake", timeout)},
		{name: "tls: closed", job: tls(producing()), play: func(*wire) {}, want: openFails("", connect, driver.ClassTLS)},
		{name: "tls: the longest record, of zeros", job: tls(producing()), play: sayAndHear("\x16\x03\x03\xff\xff" + zeros(70_000)), want: openFails("", driver.ClassTLS)},
		{
			name: "tls: a handshake message without end", job: tls(producing()), play: endlessHandshake,
			want: openFails("", driver.ClassTLS), heavy: true,
		},
		{name: "tls: a truncated record", job: tls(producing()), play: sayAndEnd("\x16\x03\x03\x00\x50abc"), want: openFails("", connect, driver.ClassTLS)},
	}
}

// stompGreetings: frames in place of CONNECTED.
func stompGreetings() []testCase {
	as := func(greeting string) func(*wire) { return stompAs(greeting, "", nil) }
	end := func(text string) func(*wire) { return stompAt(frame.CONNECT, stompEnd(text)) }
	return []testCase{
		{name: "greeting: truncated", job: producing(), play: end("CONNECTED\nversion:1.2\nser"), want: openFails("", connect)},
		{name: "greeting: truncated in the command", job: producing(), play: end("CONN"), want: openFails("", connect, protocol)},
		{name: "greeting: without its NUL", job: producing(), play: end("CONNECTED\nversion:1.2\n\n"), want: openFails("", connect)},
		{name: "greeting: without its NUL, and silence", job: producing(), play: as("CONNECTED\nversion:1.2\n\n"), want: openFails("", timeout)},
		{name: "greeting: byte by byte", job: producing(), play: stompAt(frame.CONNECT, func(p *stompPeer, _ *frame.Frame) { p.slowly(stompGreeting) }), want: works()},
		{name: "greeting: an unknown command", job: producing(), play: as("CONNECTEDX\n\n\x00"), want: openFails("", protocol)},
		{name: "greeting: a wrong command", job: producing(), play: as("RECEIPT\nreceipt-id:c1\n\n\x00"), want: openFails("", protocol)},
		{name: "greeting: a command of clients", job: producing(), play: as("COMMIT\ntransaction:1\n\n\x00"), want: openFails("", protocol)},
		{name: "greeting: a message", job: producing(), play: as("MESSAGE\nsubscription:0\nmessage-id:1\n\nx\x00"), want: openFails("", protocol)},
		{name: "greeting: a header without a colon", job: producing(), play: as("CONNECTED\nversion\n\n\x00"), want: openFails("", protocol)},
		{name: "greeting: a header without a name", job: producing(), play: as("CONNECTED\n:1.2\n\n\x00"), want: openFails("", protocol)},
		{name: "greeting: a version of the future", job: producing(), play: as("CONNECTED\nversion:9.9\n\n\x00"), want: openFails("9.9", protocol)},
		{name: "greeting: a version of 100 KB", job: producing(), play: as("CONNECTED\nversion:" + strings.Repeat("9", 100_000) + "\n\n\x00"), want: openFails("", protocol)},
		{name: "greeting: heart-beats that are none", job: producing(), play: as(greetingWith("heart-beat:x,y")), want: openFails("heart-beat", protocol)},
		{name: "greeting: a negative heart-beat", job: producing(), play: as(greetingWith("heart-beat:-1,-1")), want: openFails("heart-beat", protocol)},
		{name: "greeting: a heart-beat of ages", job: producing(), play: as(greetingWith("heart-beat:99999999999999999999,1")), want: openFails("heart-beat", protocol)},
		{name: "greeting: a heart-beat of 100 KB", job: producing(), play: as(greetingWith("heart-beat:" + strings.Repeat("1", 100_000) + ",1")), want: openFails("heart-beat", protocol)},
		{name: "greeting: heart-beats each millisecond", job: producing("heart-beat=100ms"), play: as(greetingWith("heart-beat:0,1")), want: works()},
		{name: "greeting: a server with control characters", job: producing(), play: as(greetingWith("server:\x1b[2J\x07artemis\x1b[0m")), want: works()},
		{name: "greeting: a server of 100 KB", job: producing(), play: as(greetingWith("server:" + strings.Repeat("s", 100_000))), want: works()},
		{name: "greeting: a body", job: producing(), play: as("CONNECTED\nversion:1.2\ncontent-length:5\n\nhello\x00"), want: works()},
		{name: "greeting: a false content-length", job: producing(), play: as("CONNECTED\nversion:1.2\ncontent-length:3\n\nhello\x00"), want: openFails("", protocol)},
		{name: "greeting: a negative content-length", job: producing(), play: as("CONNECTED\nversion:1.2\ncontent-length:-1\n\n\x00"), want: openFails("", protocol)},
		{name: "greeting: a content-length that is none", job: producing(), play: as("CONNECTED\nversion:1.2\ncontent-length:many\n\n\x00"), want: openFails("", protocol)},
		{name: "greeting: twice", job: producing(), play: as(stompGreeting + stompGreeting), want: runFails("CONNECTED", protocol)},
		{name: "greeting: refused", job: producing(), play: as("ERROR\nmessage:Access refused\n\nno\x00"), want: openFails("Access refused", driver.ClassAuth)},
		{name: "greeting: refused without a reason", job: producing(), play: as("ERROR\n\n\x00"), want: openFails("no reason", connect)},
	}
}

// stompEndlessGreetings: greetings that try to exhaust memory.
func stompEndlessGreetings() []testCase {
	at := func(do func(*stompPeer, *frame.Frame)) func(*wire) { return stompAt(frame.CONNECT, do) }
	var list []testCase
	for _, command := range []string{"CONNECTED", "ERROR"} {
		for _, length := range []string{"2147483647", "2147483648", "4294967295", "9223372036854775807", "99999999999999999999"} {
			list = append(list, testCase{
				name: "greeting: " + command + " with a content-length of " + length, job: producing(), heavy: length == "2147483647",
				play: at(stompEndless(command+"\nmessage:m\ncontent-length:"+length+"\n\n", "x")), want: openFails("", protocol),
			})
		}
		list = append(list,
			testCase{
				name: "greeting: " + command + " with headers without end", job: producing(), heavy: true,
				play: at(stompEndless(command+"\n", "name:value\n")), want: openFails("headers", protocol),
			},
			testCase{
				name: "greeting: " + command + " with a header without end", job: producing(), heavy: true,
				play: at(stompEndless(command+"\nname:", "v")), want: openFails("headers", protocol),
			},
			testCase{
				name: "greeting: " + command + " with a body without end", job: producing(), heavy: true,
				play: at(stompEndless(command+"\nmessage:m\n\n", "words ")), want: openFails("", protocol),
			},
		)
	}
	return append(list,
		testCase{
			name: "greeting: trickled without end", job: producing(), want: openFails("", timeout),
			play: at(func(p *stompPeer, _ *frame.Frame) {
				p.say("CONNECTED\nversion:1.2\n")
				for p.say("n:v\n") {
					<-time.After(time.Millisecond)
				}
			}),
		},
		testCase{
			name: "greeting: an ERROR of 10 MB", job: producing(), want: openFails("broken", connect), heavy: true,
			play: at(stompSay("ERROR\nmessage:broken\n\n" + strings.Repeat("so many words ", 700_000) + "\x00")),
		},
		testCase{
			name: "greeting: an ERROR with a message of 1 MB", job: producing(), want: openFails("", connect, protocol), heavy: true,
			play: at(stompSay("ERROR\nmessage:" + strings.Repeat("so many words ", 70_000) + "\n\n\x00")),
		},
	)
}

// stompSubscribe: answers to SUBSCRIBE.
func stompSubscribe() []testCase {
	at := func(do func(*stompPeer, *frame.Frame)) func(*wire) { return stompAt(frame.SUBSCRIBE, do) }
	return []testCase{
		{name: "subscribe: silence", job: consuming(), play: at(stompSay("")), want: openFails("no answer", timeout)},
		{name: "subscribe: closed", job: consuming(), play: at(stompEnd("")), want: openFails("", lost)},
		{name: "subscribe: a receipt for something else", job: consuming(), play: at(stompSay("RECEIPT\nreceipt-id:c99\n\n\x00")), want: openFails("no answer", timeout)},
		{name: "subscribe: a receipt for nothing", job: consuming(), play: at(stompSay("RECEIPT\n\n\x00")), want: openFails("no answer", timeout)},
		{name: "subscribe: a receipt of garbage", job: consuming(), play: at(stompSay("RECEIPT\nreceipt-id:\xff\x00\n\n\x00")), want: openFails("", timeout, protocol)},
		{name: "subscribe: a receipt with a body", job: consuming(), want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.say("RECEIPT\nreceipt-id:" + f.Header.Get(frame.Receipt) + "\ncontent-length:4\n\nbody\x00")
			p.sub = f.Header.Get(frame.Id)
			p.deliver(p.toSend)
		})},
		{name: "subscribe: twice confirmed", job: consuming(), want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.confirm(f)
			p.behave(f)
		})},
		{name: "subscribe: messages before the receipt", job: consuming(), want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.sub = f.Header.Get(frame.Id)
			p.deliver(p.toSend)
			p.confirm(f)
		})},
		{name: "subscribe: messages without end before the receipt", job: consuming(), heavy: true, play: at(func(p *stompPeer, f *frame.Frame) {
			p.sub = f.Header.Get(frame.Id)
			p.endless("MESSAGE\nsubscription:" + p.sub + "\n\n\x00")
		}), want: openFails("no answer", timeout)},
		{name: "subscribe: refused", job: consuming(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.say("ERROR\nreceipt-id:" + f.Header.Get(frame.Receipt) + "\nmessage:no such destination\n\n\x00")
		}), want: openFails("no such", driver.ClassNotFound)},
		{name: "subscribe: refused with 10 MB", job: consuming(), heavy: true, play: at(func(p *stompPeer, f *frame.Frame) {
			p.say("ERROR\nreceipt-id:" + f.Header.Get(frame.Receipt) + "\nmessage:no such destination\n\n" + strings.Repeat("word\n", 2<<20) + "\x00")
		}), want: openFails("no such", driver.ClassNotFound)},
		{name: "subscribe: refused with control characters", job: consuming(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.say("ERROR\nreceipt-id:" + f.Header.Get(frame.Receipt) + "\nmessage:no such \x1b[2J\\n\\r\x07 thing\n\n\x1b]0;title\x07\x00")
		}), want: openFails("no such", driver.ClassNotFound)},
		{name: "subscribe: an ERROR for all", job: consuming(), play: at(stompSay("ERROR\nmessage:shutdown\n\n\x00")), want: openFails("shutdown", byBroker)},
		{name: "subscribe: a receipt without end", job: consuming(), heavy: true, play: at(stompEndless("RECEIPT\nreceipt-id:", "1")), want: openFails("", protocol)},
		{name: "subscribe: a receipt with a body without end", job: consuming(), heavy: true, play: at(stompEndless("RECEIPT\nreceipt-id:c1\n\n", "1")), want: openFails("", protocol)},
	}
}

// stompReceipts: answers to SEND.
func stompReceipts() []testCase {
	at := func(do func(*stompPeer, *frame.Frame)) func(*wire) { return stompAt(frame.SEND, do) }
	receipt := func(f *frame.Frame) string { return f.Header.Get(frame.Receipt) }
	return []testCase{
		{name: "send: silence", job: producing(), play: at(stompSay("")), want: quiet(0)},
		{name: "send: closed", job: producing(), play: at(stompEnd("")), want: runFails("", lost).after(0)},
		{name: "send: reset", job: producing(), play: at(func(p *stompPeer, _ *frame.Frame) { p.reset() }), want: runFails("", lost).after(0)},
		{name: "send: receipts that nobody asked for", job: producing(), want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			for _, id := range []string{
				"", "x", "s", "s0", "s0.0", "s0.0.0", "s0.0.99", "s0.9.99", "s0.4294967295.1", "s0.18446744073709551615.1", "s1.0.1", "s99999999999.0.1",
				"s0.0.18446744073709551615", "s0.0.9223372036854775809", "s-1.0.1", "t0.1", "t0.0", "t5.1", "c0", "c1", "c18446744073709551615", "s0.0.1.1", "0.0.1",
			} {
				p.receipt(id)
			}
			p.behave(f)
		})},
		{name: "send: only receipts of what was never sent", job: producing(), want: quiet(0), play: at(func(p *stompPeer, _ *frame.Frame) {
			for i := range 1000 {
				p.receipt("s0." + strconv.Itoa(i) + ".1000000")
			}
		})},
		{name: "send: receipts three times", job: producing(), want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.behave(f)
			p.confirm(f)
			p.confirm(f)
		})},
		{name: "send: receipts of all slots for each", job: producing(), want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.peer.confirmed.Add(1)
			for i := range 10 {
				for n := range 10 {
					if id := "s0." + strconv.Itoa(i) + "." + strconv.Itoa(n+1); id != receipt(f) && i != n {
						p.receipt(id)
					}
				}
			}
			p.confirm(f)
		})},
		{name: "send: receipts byte by byte", job: producing(), want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.peer.confirmed.Add(1)
			p.slowly("RECEIPT\nreceipt-id:" + receipt(f) + "\n\n\x00")
		})},
		{name: "send: a receipt-id of 10 MB", job: producing(), heavy: true, want: runFails("headers", protocol), play: at(stompSay("RECEIPT\nreceipt-id:" + strings.Repeat("1", 10_000_000) + "\n\n\x00"))},
		{name: "send: a truncated receipt", job: producing(), want: runFails("", lost), play: at(stompEnd("RECEIPT\nreceipt-id:s0.0"))},
		{name: "send: a receipt with headers without end", job: producing(), heavy: true, want: runFails("headers", protocol), play: at(stompEndless("RECEIPT\nreceipt-id:1\n", "n:v\n"))},
		{name: "send: messages without a subscription", job: producing(), want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.say("MESSAGE\nsubscription:0\nmessage-id:1\n\nx\x00MESSAGE\nsubscription:99999\nmessage-id:1\n\nx\x00MESSAGE\n\nx\x00")
			p.behave(f)
		})},
		{name: "send: a frame of clients", job: producing(), want: runFails("SEND", protocol), play: at(stompSay("SEND\ndestination:x\n\n\x00"))},
		{name: "send: garbage", job: producing(), want: runFails("", protocol), play: at(stompSay("\xde\xad\xbe\xef\xde\xad\xbe\xef\xde\xad\n\n\x00"))},
		{name: "send: receipts without end", job: producing().watched(time.Second), heavy: true, want: quiet(0), play: at(stompEndless("", "RECEIPT\nreceipt-id:s0.0.77\n\n\x00"))},
		{name: "send: line feeds without end", job: producing().watched(time.Second), heavy: true, want: quiet(0), play: at(stompEndless("", "\r\n"))},
		{name: "send: a commit that is never confirmed", job: transacted(producing(), 5), want: quiet(0), play: stompAt(frame.COMMIT, stompSay(""))},
		{name: "send: commits confirmed that were never sent", job: transacted(producing(), 5), want: quiet(0), play: stompAt(frame.COMMIT, stompSay("RECEIPT\nreceipt-id:t0.99\n\n\x00RECEIPT\nreceipt-id:t0.18446744073709551615\n\n\x00"))},
		{name: "send: an ERROR for a commit", job: transacted(producing(), 5), want: runFails("quota", driver.ClassFull).after(0), play: stompAt(frame.COMMIT, func(p *stompPeer, f *frame.Frame) {
			p.say("ERROR\nreceipt-id:" + receipt(f) + "\nmessage:quota\n\n\x00")
		})},
		{name: "send: the broker does not read", job: producing("heart-beat=0").messages(200), want: quiet(0), play: at(func(p *stompPeer, _ *frame.Frame) { p.deaf() })},
	}
}
