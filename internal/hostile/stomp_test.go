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
		{name: "connect: closed at once", job: producing(), play: func(*wire) {}, want: openFails("closed the connection", connect)},
		{name: "connect: closed after CONNECT", job: producing(), play: at(stompEnd("")), want: openFails("closed", connect)},
		{name: "connect: a web server", job: producing(), play: at(stompEnd("HTTP/1.1 400 Bad Request\r\n\r\n")), want: openFails(`it answered "HTTP`, protocol)},
		{name: "connect: AMQP", job: producing(), play: at(stompEnd("AMQP\x00\x01\x00\x00")), want: openFails(`it answered "AMQP`, protocol)},
		{name: "connect: a TLS alert", job: producing(), play: at(stompEnd("\x15\x03\x03\x00\x02\x02\x28")), want: openFails("broker: it answered", protocol)},
		{name: "connect: line feeds without end", job: producing(), play: at(stompEndless("", "\n")), want: openFails("did not answer CONNECT", timeout), heavy: true},
		{name: "connect: a C without end", job: producing(), play: at(stompEndless("", "C")), want: openFails("", protocol), heavy: true},
		{name: "connect: control characters", job: producing(), play: at(stompEnd("\x1b[2J\x1b[31m\x07")), want: openFails("no STOMP broker", protocol)},
		{name: "tls: said before asked", job: tls(producing()), play: sayAndHear(stompGreeting), want: openFails("", driver.ClassTLS)},
		{name: "tls: silence", job: tls(producing()), play: (*wire).hear, want: openFails("TLS handshake", timeout)},
		{name: "tls: a handshake message without end", job: tls(producing()), play: endlessHandshake, want: openFails("", driver.ClassTLS), heavy: true},
	}
}

// stompGreetings: frames in place of CONNECTED.
func stompGreetings() []testCase {
	as := func(greeting string) func(*wire) { return stompAs(greeting, "", nil) }
	end := func(text string) func(*wire) { return stompAt(frame.CONNECT, stompEnd(text)) }
	return []testCase{
		{name: "greeting: truncated", job: producing(), play: end("CONNECTED\nversion:1.2\nser"), want: openFails("", connect)},
		{name: "greeting: byte by byte", job: producing(), play: stompAt(frame.CONNECT, func(p *stompPeer, _ *frame.Frame) { p.slowly(stompGreeting) }), want: works()},
		{name: "greeting: an unknown command", job: producing(), play: as("CONNECTEDX\n\n\x00"), want: openFails("", protocol)},
		{name: "greeting: a command of clients", job: producing(), play: as("COMMIT\ntransaction:1\n\n\x00"), want: openFails("", protocol)},
		{name: "greeting: a header without a colon", job: producing(), play: as("CONNECTED\nversion\n\n\x00"), want: openFails("", protocol)},
		{name: "greeting: a version of the future", job: producing(), play: as("CONNECTED\nversion:9.9\n\n\x00"), want: openFails("9.9", protocol)},
		{name: "greeting: a version of 100 KB", job: producing(), play: as("CONNECTED\nversion:" + strings.Repeat("9", 100_000) + "\n\n\x00"), want: openFails("", protocol)},
		{name: "greeting: a heart-beat of 100 KB", job: producing(), play: as(greetingWith("heart-beat:" + strings.Repeat("1", 100_000) + ",1")), want: openFails("heart-beat", protocol)},
		{name: "greeting: heart-beats each millisecond", job: producing("heart-beat=100ms"), play: as(greetingWith("heart-beat:0,1")), want: works()},
		{name: "greeting: a server with control characters", job: producing(), play: as(greetingWith("server:\x1b[2J\x07artemis\x1b[0m")), want: works()},
		{name: "greeting: a body", job: producing(), play: as("CONNECTED\nversion:1.2\ncontent-length:5\n\nhello\x00"), want: works()},
		{name: "greeting: a content-length that is none", job: producing(), play: as("CONNECTED\nversion:1.2\ncontent-length:many\n\n\x00"), want: openFails("", protocol)},
		{name: "greeting: twice", job: producing(), play: as(stompGreeting + stompGreeting), want: runFails("CONNECTED", protocol)},
		{name: "greeting: refused", job: producing(), play: as("ERROR\nmessage:Access refused\n\nno\x00"), want: openFails("Access refused", driver.ClassAuth)},
	}
}

