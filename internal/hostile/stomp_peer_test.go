//go:build unix

package hostile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-stomp/stomp/v3/frame"
)

// stompPeer is a connection to a STOMP broker that behaves, except for its reaction to one command.
type stompPeer struct {
	*wire
	frames   *frame.Reader
	greeting string // CONNECTED
	toSend   int    // messages for each subscription
	sub      string // the last subscription
	nextID   int    // of a message
}

const stompGreeting = "CONNECTED\nversion:1.2\nserver:hostile/1.0\nheart-beat:0,0\n\n\x00"

// stompAt returns a function that serves connections: a broker that calls do for the command, and else behaves.
func stompAt(command string, do func(*stompPeer, *frame.Frame)) func(*wire) {
	return stompAs(stompGreeting, command, do)
}

// stompAs is stompAt for a broker with that greeting.
func stompAs(greeting, command string, do func(*stompPeer, *frame.Frame)) func(*wire) {
	return func(w *wire) {
		p := &stompPeer{wire: w, frames: frame.NewReaderSize(w.r, 64<<10), greeting: greeting, toSend: 10}
		for {
			f, err := p.frames.Read()
			if err != nil {
				return
			}
			switch {
			case f == nil: // a heart-beat
			case f.Command == command:
				do(p, f)
			default:
				p.behave(f)
			}
		}
	}
}

// behave reacts as a correct broker does.
func (p *stompPeer) behave(f *frame.Frame) {
	switch f.Command {
	case frame.CONNECT, frame.STOMP:
		p.say(p.greeting)
		return
	case frame.SUBSCRIBE:
		p.confirm(f)
		p.deliver(p.toSend)
		return
	case frame.SEND:
		p.peer.confirmed.Add(1)
	}
	p.confirm(f)
}

// confirm answers a frame that asks for a receipt, and notes the subscription.
func (p *stompPeer) confirm(f *frame.Frame) {
	if id, ok := f.Header.Contains(frame.Id); ok && f.Command == frame.SUBSCRIBE {
		p.sub = id
	}
	if receipt, ok := f.Header.Contains(frame.Receipt); ok {
		p.receipt(receipt)
	}
}

func (p *stompPeer) receipt(id string) { p.say("RECEIPT\nreceipt-id:" + id + "\n\n\x00") }

// deliver sends messages.
func (p *stompPeer) deliver(n int) {
	for range n {
		p.message("", "body")
	}
}

// head returns the headers of a MESSAGE that the consumer takes, with a line feed after each.
func (p *stompPeer) head() string {
	p.nextID++
	p.peer.delivered.Add(1)
	return fmt.Sprintf("MESSAGE\nsubscription:%s\nmessage-id:m%d\nack:a%d\ndestination:/queue/q\n", p.sub, p.nextID, p.nextID)
}

func (p *stompPeer) message(headers, body string) {
	p.say(p.head() + headers + "content-length:" + strconv.Itoa(len(body)) + "\n\n" + body + "\x00")
}

// stompSay is a case's act: to say something, and nothing more.
func stompSay(text string) func(*stompPeer, *frame.Frame) {
	return func(p *stompPeer, _ *frame.Frame) { p.say(text) }
}

// stompEnd is stompSay, and the end of the connection.
func stompEnd(text string) func(*stompPeer, *frame.Frame) {
	return func(p *stompPeer, _ *frame.Frame) {
		p.say(text)
		_ = p.Close()
	}
}

// stompEndless says something once, and then repeats something else without end.
func stompEndless(head, chunk string) func(*stompPeer, *frame.Frame) {
	return func(p *stompPeer, _ *frame.Frame) {
		p.say(head)
		p.endless(chunk)
	}
}

// stompMessage subscribes the consumer, and sends a MESSAGE: the usual headers, then rest.
func stompMessage(rest string) func(*stompPeer, *frame.Frame) {
	return func(p *stompPeer, f *frame.Frame) {
		p.confirm(f)
		p.say(p.head() + rest)
	}
}

// stompThen lets the broker behave, and then do something else.
func stompThen(do func(*stompPeer, *frame.Frame)) func(*stompPeer, *frame.Frame) {
	return func(p *stompPeer, f *frame.Frame) {
		p.behave(f)
		do(p, f)
	}
}

// greetingWith is CONNECTED with a header, which comes first.
func greetingWith(header string) string {
	return strings.Replace(stompGreeting, "\n", "\n"+header+"\n", 1)
}
