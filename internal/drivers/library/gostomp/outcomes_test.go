package gostomp_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/drivers/library/gostomp"
	"github.com/perfmq/perfmq/internal/drivers/stomp"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// patience bounds each wait of these tests.
const patience = time.Minute

// clients are both drivers of the protocol: messages must end in the same way.
func clients() []driver.Factory { return []driver.Factory{stomp.Factory(), gostomp.Factory()} }

// scripted answers the SEND frames of each connection, one after the other: with a receipt for "", with the text
// otherwise, in which a % stands for the receipt, and then it closes. Others get no answer: it calls unanswered.
func scripted(t *testing.T, server string, unanswered func(), answers ...string) (url string) {
	t.Helper()
	l := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(patience))
			serve(conn, server, unanswered, answers)
			_ = conn.Close()
		}
	}()
	return "stomp://" + l.Addr().String()
}

func serve(conn net.Conn, server string, unanswered func(), answers []string) {
	frames, sends := frame.NewReader(conn), 0
	for {
		f, err := frames.Read()
		switch {
		case err != nil:
			return
		case f == nil:
			continue
		}
		receipt, answer := f.Header.Get(frame.Receipt), ""
		switch f.Command {
		case frame.CONNECT, frame.STOMP:
			_, _ = io.WriteString(conn, "CONNECTED\nversion:1.2\nserver:"+server+"\nheart-beat:0,0\n\n\x00")
			continue
		case frame.SEND:
			if sends == len(answers) {
				unanswered()
				continue
			}
			answer = answers[sends]
			sends++
		}
		if answer == "" {
			_, _ = io.WriteString(conn, "RECEIPT\nreceipt-id:"+receipt+"\n\n\x00")
			continue
		}
		for _, r := range answer {
			if r == '%' {
				_, _ = io.WriteString(conn, receipt)
				continue
			}
			_, _ = io.WriteString(conn, string(r))
		}
		return
	}
}

// sender is a producer that sends one message after the other.
type sender struct {
	t    *testing.T
	p    driver.Producer
	done chan driver.Outcome
	next uint32
}

func newSender(t *testing.T, f driver.Factory, url string) *sender {
	t.Helper()
	d := musttest.Get(f.Open(t.Context(), driver.OpenOptions{URL: url, ConnectTimeout: patience, Options: f.NewOptions()}))(t)
	s := &sender{t: t, done: make(chan driver.Outcome, 10)}
	p, err := d.Producer(t.Context(), driver.ProducerSpec{
		Destination: driver.Destination{Name: "q"}, MaxPending: 10,
		Variants: []driver.Variant{{Body: []byte("body"), Priority: -1}},
	}, driver.DoneFunc(func(_ driver.Slot, o driver.Outcome) { s.done <- o }))
	require.NoError(t, err)
	s.p = p
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, s.p.Close(ended))
		require.NoError(t, d.Close(ended))
	})
	return s
}

// send sends a message and returns its end, which may be that it was not sent.
func (s *sender) send(ctx context.Context) driver.Outcome {
	s.t.Helper()
	err := s.p.Send(ctx, &driver.Message{Slot: driver.NewSlot(s.next, 1), Time: 1})
	s.next++
	if err != nil {
		return driver.Outcome{State: driver.Unknown, Class: driver.ClassOf(err), Err: err}
	}
	return s.end()
}

func (s *sender) end() driver.Outcome {
	s.t.Helper()
	select {
	case o := <-s.done:
		return o
	case <-time.After(patience):
		require.FailNow(s.t, "a message has not ended")
		panic("unreachable")
	}
}