// stompEndlessGreetings: greetings that try to exhaust memory.
func stompEndlessGreetings() []testCase {
	at := func(do func(*stompPeer, *frame.Frame)) func(*wire) { return stompAt(frame.CONNECT, do) }
	return []testCase{
		{name: "greeting: a content-length of 2^31-1", job: producing(), heavy: true, play: at(stompEndless("CONNECTED\ncontent-length:2147483647\n\n", "x")), want: openFails("", protocol)},
		{name: "greeting: an ERROR with a content-length beyond all", job: producing(), play: at(stompEndless("ERROR\ncontent-length:99999999999999999999\n\n", "x")), want: openFails("", protocol)},
		{name: "greeting: headers without end", job: producing(), heavy: true, play: at(stompEndless("CONNECTED\n", "name:value\n")), want: openFails("headers", protocol)},
		{name: "greeting: a header without end", job: producing(), heavy: true, play: at(stompEndless("CONNECTED\nname:", "v")), want: openFails("headers", protocol)},
		{name: "greeting: a body without end", job: producing(), heavy: true, play: at(stompEndless("CONNECTED\nmessage:m\n\n", "words ")), want: openFails("", protocol)},
		{name: "greeting: an ERROR with a body without end", job: producing(), heavy: true, play: at(stompEndless("ERROR\nmessage:m\n\n", "words ")), want: openFails("", protocol)},
		{name: "greeting: an ERROR of 10 MB", job: producing(), heavy: true, play: at(stompSay("ERROR\nmessage:broken\n\n" + strings.Repeat("so many words ", 700_000) + "\x00")), want: openFails("broken", connect)},
		{name: "greeting: trickled without end", job: producing(), want: openFails("", timeout), play: at(func(p *stompPeer, _ *frame.Frame) {
			for p.say("CONNECTED\nversion:1.2\n"); p.say("n:v\n"); {
				<-time.After(time.Millisecond)
			}
		})},
	}
}

// stompSubscribe: answers to SUBSCRIBE.
func stompSubscribe() []testCase {
	at := func(do func(*stompPeer, *frame.Frame)) func(*wire) { return stompAt(frame.SUBSCRIBE, do) }
	return []testCase{
		{name: "subscribe: silence", job: consuming(), play: at(stompSay("")), want: openFails("no answer", timeout)},
		{name: "subscribe: a receipt for something else", job: consuming(), play: at(stompSay("RECEIPT\nreceipt-id:c99\n\n\x00")), want: openFails("no answer", timeout)},
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
		{name: "subscribe: a receipt without end", job: consuming(), heavy: true, play: at(stompEndless("RECEIPT\nreceipt-id:", "1")), want: openFails("", protocol)},
	}
}

