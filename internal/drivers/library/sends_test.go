package library

import (
	"context"
	"errors"
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
