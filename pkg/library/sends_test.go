package library

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// ends are the outcomes by slot.
type ends map[driver.Slot][]driver.State

func (e ends) Done(s driver.Slot, o driver.Outcome) { e[s] = append(e[s], o.State) }

func (e ends) DoneAll(slots []driver.Slot, o driver.Outcome) {
	driver.DoneFunc(e.Done).DoneAll(slots, o)
}

// TestSendsEndOnce: a message ends by the first report of its end, also after Do has returned. Close ends messages
// without a report.
func TestSendsEndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := ends{}
		s := NewSends("send", got)
		var late, silent *Handover
		require.NoError(t, s.Do(t.Context(), 1, func(h *Handover) {
			h.End(driver.Outcome{})
			h.End(driver.Outcome{State: driver.Rejected})
		}))
		require.NoError(t, s.Do(t.Context(), 2, func(h *Handover) { late = h; h.Sent() }))
		require.NoError(t, s.Do(t.Context(), 3, func(h *Handover) { silent = h; h.Sent() }))
		require.EqualError(t, s.Do(t.Context(), 4, func(h *Handover) { require.True(t, h.NotSent(errors.New("no"))) }), "no")
		synctest.Wait()
		require.Equal(t, ends{1: {driver.Accepted}}, got)
		late.End(driver.Outcome{State: driver.Failed})
		closing, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		aborted := false
		require.True(t, s.Close(closing, func() { require.Error(t, s.Answers.Err()) }, func() { aborted = true }))
		require.Equal(t, time.Second+grace, time.Since(began))
		require.True(t, aborted)
		silent.End(driver.Outcome{})
		require.Equal(t, ends{1: {driver.Accepted}, 2: {driver.Failed}, 3: {driver.Unknown}}, got)
		require.False(t, s.Close(closing, nil, nil), "it is closed")
	})
}

// TestSendsAndTheContext: if the context ends before the library has taken or refused the message, Do returns nil and
// the message ends later. With an ended context nothing is sent.
func TestSendsAndTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := ends{}
		s := NewSends("send", got)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.NoError(t, s.Do(ctx, 1, func(h *Handover) {
			<-time.After(time.Minute)
			require.False(t, h.NotSent(errors.New("too late")))
			h.End(driver.Outcome{State: driver.Unknown, Class: driver.ClassTimeout})
		}))
		require.Equal(t, time.Second+grace, time.Since(began))
		err := s.Do(ctx, 2, func(*Handover) { t.Error("it is sent") })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, s.Close(t.Context(), nil, nil), "it waits")
		require.Equal(t, ends{1: {driver.Unknown}}, got)
	})
}

// TestSendsAreLost: after a loss nothing is sent, and the first reason is the reason; a watch ends with the producer.
func TestSendsAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSends("send", ends{})
		over := make(chan struct{})
		s.Watch(over, func() { s.Lose(driver.Errorf(driver.ClassConnectionLost, "", "", "gone")) })
		s.Watch(make(chan struct{}), func() { t.Error("it is not over") })
		close(over)
		synctest.Wait()
		s.Lose(driver.Errorf(driver.ClassOther, "", "", "something else"))
		require.EqualError(t, s.Do(t.Context(), 1, func(*Handover) { t.Error("it is sent") }), "gone")
		require.Equal(t, driver.ClassConnectionLost, s.Lost().Class)
		require.True(t, s.Close(t.Context(), nil, nil))
	})
}

// TestRules: names are the driver's own, and the native driver does not recommend itself.
func TestRules(t *testing.T) {
	f := driver.Factory{Title: "Bus", Client: "gobus", Capabilities: driver.Capabilities{Queue: driver.KindCapabilities{Exists: true}}}
	spec := driver.ProducerSpec{Destination: driver.Destination{Name: "a/b"}}
	err := PlainNames().CheckProducer("open", &f, &spec)
	require.EqualError(t, err, "open: Bus over gobus: a name has letters, digits and . _ - :")
	require.Equal(t, "use a name of letters, digits and . _ - :, or use --client native", driver.HintOf(err))

	own := Rules{Signs: "/", Most: 3}
	f.Client = driver.Native
	require.NoError(t, own.CheckProducer("open", &f, &spec))
	spec.CommitInterval = 1
	err = own.CheckProducer("open", &f, &spec)
	require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err))
	require.Equal(t, "leave --commit-interval out", driver.HintOf(err))
	err = own.CheckConsumer("open", &f, &driver.ConsumerSpec{Destination: driver.Destination{Name: "a/bc"}})
	require.Equal(t, "use a name of letters, digits and /, at most 3 of them", driver.HintOf(err))
}

// TestReceiverIsNotHeldUp: a call of the library that hangs when its connection has ended does not keep Run.
func TestReceiverIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, hang, lost := make(chan struct{}), make(chan struct{}), errors.New("lost")
		r := Receiver{Over: over, Why: func() error { return lost }}
		result := make(chan error, 1)
		go func() {
			result <- r.Run(t.Context(), func(context.Context) error {
				r.Settle(func() { <-hang })
				return nil
			}, func() {})
		}()
		synctest.Wait()
		close(over)
		require.ErrorIs(t, <-result, lost)
		close(hang)
	})
}

// TestReceiverAwaitsADelivery: Run does not end while a message is being delivered, but when the call after it hangs.
func TestReceiverAwaitsADelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const work = time.Minute
		over, hang, lost := make(chan struct{}), make(chan struct{}), errors.New("lost")
		r := Receiver{Over: over, Why: func() error { return lost }}
		result, began := make(chan error, 1), time.Now()
		go func() {
			result <- r.Run(t.Context(), func(context.Context) error {
				<-time.After(work) // delivers
				r.Settle(func() { <-hang })
				return nil
			}, func() {})
		}()
		synctest.Wait()
		close(over)
		require.ErrorIs(t, <-result, lost)
		require.InDelta(t, work+settleGrace, time.Since(began), float64(2*settleGrace))
		require.GreaterOrEqual(t, time.Since(began), work)
		close(hang)
	})
}

// TestReceiverTellsItsOwn: an end of the connection that next reports ends Run with that error.
func TestReceiverTellsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, own := make(chan struct{}), errors.New("own")
		r := Receiver{Over: over, Why: func() error { return errors.New("lost") }}
		result := make(chan error, 1)
		go func() {
			result <- r.Run(t.Context(), func(ctx context.Context) error {
				r.Settle(func() {})
				select {
				case <-over:
					return own
				case <-ctx.Done():
					return ctx.Err()
				}
			}, func() {})
		}()
		synctest.Wait()
		close(over)
		require.ErrorIs(t, <-result, own)
	})
}

// TestConnEnds: a connection has ended when it cannot be read, or cannot be written, whichever a library notices.
func TestConnEnds(t *testing.T) {
	for name, use := range map[string]func(*Conn) (int, error){
		"read":  func(c *Conn) (int, error) { return c.Read(make([]byte, 1)) },
		"write": func(c *Conn) (int, error) { return c.Write(make([]byte, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			c := NewConn(here)
			require.False(t, c.HasEnded())
			require.NoError(t, there.Close())
			_, err := use(c)
			require.Error(t, err)
			require.True(t, c.HasEnded())
		})
	}
}