// stompReceipts: answers to SEND.
func stompReceipts() []testCase {
	at := func(do func(*stompPeer, *frame.Frame)) func(*wire) { return stompAt(frame.SEND, do) }
	receipt := func(f *frame.Frame) string { return f.Header.Get(frame.Receipt) }
	return []testCase{
		{name: "send: silence", job: producing(), play: at(stompSay("")), want: quiet(0)},
		{name: "send: closed", job: producing(), play: at(stompEnd("")), want: runFails("", lost).after(0)},
		{name: "send: receipts that nobody asked for", job: producing(), want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			for _, id := range []string{
				"", "x", "s", "s0", "s0.0", "s0.0.0", "s0.0.99", "s0.9.99", "s0.4294967295.1", "s0.18446744073709551615.1", "s1.0.1", "s99999999999.0.1",
				"s0.0.18446744073709551615", "s0.0.9223372036854775809", "s-1.0.1", "t0.1", "t0.0", "t5.1", "c0", "c1", "c18446744073709551615", "s0.0.1.1", "0.0.1",
			} {
				p.receipt(id)
			}
			p.behave(f)
		})},
		{name: "send: receipts three times", job: producing(), want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.behave(f)
			p.confirm(f)
			p.confirm(f)
		})},
		{name: "send: a frame of clients", job: producing(), want: runFails("SEND", protocol), play: at(stompSay("SEND\ndestination:x\n\n\x00"))},
		{name: "send: receipts without end", job: producing().watched(time.Second), heavy: true, want: quiet(0), play: at(stompEndless("", "RECEIPT\nreceipt-id:s0.0.77\n\n\x00"))},
		{name: "send: a commit that is never confirmed", job: transacted(producing(), 5), want: quiet(0), play: stompAt(frame.COMMIT, stompSay(""))},
		{name: "send: commits confirmed that were never sent", job: transacted(producing(), 5), want: quiet(0), play: stompAt(frame.COMMIT, stompSay("RECEIPT\nreceipt-id:t0.99\n\n\x00RECEIPT\nreceipt-id:t0.18446744073709551615\n\n\x00"))},
		{name: "send: an ERROR for a commit", job: transacted(producing(), 5), want: runFails("quota", driver.ClassFull).after(0), play: stompAt(frame.COMMIT, func(p *stompPeer, f *frame.Frame) {
			p.say("ERROR\nreceipt-id:" + receipt(f) + "\nmessage:quota\n\n\x00")
		})},
		{name: "send: the broker does not read", job: producing("heart-beat=0").messages(200), want: quiet(0), play: at(func(p *stompPeer, _ *frame.Frame) { p.deaf() })},
	}
}

// stompErrors: ERROR frames under load.
func stompErrors() []testCase {
	at := func(do func(*stompPeer, *frame.Frame)) func(*wire) { return stompAt(frame.SEND, do) }
	refuse := func(text string) func(*wire) {
		return at(func(p *stompPeer, f *frame.Frame) {
			p.say("ERROR\nreceipt-id:" + f.Header.Get(frame.Receipt) + "\n" + text)
		})
	}
	return []testCase{
		{name: "error: for each message", job: producing(), play: refuse("message:queue is full\n\n\x00"), want: runFails("is full", driver.ClassFull).after(0)},
		{name: "error: control characters", job: producing(), play: refuse("message:is full \x1b[2J\x07\\r\\n\n\n\x1b]0;title\x07\x00"), want: runFails("is full", driver.ClassFull).after(0)},
		{name: "error: for nothing", job: producing(), play: at(stompSay("ERROR\nmessage:shutdown\n\n\x00")), want: runFails("shutdown", byBroker).after(0)},
		{name: "error: truncated", job: producing(), play: at(stompEnd("ERROR\nmessage:shut")), want: runFails("", lost).after(0)},
		{name: "error: with a false content-length", job: producing(), play: at(stompSay("ERROR\ncontent-length:2\n\nshutdown\x00")), want: runFails("", protocol).after(0)},
		{
			name: "error: RabbitMQ on subscriptions of 10^18", job: consuming().messages(11), want: runFails("", protocol, driver.ClassOther, driver.ClassNotFound, byBroker),
			play: stompAs(strings.Replace(stompGreeting, "hostile/1.0", "RabbitMQ/3.10", 1), frame.SUBSCRIBE, stompThen(stompSay(
				"ERROR\nmessage:x\n\nThere is no current subscription with tag 'T_999999999999999999'\x00"))),
		},
	}
}

