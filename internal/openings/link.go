package openings

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// link is a connection with its producer and consumer, if it has them.
type link struct {
	load     *Load
	phase    stats.Phase // in which it was due
	producer driver.Producer
	consumer driver.Consumer
	alone    driver.Held // without either
	timer    *time.Timer // ends it, with churn
	quiet    bool        // it is not counted

	run   context.Context //nolint:containedctx // of the consumer, and of the sends
	stop  context.CancelFunc
	ended chan struct{} // closed when it has

	// Of one that sends messages; else nil.
	answers chan driver.Outcome // to the message in flight
	sent    chan struct{}       // closed when it sends no more
	sending atomic.Uint64       // the slot of the message in flight; 0 for none
	closing atomic.Bool         // it begins no other message
	body    []byte
}

// stage records a stage of the opening.
func (k *link) stage(s driver.Stage, took time.Duration) {
	if s != driver.StageClose && !k.quiet { // closing is measured as a whole
		k.load.Rec.Record(k.phase, stats.KindOf(s), took)
	}
}

// connect opens it.
func (k *link) connect(ctx context.Context, number uint64) (err error) {
	l := k.load
	conn, producer, consumer := l.Spec(number)
	conn.Stages = k.stage
	if consumer != nil {
		consumer.Connection = conn
		if k.consumer, err = l.Driver.Consumer(ctx, *consumer); err != nil {
			return err
		}
	}
	if producer != nil {
		producer.Connection = conn
		k.body = producer.Variants[0].Body
		k.producer, err = l.Driver.Producer(ctx, *producer, driver.DoneFunc(k.done))
		if err != nil && k.consumer != nil {
			_ = k.consumer.Close(ctx) // the error of the producer says more
		}
		return err
	}
	if consumer != nil {
		return nil
	}
	c, ok := l.Driver.(driver.Connector)
	if !ok {
		return driver.Errorf(driver.ClassUnsupported, "connect", "name a destination",
			"this client opens no connection for nothing else")
	}
	k.alone, err = c.Connect(ctx, conn)
	return err
}

// prepare sets what closing needs, before the connection is held.
func (k *link) prepare() {
	if k.consumer != nil {
		k.ended = make(chan struct{})
	}
	if k.producer != nil && k.load.Messages > 0 {
		k.answers, k.sent = make(chan driver.Outcome, 1), make(chan struct{})
	}
	if k.ended != nil || k.sent != nil {
		k.run, k.stop = context.WithCancel(k.load.receiving)
	}
}

// watch begins to receive, and to look for the end of the connection.
func (k *link) watch() {
	l := k.load
	if k.consumer != nil {
		go func() {
			err := k.consumer.Run(k.run, k.receive)
			close(k.ended)
			if err != nil {
				l.lost(k, err)
			}
		}()
	}
	lost := func(why error) { l.lost(k, why) }
	if w, ok := k.producer.(driver.Watched); ok && k.consumer == nil {
		w.OnEnd(lost)
	}
	if k.alone != nil {
		k.alone.OnEnd(lost)
	}
}

// receive counts a message.
func (k *link) receive(d *driver.Delivery) driver.Verdict {
	l := k.load
	now := l.Clock.Now()
	phase := l.Phases.PhaseAt(now)
	switch {
	case d.ID.Run != l.RunID:
		l.Rec.Add(phase, result.Foreign, 1)
	default:
		l.Rec.Received(phase, d, time.Duration(l.Clock.Epoch(now)-d.Time)*time.Microsecond)
	}
	return driver.Accept
}

// send sends the messages, one after the other has ended.
func (k *link) send(ctx context.Context) {
	l := k.load
	if k.answers == nil {
		return
	}
	defer close(k.sent)
	for i := 0; i < l.Messages && ctx.Err() == nil && !k.closing.Load(); i++ {
		began := l.Clock.Now()
		phase := l.Phases.PhaseAt(began)
		slot := driver.NewSlot(0, uint32(i+1)) //nolint:gosec // few
		k.sending.Store(uint64(slot))
		m := driver.Message{Slot: slot, Body: k.body, Time: l.Clock.Epoch(began)}
		l.Rec.Add(phase, result.Sent, 1)
		bounded, cancel := context.WithTimeout(k.run, l.Patience)
		err := k.producer.Send(bounded, &m)
		o := driver.Outcome{State: driver.Failed, Class: driver.ClassOf(err), Err: err}
		if err == nil {
			select {
			case o = <-k.answers:
			case <-bounded.Done():
				o = driver.Outcome{State: driver.Unknown, Class: driver.ClassTimeout, Err: errNoAnswer}
			}
		}
		cancel()
		k.sending.Store(0)
		l.Rec.Ended(phase, &o, len(k.body), l.Clock.Now()-began)
		if o.State == driver.Failed || o.State == driver.Unknown { // the next would hardly do better
			return
		}
	}
}

var errNoAnswer = errors.New("no answer in time to a message of a connection")

// done takes the answer to the message in flight; answers to others come too late.
func (k *link) done(slot driver.Slot, o driver.Outcome) {
	if k.sending.CompareAndSwap(uint64(slot), 0) {
		k.answers <- o // it has room for the single answer
		return
	}
	if o.State != driver.Unknown { // that is no answer
		k.load.Rec.Add(k.load.Phases.PhaseAt(k.load.Clock.Now()), result.Strays, 1)
	}
}

// close closes it, once the message in flight has ended, or ctx.
func (k *link) close(ctx context.Context) (err error) {
	if k.closing.Store(true); k.sent != nil {
		select {
		case <-k.sent:
		case <-ctx.Done():
		}
	}
	if k.stop != nil {
		k.stop()
	}
	for _, ended := range []chan struct{}{k.sent, k.ended} {
		if ended != nil {
			<-ended // soon: the context of the driver's calls has ended
		}
	}
	if k.consumer != nil {
		err = k.consumer.Close(ctx)
	}
	if k.producer != nil {
		err = errors.Join(err, k.producer.Close(ctx))
	}
	if k.alone != nil {
		err = errors.Join(err, k.alone.Close(ctx))
	}
	return err
}
