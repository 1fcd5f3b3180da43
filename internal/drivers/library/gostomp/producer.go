package gostomp

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-stomp/stomp/v3"
	"github.com/go-stomp/stomp/v3/frame"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

// producer is a [driver.Producer].
type producer struct {
	*transport.Lease[*connection]
	transport.Notice
	op, address string
	spec        driver.ProducerSpec
	kinds       [][]string // headers by variant
	sends       *library.Sends
	answers     *driver.Meter
	taken       atomic.Bool // the broker has confirmed a message to the destination
	took        *sync.Map   // of the driver
}

// Producer implements [driver.Driver].
func (d *stompDriver) Producer(
	ctx context.Context, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	op := "open a producer on " + spec.Destination.String()
	lease, err := library.Join(ctx, &d.pool, spec.Connection,
		func(c *connection) error { return library.PlainNames().CheckProducer(op, &c.factory, &spec) })
	if err != nil {
		return nil, err
	}
	p := &producer{
		Lease: lease, op: "send to " + spec.Destination.String(), address: lease.Conn.address(spec.Destination), spec: spec,
		took: &d.took, answers: driver.NewMeter(),
	}
	p.sends = library.NewSends(p.op, done)
	if _, taken := d.took.Load(spec.Destination); taken {
		p.taken.Store(true)
	}
	for i := range spec.Variants {
		if v := &spec.Variants[i]; v.Text && bytes.IndexByte(v.Body, 0) >= 0 {
			lease.Release(ctx)
			return nil, protocol.STOMPTextWithNUL(op)
		}
		p.kinds = append(p.kinds, p.headers(&spec.Variants[i]))
	}
	p.sends.Watch(p.Conn.net.Ended, func() { p.End(p.gone()) })
	return p, nil
}

// headers returns the headers common to all messages of a variant.
func (p *producer) headers(v *driver.Variant) []string {
	list := append(p.Conn.kind("destination-type", p.spec.Destination.Kind), "persistent",
		strconv.FormatBool(p.spec.Persistent))
	if v.Priority >= 0 {
		list = append(list, "priority", strconv.Itoa(min(v.Priority, 9)))
	}
	if v.Group != "" {
		list = append(list, "JMSXGroupID", v.Group)
	}
	for key, value := range library.Properties(&p.spec, v) {
		list = append(list, key, value)
	}
	return list
}

// Host implements [driver.Located].
func (p *producer) Host() string { return p.Conn.host }

// Waits implements [driver.Waiter].
func (p *producer) Waits() driver.Waits { return driver.Waits{Answer: p.answers.Wait()} }

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if p.Conn.Dead() && p.sends.Lost() == nil {
		return p.gone()
	}
	receipt, variant := "s"+strconv.FormatInt(p.Conn.ids.Add(1), 10), p.spec.Variants[m.Variant]
	if m.Body != nil {
		variant.Body = bytes.Clone(m.Body)
	}
	headers := append([]string{frame.Receipt, receipt, driver.TimeProperty, strconv.FormatInt(m.Time, 10)},
		p.kinds[m.Variant]...)
	for i, key := range variant.Varying() {
		headers = append(headers, key, string(m.Values[i]))
	}
	if i := slices.Index(headers, "JMSXGroupID"); m.Group != "" {
		headers[i+1] = m.Group
	}
	if m.ID != (driver.ID{}) {
		headers = append(headers, driver.IDProperty, string(m.ID.Append(nil)))
	}
	if p.spec.TTL > 0 {
		headers = append(headers, "expires", strconv.FormatInt(time.Now().Add(p.spec.TTL).UnixMilli(), 10))
	}
	p.answers.Begin()
	defer p.answers.End()
	return p.sends.Do(ctx, m.Slot, func(h *library.Handover) {
		err := p.send(variant, headers)
		unsent := errors.Is(err, stomp.ErrAlreadyClosed) || errors.Is(err, stomp.ErrMsgSendTimeout)
		if unsent && h.NotSent(p.end(err)) {
			return
		}
		h.End(p.outcome(receipt, err))
	})
}

func (p *producer) gone() *driver.Error { return lost(p.op, errEnded()) }

// send waits for the broker's answer. After the end of the connection the library may wait half a minute more.
func (p *producer) send(v driver.Variant, headers []string) error {
	options := []func(*frame.Frame) error{func(f *frame.Frame) error { add(f, headers); return nil }}
	if v.Text {
		options = append(options, stomp.SendOpt.NoContentLength)
	}
	result := make(chan error, 1)
	go func() { result <- p.Conn.stomp.Send(p.address, "", v.Body, options...) }()
	select {
	case err := <-result:
		return err
	case <-p.Conn.net.Overdue:
		return errEnded()
	}
}

func add(f *frame.Frame, headers []string) {
	for i := 0; i < len(headers); i += 2 {
		f.Header.Add(headers[i], headers[i+1])
	}
}

// outcome returns the outcome of a message. After an error the library or the broker has closed the connection, or
// outcome closes it.
func (p *producer) outcome(receipt string, err error) driver.Outcome {
	if err == nil {
		if !p.taken.Swap(true) {
			p.took.Store(p.spec.Destination, true)
		}
		return driver.Outcome{}
	}
	e := p.end(err)
	_ = p.Conn.net.Close()
	if f := errorFrame(err); f != nil && f.Header.Get(frame.ReceiptId) == receipt {
		return protocol.STOMPRefused(p.op, p.Conn.said(p.op, err), p.taken.Load())
	}
	return driver.Outcome{State: driver.Unknown, Class: e.Class, Err: e}
}

// end returns why no message can be sent after err, and stores the first reason.
func (p *producer) end(err error) *driver.Error {
	e := p.Conn.explain(p.op, err)
	if refused := p.Conn.said(p.op, err); refused != nil && !p.taken.Load() { // the first message stands for the opening
		e = refused
	}
	waited := errors.Is(err, stomp.ErrMsgReceiptTimeout) || errors.Is(err, stomp.ErrMsgSendTimeout)
	if errorFrame(err) == nil && (waited || p.Conn.unanswered.Load()) {
		e = transport.NoAnswer(p.op, "")
	}
	p.sends.Lose(e)
	return e
}

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) error {
	if p.sends.Close(ctx, p.Conn.giveUp, p.Conn.giveUp) {
		p.ReleaseOnly(ctx, p.spec.Connection.Stages)
	}
	return nil
}