// stompMessages: frames in place of MESSAGE frames.
func stompMessages() []testCase {
	at := func(do func(*stompPeer, *frame.Frame)) func(*wire) { return stompAt(frame.SUBSCRIBE, do) }
	msg := func(rest string) func(*wire) { return at(stompMessage(rest)) }
	// each lets all messages have these headers and body.
	each := func(headers, body string) func(*wire) {
		return at(func(p *stompPeer, f *frame.Frame) {
			p.confirm(f)
			for range 10 {
				p.message(headers, body)
			}
		})
	}
	return []testCase{
		{name: "message: reset in mid-body", job: consuming(), play: at(func(p *stompPeer, f *frame.Frame) {
			stompMessage("content-length:100\n\nhalf")(p, f)
			p.reset()
		}), want: runFails("", lost).after(0)},
		{name: "message: a content-length that is too short", job: consuming(), play: msg("content-length:2\n\nbody\x00"), want: runFails("NUL", protocol).after(0)},
		{name: "message: two content-lengths", job: consuming(), want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.confirm(f)
			for range 10 {
				p.say(p.head() + "content-length:4\ncontent-length:2147483647\n\nbody\x00")
			}
		})},
		{name: "message: of other subscriptions only", job: consuming(), want: quiet(0), play: at(func(p *stompPeer, f *frame.Frame) {
			p.confirm(f)
			for _, sub := range []string{"1", "99", "-1", "x", "", "4294967296", "9999999999999999999", "18446744073709551616"} {
				p.say("MESSAGE\nsubscription:" + sub + "\nmessage-id:1\n\nx\x00")
			}
		})},
		{name: "message: times beyond all ages", job: consuming(), play: each("time:-9223372036854775809\n", "body"), want: works()},
		{name: "message: IDs of garbage", job: consuming(), play: each("perfmq_id:"+strings.Repeat("9", 5000)+"\n", "body"), want: works()},
		{name: "message: control characters and bad escapes", job: consuming(), play: each("x\x1b[2J:\\t\\x\\\x07\n", "\x00\x1b[2J"), want: works()},
		{name: "message: bodies without a length", job: consuming(), want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.confirm(f)
			for range 10 {
				p.say(p.head() + "\n" + strings.Repeat("x", 200_000) + "\x00")
			}
		})},
	}
}

// stompLargeMessages: MESSAGE frames that try to exhaust memory.
func stompLargeMessages() []testCase {
	at := func(do func(*stompPeer, *frame.Frame)) func(*wire) { return stompAt(frame.SUBSCRIBE, do) }
	var list []testCase
	for _, length := range []string{"2147483647", "2147483648", "99999999999999999999"} {
		list = append(list, testCase{name: "message: a content-length of " + length, job: consuming(), heavy: length == "2147483647", want: runFails(length, tooLarge, protocol).after(0), play: at(func(p *stompPeer, f *frame.Frame) {
			stompMessage("content-length:"+length+"\n\n")(p, f)
			p.endless("body")
		})})
	}
	large := func(p *stompPeer, n, size int) {
		for range n {
			p.say(p.head() + "content-length:" + strconv.Itoa(size) + "\n\n")
			p.much(strings.Repeat("x", 1<<20), size)
			p.say("\x00")
		}
	}
	const most = driver.DefaultMaxBody
	return append(list,
		testCase{name: "message: a body of one byte too many", job: consuming(), want: runFails("16777217 bytes.*16777216", tooLarge).after(0), play: at(func(p *stompPeer, f *frame.Frame) {
			p.confirm(f)
			large(p, 1, most+1)
		})},
		testCase{name: "message: the largest bodies", job: consuming().messages(8), heavy: true, want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.confirm(f)
			large(p, 8, most)
		})},
		testCase{name: "message: the largest bodies for a shared connection", job: shared(consuming().messages(8)), heavy: true, want: works(), play: at(func(p *stompPeer, f *frame.Frame) {
			p.confirm(f)
			if p.sub == "1" {
				p.sub = "0"
				large(p, 8, most)
			}
		})},
		testCase{name: "message: a body without end", job: consuming(), heavy: true, want: runFails("", tooLarge).after(0), play: at(func(p *stompPeer, f *frame.Frame) {
			stompMessage("\n")(p, f)
			p.endless("body")
		})},
		testCase{name: "message: a content-length, and silence", job: consuming(), heavy: true, want: quiet(0), play: at(stompMessage("content-length:16777216\n\n"))},
	)
}

