//go:build unix

package hostile

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-stomp/stomp/v3/frame"

	"github.com/perfmq/perfmq/pkg/driver"
)

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
