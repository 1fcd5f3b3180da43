package amqp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// fake is as much of a broker as go-amqp needs to talk with. It keeps all that go-amqp says.
type fake struct {
	t  testing.TB
	nc net.Conn
	r  *amqp.FrameReader

	mechanisms []string // nil: no SASL
	open       amqp.Open
	begin      amqp.Begin
	attach     func(a *amqp.Attach) amqp.Attach               // the answer
	credit     uint32                                         // for each sender
	flow       func(f *amqp.Flow) []byte                      // frames in answer; may be nil
	transfer   func(t *amqp.Transfer, payload []byte) []frame // likewise
	settle     func(d *amqp.Disposition)
	got        []frame
	payloads   [][]byte // of transfers
	ended      chan error
}

const timeout = 30 * time.Second

// talk connects go-amqp to f, and returns when both have ended.
func talk(t testing.TB, f *fake, o *client.ConnOptions, use func(ctx context.Context, c *client.Conn)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	theirs, ours := net.Pipe()
	f.t, f.nc, f.ended = t, ours, make(chan error, 1)
	f.r = amqp.NewFrameReader(bufio.NewReader(ours), 1<<20)
	go func() {
		err := f.serve()
		_ = ours.Close()
		f.ended <- err
	}()
	c, err := client.NewConn(ctx, theirs, o)
	if err == nil {
		use(ctx, c)
		_ = c.Close() // it tells why the connection has ended, which is no news
	}
	_ = theirs.Close()
	served := <-f.ended
	require.NoError(t, err)
	require.NoError(t, served)
}

func (f *fake) serve() error {
	if err := f.greet(); err != nil {
		return err
	}
	for {
		in, err := f.r.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(in.Body) == 0 {
			continue
		}
		if done, err := f.handle(in); done || err != nil {
			return err
		}
	}
}

func (f *fake) greet() error {
	for {
		h, err := f.r.ReadProtocolHeader()
		if err != nil {
			return err
		}
		if _, err := f.nc.Write(h[:]); err != nil {
			return err
		}
		if string(h[:]) == amqp.HeaderAMQP {
			return nil
		}
		if _, err := f.nc.Write((&amqp.SASLMechanisms{Mechanisms: f.mechanisms}).AppendFrame(nil)); err != nil {
			return err
		}
		in, err := f.r.Next()
		if err != nil {
			return err
		}
		if _, err := f.read(in); err != nil {
			return err
		}
		if _, err := f.nc.Write((&amqp.SASLOutcome{Code: amqp.SASLOK, AdditionalData: []byte("welcome")}).AppendFrame(nil)); err != nil {
			return err
		}
	}
}

// read decodes a frame and keeps it.
func (f *fake) read(in amqp.Frame) (frame, error) {
	in.Body = append([]byte(nil), in.Body...) // it is kept
	p, err := amqp.ParseBody(in.Body)
	if err != nil {
		return nil, err
	}
	fr := blank(p.Kind)
	if fr == nil {
		return nil, errors.New("a frame of another kind")
	}
	if err := fr.Decode(&p.Fields); err != nil {
		return nil, err
	}
	f.got = append(f.got, fr)
	if p.Kind == amqp.DescTransfer {
		f.payloads = append(f.payloads, p.Payload)
	}
	return fr, nil
}

func (f *fake) handle(in amqp.Frame) (done bool, err error) {
	fr, err := f.read(in)
	if err != nil {
		return false, err
	}
	var out []byte
	switch fr := fr.(type) {
	case *amqp.Open:
		out = f.open.AppendFrame(nil)
	case *amqp.Begin:
		begin := f.begin
		begin.RemoteChannel = amqp.Some(in.Channel)
		out = begin.AppendFrame(nil, in.Channel)
	case *amqp.Attach:
		answer := f.attach(fr)
		answer.Name, answer.Handle, answer.Role = fr.Name, fr.Handle, !fr.Role
		out = answer.AppendFrame(nil, in.Channel)
		if f.credit > 0 && fr.Role == amqp.RoleSender {
			zero := amqp.Some[uint32](0)
			out = (&amqp.Flow{
				NextIncomingID: zero, IncomingWindow: 5000, OutgoingWindow: 5000, Handle: amqp.Some(fr.Handle), DeliveryCount: zero,
				LinkCredit: amqp.Some(f.credit),
			}).AppendFrame(out, in.Channel)
		}
	case *amqp.Flow:
		if f.flow != nil {
			out = f.flow(fr)
		}
	case *amqp.Transfer:
		if f.transfer != nil {
			for _, answer := range f.transfer(fr, f.payloads[len(f.payloads)-1]) {
				out = encodeOn(out, answer, in.Channel)
			}
		}
	case *amqp.Disposition:
		if f.settle != nil {
			f.settle(fr)
		}
	case *amqp.Detach:
		out = (&amqp.Detach{Handle: fr.Handle, Closed: true}).AppendFrame(nil, in.Channel)
	case *amqp.End:
		out = (&amqp.End{}).AppendFrame(nil, in.Channel)
	case *amqp.Close:
		out, done = (&amqp.Close{}).AppendFrame(nil), true
	}
	_, err = f.nc.Write(out)
	if done {
		return true, nil // go-amqp may be gone before it has read our close
	}
	return false, err
}

// of returns the frames of a kind that go-amqp has sent.
func of[F any](f *fake) (list []F) {
	for _, g := range f.got {
		if fr, ok := g.(F); ok {
			list = append(list, fr)
		}
	}
	return list
}

// echo answers an attach with its own termini.
func echo(a *amqp.Attach) amqp.Attach {
	answer := *a
	answer.InitialDeliveryCount = amqp.Some[uint32](0)
	answer.Properties = nil
	return answer
}

func peer() *fake {
	return &fake{
		open:   amqp.Open{ContainerID: "fake"},
		begin:  amqp.Begin{IncomingWindow: 5000, OutgoingWindow: 5000},
		attach: echo,
	}
}

// deliver returns the frames of one message, in frames of at most that many bytes.
func deliver(handle, number uint32, message []byte, limit int) (out []byte) {
	t := amqp.Transfer{
		Handle: handle, DeliveryID: amqp.Some(number), DeliveryTag: []byte{byte(number)}, MessageFormat: amqp.Some[uint32](0),
	}
	for {
		at := len(out)
		out = t.AppendHead(out, 0)
		fits := min(limit-(len(out)-at), len(message))
		if fits < len(message) {
			out[len(out)-1] = amqp.CodeTrue
		}
		out = append(out, message[:fits]...)
		amqp.EndFrame(out, at)
		if message = message[fits:]; len(message) == 0 {
			return out
		}
		t = amqp.Transfer{Handle: handle}
	}
}