// stompFloods: frames that are each correct, in excess.
func stompFloods() []testCase {
	at := func(do func(*stompPeer, *frame.Frame)) func(*wire) { return stompAt(frame.SUBSCRIBE, do) }
	counted := func(frames string, deaf bool) func(*wire) {
		n := int64(strings.Count(frames, "MESSAGE"))
		return stompAs(greetingWith("server:RabbitMQ/4.0.5"), frame.SUBSCRIBE, func(p *stompPeer, f *frame.Frame) {
			p.confirm(f)
			if !deaf {
				go p.hear()
			}
			for p.peer.delivered.Add(n); p.say(frames); {
				p.peer.delivered.Add(n)
			}
		})
	}
	small := strings.Repeat("MESSAGE\nsubscription:0\nack:1\n\n\x00", 1000)
	long := strings.Repeat("MESSAGE\nsubscription:0\nack:"+strings.Repeat("1", 1000)+"\n\n\x00", 50)
	return []testCase{
		{name: "flood: messages beyond all credit", job: consuming().messages(60_000), heavy: true, want: works(), play: counted(small, false)},
		{name: "flood: messages of a broker that reads no acknowledgements", job: consuming("heart-beat=0").messages(1 << 30), heavy: true, want: runFails("does not read", lost), play: counted(long, true)},
		{name: "flood: empty messages for a consumer that does not run", job: shared(consuming()).messages(1), heavy: true, want: openFails("no answer", timeout), play: at(func(p *stompPeer, f *frame.Frame) {
			if f.Header.Get(frame.Id) == "1" {
				p.endless("MESSAGE\nsubscription:0\n\n\x00")
			}
			p.confirm(f)
		})},
	}
}

// stompEnds: heart-beats, and how it ends.
func stompEnds() []testCase {
	beating := strings.Replace(stompGreeting, "heart-beat:0,0", "heart-beat:100,100", 1)
	silent := stompAs(beating, frame.SUBSCRIBE, func(p *stompPeer, f *frame.Frame) { p.confirm(f) })
	return []testCase{
		{name: "end: no heart-beats", job: consuming("heart-beat=100ms"), play: silent, want: runFails("nothing was heard", lost).after(0)},
		{name: "end: no heart-beats for a producer", job: producing("heart-beat=100ms"), play: stompAs(beating, frame.SEND, stompSay("")), want: runFails("nothing was heard", lost).after(0)},
		{name: "end: heart-beats only", job: consuming("heart-beat=100ms"), want: quiet(0), play: stompAs(beating, frame.SUBSCRIBE, func(p *stompPeer, f *frame.Frame) {
			p.confirm(f)
			go func() {
				for p.say("\n") {
					<-time.After(10 * time.Millisecond)
				}
			}()
		})},
		{name: "end: heart-beats within a frame", job: consuming("heart-beat=100ms"), want: runFails("nothing was heard", lost).after(0), play: stompAs(beating, frame.SUBSCRIBE, func(p *stompPeer, f *frame.Frame) {
			stompMessage("content-length:50\n\nhalf")(p, f)
		})},
		{name: "end: DISCONNECT is not answered", job: producing(), play: stompAt(frame.DISCONNECT, stompSay("")), want: works()},
		{name: "end: DISCONNECT is answered by an ERROR without end", job: producing(), heavy: true, play: stompAt(frame.DISCONNECT, stompEndless("ERROR\n\n", "x")), want: works()},
		{name: "end: UNSUBSCRIBE is answered by messages without end", job: consuming(), heavy: true, want: works(), play: stompAt(frame.UNSUBSCRIBE, func(p *stompPeer, f *frame.Frame) {
			p.endless("MESSAGE\nsubscription:0\nack:a\n\nbody\x00")
		})},
		{name: "end: the acknowledgement is answered by an ERROR", job: consuming().messages(11), play: stompAt(frame.ACK, stompEnd("ERROR\nmessage:no such message\n\n\x00")), want: runFails("no such", driver.ClassNotFound).after(10)},
	}
}