// TestRefused: a message that the broker refuses ends as it does with the native client, in the same words, and so do the
// messages after it.
func TestRefused(t *testing.T) {
	const named, artemis = "\nreceipt-id:%\ncontent-type:text/plain\n\nbody\x00", "ActiveMQ-Artemis/2.56.0"
	type end struct {
		state driver.State
		class driver.Class
	}
	for name, test := range map[string]struct {
		server  string
		answers []string
		ends    []end // of the messages
	}{
		"a full queue": {
			"RabbitMQ/4.0.5",
			[]string{"", "ERROR\nmessage:the queue is full" + named},
			[]end{{}, {driver.Rejected, driver.ClassFull}, {driver.Unknown, driver.ClassClosedByBroker}},
		},
		"no permission": {
			artemis,
			[]string{"ERROR\nmessage:AMQ229032\\c User\\c a does not have permission='SEND'" + named},
			[]end{{driver.Rejected, driver.ClassAuth}, {driver.Unknown, driver.ClassAuth}},
		},
		"Artemis does not say why": {
			artemis,
			[]string{"ERROR\nmessage:AMQ339011\\c Error handling" + named},
			[]end{{driver.Failed, driver.ClassOther}, {driver.Unknown, driver.ClassOther}},
		},
		"Artemis does not say why, after others": {
			artemis,
			[]string{"", "ERROR\nmessage:AMQ339011\\c Error handling" + named},
			[]end{{}, {driver.Rejected, driver.ClassFull}, {driver.Unknown, driver.ClassClosedByBroker}},
		},
		"unknown words": {
			"a/1",
			[]string{"ERROR\nmessage:we are sorry" + named},
			[]end{{driver.Failed, driver.ClassOther}, {driver.Unknown, driver.ClassOther}},
		},
		"unknown words, after others": {
			"a/1",
			[]string{"", "ERROR\nmessage:we are sorry" + named},
			[]end{{}, {driver.Failed, driver.ClassOther}, {driver.Unknown, driver.ClassClosedByBroker}},
		},
		"no message is named, after others": {
			"a/1",
			[]string{"", "ERROR\nmessage:invalid state\n\n\x00"},
			[]end{{}, {driver.Unknown, driver.ClassClosedByBroker}, {driver.Unknown, driver.ClassClosedByBroker}},
		},
		"no permission any more": {
			artemis,
			[]string{"", "ERROR\nmessage:AMQ229032\\c User\\c a does not have permission='SEND'" + named},
			[]end{{}, {driver.Rejected, driver.ClassAuth}, {driver.Unknown, driver.ClassAuth}},
		},
		"no message is named": {
			"a/1",
			[]string{"ERROR\nmessage:the queue is full\n\n\x00"},
			[]end{{driver.Unknown, driver.ClassFull}, {driver.Unknown, driver.ClassFull}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var words []string
			for _, f := range clients() {
				s := newSender(t, f, scripted(t, test.server, func() {}, test.answers...))
				for i, want := range test.ends {
					o := s.send(t.Context())
					require.Equal(t, want, end{o.State, o.Class}, "%s, message %d: %v", f.Client, i, o.Err)
					if o.State != driver.Accepted && o.State != driver.Unknown {
						words = append(words, o.Err.Error()+"; "+driver.HintOf(o.Err))
					}
				}
			}
			if len(words) > 0 {
				require.Len(t, words, 2)
				require.Equal(t, words[0], words[1])
			}
		})
	}
}

// TestEmbeddedRefuses is the same on the embedded broker.
func TestEmbeddedRefuses(t *testing.T) {
	t.Parallel()
	for _, f := range clients() {
		b, err := broker.Start(broker.Config{
			Listen: map[string]string{broker.STOMP: "127.0.0.1:0"}, Limits: store.Config{Limit: 1, Reject: true},
		})
		require.NoError(t, err)
		t.Cleanup(b.Close)
		s := newSender(t, f, "stomp://"+b.Addr(broker.STOMP))
		require.Equal(t, driver.Outcome{}, s.send(t.Context()))
		o := s.send(t.Context())
		require.Equal(t, driver.Rejected, o.State, f.Client)
		require.Equal(t, driver.ClassFull, o.Class, f.Client)
		require.ErrorContains(t, o.Err, "q is full", f.Client)
	}
}

// TestUnanswered: the message that a broker holds back at the end of a run has no answer in time. Its connection was not
// lost.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	for _, f := range clients() {
		short, cancel := context.WithCancel(t.Context()) // until the broker has the message
		s := newSender(t, f, scripted(t, "a/1", cancel))
		require.NoError(t, s.p.Send(short, &driver.Message{Slot: driver.NewSlot(0, 1), Time: 1}))
		<-short.Done()
		require.NoError(t, s.p.Close(short))
		o := s.end()
		require.Equal(t, driver.Unknown, o.State, f.Client)
		require.Equal(t, driver.ClassTimeout, o.Class, "%s: %v", f.Client, o.Err)
		require.Contains(t, driver.HintOf(o.Err), "--send-timeout", f.Client)
		require.Equal(t, f.Client == driver.Native, strings.Contains(driver.HintOf(o.Err), "-o heart-beat"))
	}
}
