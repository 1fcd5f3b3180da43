//go:build unix

package hostile

import (
	"slices"
	"strconv"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

func amqpCases() []testCase {
	return slices.Concat(amqpConnect(), amqpSASL(), amqpOpens(), amqpFraming(), amqpSessions(), amqpLinks(), amqpCredit(),
		amqpDispositions(), amqpTransfers(), amqpLargeTransfers(), amqpFloods(), amqpEnds())
}

// amqpSay is a case's act: to say something, and nothing more.
func amqpSay(text string) func(*amqpPeer, *amqpFrame) {
	return func(p *amqpPeer, _ *amqpFrame) { p.say(text) }
}

// amqpHangUp is amqpSay, and the end of the connection.
func amqpHangUp(text string) func(*amqpPeer, *amqpFrame) {
	return func(p *amqpPeer, _ *amqpFrame) {
		p.say(text)
		_ = p.Close()
	}
}

// amqpEndless says something once, and then repeats something else without end.
func amqpEndless(head, chunk string) func(*amqpPeer, *amqpFrame) {
	return func(p *amqpPeer, _ *amqpFrame) {
		p.say(head)
		p.endless(chunk)
	}
}

// amqpSend answers by a performative.
func amqpSend(code byte, fields ...string) func(*amqpPeer, *amqpFrame) {
	return func(p *amqpPeer, _ *amqpFrame) { p.send(code, fields...) }
}

const heartbeat = "\x00\x00\x00\x08\x02\x00\x00\x00"

// amqpConnect: before anything like AMQP 1.0 was said.
func amqpConnect() []testCase {
	at := func(do func(*amqpPeer, *amqpFrame)) func(*wire) { return amqpStart(saslHeader, do) }
	return []testCase{
		{name: "connect: silence", job: producing(), play: (*wire).hear, want: openFails("did not answer", timeout)},
		{name: "connect: deaf", job: producing(), play: (*wire).deaf, want: openFails("did not answer", timeout)},
		{name: "connect: closed at once", job: producing(), play: func(*wire) {}, want: openFails("closed", connect)},
		{name: "connect: a web server", job: producing(), play: at(amqpHangUp("HTTP/1.1 400 Bad Request\r\n\r\n")), want: openFails(`it answered "HTTP`, protocol)},
		{name: "connect: AMQP 0-9-1", job: producing(), play: at(amqpHangUp("AMQP\x00\x00\x09\x01")), want: openFails("older AMQP", connect)},
		{name: "connect: a TLS alert", job: producing(), play: at(amqpHangUp("\x15\x03\x03\x00\x02\x02\x28")), want: openFails("broker: it answered", protocol)},
		{name: "connect: STOMP", job: producing(), play: at(amqpHangUp("ERROR\n\n\x00")), want: openFails("no AMQP broker", protocol)},
		{name: "connect: zeros without end", job: producing(), heavy: true, play: at(amqpEndless("", "\x00")), want: openFails("no AMQP broker", protocol)},
		{name: "connect: a header without end", job: producing(), heavy: true, play: at(amqpEndless("", headerSASL)), want: openFails("", protocol)},
		{name: "connect: another protocol's number", job: producing(), play: at(amqpSay("AMQP\x02\x01\x00\x00")), want: openFails("", driver.ClassAuth)},
		{name: "tls: an answer in clear", job: tls(producing()), play: sayAndHear(headerSASL), want: openFails("", driver.ClassTLS)},
		{name: "tls: silence", job: tls(producing()), play: (*wire).hear, want: openFails("", timeout)},
		{name: "tls: a handshake message without end", job: tls(producing()), heavy: true, play: endlessHandshake, want: openFails("", driver.ClassTLS)},
	}
}

// amqpSASL: in place of mechanisms and outcome.
func amqpSASL() []testCase {
	mechanisms := func(frame string) func(*wire) { return amqpStart(saslHeader, amqpSay(headerSASL+frame)) }
	outcome := func(do func(*amqpPeer, *amqpFrame)) func(*wire) { return amqpStart(saslInit, do) }
	sasl := func(body string) string { return frameOf(typeSASL, 0, body) }
	return []testCase{
		{name: "sasl: unknown mechanisms", job: producing(), play: mechanisms(sasl(listOf(saslMechanisms, symbols("GSSAPI", "\x1b[2J")))), want: openFails("GSSAPI", driver.ClassAuth)},
		{name: "sasl: 2^32-1 mechanisms", job: producing(), play: mechanisms(sasl(listOf(saslMechanisms, counted(0xf0, 1<<32-1, "\xb3\x00\x00\x00\x01A")))), want: openFails("", protocol)},
		{name: "sasl: 2^32-1 mechanisms of nothing", job: producing(), heavy: true, play: mechanisms(sasl(listOf(saslMechanisms, counted(0xf0, 1<<32-1, "\x45")))), want: openFails("", protocol)},
		{name: "sasl: a mechanism of 2^31 bytes", job: producing(), play: mechanisms(sasl(listOf(saslMechanisms, sized(0xb3, 1<<31, "A")))), want: openFails("", protocol)},
		{name: "sasl: mechanisms nested 1000 deep", job: producing(), play: mechanisms(sasl(listOf(saslMechanisms, nested(1000)))), want: openFails("", protocol)},
		{name: "sasl: empty frames without end", job: producing(), heavy: true, play: amqpStart(saslHeader, amqpEndless(headerSASL, frameHead(8, 2, typeSASL, 0))), want: openFails("", timeout)},
		{name: "sasl: silence for the outcome", job: producing(), play: outcome(amqpSay("")), want: openFails("", timeout)},
		{name: "sasl: closed instead of an outcome", job: producing(), play: outcome(amqpHangUp("")), want: openFails("", lost)},
		{name: "sasl: refused", job: producing(), play: outcome(amqpSay(sasl(listOf(saslOutcome, "\x50\x01")))), want: openFails("login", driver.ClassAuth)},
		{name: "sasl: an unknown outcome", job: producing(), play: outcome(amqpSay(sasl(listOf(saslOutcome, "\x50\xff")))), want: openFails("", driver.ClassAuth)},
		{name: "sasl: an outcome without a code", job: producing(), play: outcome(amqpSay(sasl(listOf(saslOutcome)))), want: openFails("", protocol)},
		{name: "sasl: a challenge", job: producing(), play: outcome(amqpSay(sasl(listOf(saslChallenge, binaryOf("who?"))))), want: openFails("", protocol)},
		{name: "sasl: the mechanisms again", job: producing(), play: outcome(amqpSay(sasl(listOf(saslMechanisms, symbols("ANONYMOUS"))))), want: openFails("", protocol)},
	}
}

// amqpOpens: answers to open.
func amqpOpens() []testCase {
	at := func(do func(*amqpPeer, *amqpFrame)) func(*wire) { return amqpStart(amqpOpen, do) }
	open := func(fields ...string) func(*wire) { return at(amqpSend(amqpOpen, fields...)) }
	return []testCase{
		{name: "open: garbage for a header", job: producing(), play: amqpStart(amqpHeader, amqpSay("\xff\xff\xff\xff\xff\xff\xff\xff")), want: openFails("", protocol)},
		{name: "open: silence", job: producing(), play: at(amqpSay("")), want: openFails("", timeout)},
		{name: "open: trickled without end", job: producing(), want: openFails("", timeout), play: at(func(p *amqpPeer, _ *amqpFrame) {
			for p.say(frameHead(60_000, 2, 0, 0)); p.say("x"); {
				<-time.After(time.Millisecond)
			}
		})},
		{name: "open: a number for a name", job: producing(), play: open(uint32Of(7)), want: openFails("", protocol)},
		{name: "open: frames of at most 511 bytes", job: producing(), play: open(str("x"), null, uint32Of(511)), want: openFails("", protocol)},
		{name: "open: frames of at most 0 bytes", job: producing(), play: open(str("x"), null, uint32Of(0)), want: openFails("", protocol)},
		{name: "open: an idle time-out of 1 ms", job: producing(), play: open(str("x"), null, null, null, uint32Of(1)), want: works()},
		{name: "open: a name of 2^32-1 bytes", job: producing(), play: open(sized(0xb1, 1<<32-1, "x")), want: openFails("", protocol)},
		{name: "open: a list longer than its frame", job: producing(), play: at(amqpSay(frameOf(0, 0, "\x00\x53\x10"+sized(0xd0, 1<<31-1, "\x00\x00\x00\x01"+str("x"))))), want: openFails("", protocol)},
		{name: "open: properties of an odd number of values", job: producing(), play: open(str("x"), null, null, null, null, null, null, null, null, counted(0xd1, 3, symbol("a")+null+symbol("b"))), want: openFails("", protocol)},
		{name: "open: an array of 2^32-1 nothings in the properties", job: producing(), heavy: true, play: open(str("x"), null, null, null, null, null, null, null, null, counted(0xd1, 2, symbol("product")+counted(0xf0, 1<<32-1, "\x45"))), want: works()},
		{name: "open: properties nested 6000 deep", job: producing(), heavy: true, play: open(str("x"), null, null, null, null, null, null, null, null, counted(0xd1, 2, symbol("product")+nested(6000))), want: works()},
		{name: "open: a transfer instead", job: producing(), play: at(amqpSend(amqpTransfer, uint32Of(0))), want: openFails("", protocol)},
		{name: "open: refused", job: producing(), play: at(amqpSend(amqpClose, errorOf("amqp:unauthorized-access", "no\x1b[2J"))), want: openFails("no", driver.ClassAuth)},
		{name: "open: closed without a reason", job: producing(), play: at(amqpSend(amqpClose)), want: openFails("", connect)},
	}
}

// amqpFraming: frames with false lengths, in place of the answer to open.
func amqpFraming() []testCase {
	at := func(do func(*amqpPeer, *amqpFrame)) func(*wire) { return amqpStart(amqpOpen, do) }
	var list []testCase
	for _, size := range []uint32{0, 7, amqpMaxFrame + 1, 1<<31 - 1, 1<<32 - 1} {
		list = append(list, testCase{
			name: "frame: of " + strconv.FormatUint(uint64(size), 10) + " bytes", job: producing(), heavy: size == 1<<31-1, want: openFails("bytes", protocol),
			play: at(amqpEndless(frameHead(size, 2, 0, 0), "\x00")),
		})
	}
	return append(list,
		testCase{name: "frame: a data offset of 1", job: producing(), play: at(amqpSay(frameHead(30, 1, 0, 0) + zeros(22))), want: openFails("", protocol)},
		testCase{name: "frame: a data offset beyond its end", job: producing(), play: at(amqpSay(frameHead(30, 200, 0, 0) + zeros(22))), want: openFails("", protocol)},
		testCase{name: "frame: an extended header", job: producing(), want: works(), play: at(func(p *amqpPeer, _ *amqpFrame) {
			body := listOf(amqpOpen, str("x"))
			p.say(frameHead(uint32(12+len(body)), 3, 0, 0) + "ext!" + body)
		})},
		testCase{name: "frame: of SASL", job: producing(), play: at(amqpSay(frameOf(typeSASL, 0, listOf(amqpOpen, str("x"))))), want: openFails("", protocol)},
		testCase{name: "frame: a descriptor without a value", job: producing(), play: at(amqpSay(frameOf(0, 0, "\x00\x53\x10"))), want: openFails("", protocol)},
		testCase{name: "frame: a descriptor without an end", job: producing(), play: at(amqpSay(frameOf(0, 0, zeros(60_000)))), want: openFails("", protocol)},
		testCase{name: "frame: empty ones without end", job: producing(), heavy: true, play: at(amqpEndless("", heartbeat)), want: openFails("", timeout)},
	)
}

// amqpSessions: answers to begin.
func amqpSessions() []testCase {
	at := func(do func(*amqpPeer, *amqpFrame)) func(*wire) { return amqpStart(amqpBegin, do) }
	begin := func(fields ...string) func(*wire) {
		return at(func(p *amqpPeer, f *amqpFrame) {
			p.send(amqpBegin, append([]string{uint16Of(f.channel)}, fields...)...)
		})
	}
	zero, some := uint32Of(0), uint32Of(5000)
	return []testCase{
		{name: "begin: closed", job: producing(), play: at(amqpHangUp("")), want: openFails("", lost)},
		{name: "begin: for another channel", job: producing(), play: at(amqpSend(amqpBegin, uint16Of(999), zero, some, some)), want: openFails("", protocol)},
		{name: "begin: on channel 65535, which we did not allow", job: producing(), want: openFails("channel 65535", protocol), play: amqpBeginElsewhere(65535)},
		{name: "begin: on channel 300, consuming", job: consuming(), want: works(), play: amqpBeginElsewhere(300)},
		{name: "begin: windows that are texts", job: producing(), play: begin(str("a"), str("b"), str("c")), want: openFails("", protocol)},
		{name: "begin: a window of 0", job: producing(), want: works(), play: begin(zero, zero, some)}, // a flow opens it
		{name: "begin: handles up to 0", job: producing(), play: begin(zero, some, some, zero), want: works()},
		{name: "begin: twice", job: producing(), want: fails("", protocol), play: at(func(p *amqpPeer, f *amqpFrame) {
			p.begin(f)
			p.begin(f)
		})},
		{name: "begin: a close instead", job: producing(), play: at(amqpSend(amqpClose, errorOf("amqp:connection:forced", "go away"))), want: openFails("go away", connect)},
	}
}

// amqpBeginElsewhere lets the broker use another channel than the driver does.
func amqpBeginElsewhere(channel uint16) func(*wire) {
	return func(w *wire) {
		var theirs uint16
		p := &amqpPeer{wire: w, toSend: 10, sent: map[uint32]bool{}}
		for {
			f, err := p.next()
			if err != nil {
				return
			}
			switch {
			case f.code == amqpBegin:
				theirs = f.channel
				p.channel = channel
				f.channel = theirs
				p.begin(f)
				continue
			case f.code < saslHeader && f.code > amqpBegin && f.code < amqpClose:
				p.channel = channel
			default:
				p.channel = f.channel
			}
			p.behave(f)
		}
	}
}
