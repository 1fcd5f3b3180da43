package librarytest

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// patience bounds each wait for what must happen.
const patience = time.Minute

// streamTest has a stream with 30 messages, whose times are their numbers: 10 with the filter value red, 10 with blue,
// 10 without any. Each ten has ended before the next begins, so that they are in chunks of their own.
type streamTest struct {
	*testing.T
	d    driver.Driver
	dest driver.Destination
}

// Streams tests the offsets of RabbitMQ's streams, and with filters, which came with version 3.13, those.
func Streams(t *testing.T, f driver.Factory, url string, filters bool) {
	t.Helper()
	opts := driver.OpenOptions{
		URL: url, User: brokertest.User, Password: brokertest.Password, ConnectTimeout: patience, Options: f.NewOptions(),
	}
	require.NoError(t, driver.SetOptions(opts.Options, []string{"declare=stream"}))
	d, err := f.Open(t.Context(), opts)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close(context.Background())) }()
	s := &streamTest{t, d, driver.Destination{Kind: driver.Topic, Name: "stream-" + rand.Text()}}
	for i, value := range []string{"red", "blue", ""} {
		s.send(value, 10*i, 10*i+10)
	}

	hour := time.Now().Add(-time.Hour)
	for offset, want := range map[string][]int{
		"first": numbers(0, 30), "25": numbers(25, 30), "0": numbers(0, 30), "1h": numbers(0, 30),
		hour.Format(time.RFC3339): numbers(0, 30),
	} {
		got := s.receive(driver.ConsumerSpec{StreamOffset: offset, Credit: 7}, 29, nil)
		require.Equal(t, want, got, "from %s", offset)
	}
	last := s.receive(driver.ConsumerSpec{StreamOffset: "last"}, 29, nil)
	require.Equal(t, numbers(30-len(last), 30), last, "the last chunk")
	next := s.receive(driver.ConsumerSpec{StreamOffset: "next"}, 34, func() { s.send("red", 30, 35) })
	require.Equal(t, numbers(30, 35), next)
	if !filters {
		return
	}
	for name, c := range map[string]struct {
		spec driver.ConsumerSpec
		want []int
	}{
		"one":            {driver.ConsumerSpec{StreamFilter: "red"}, slices.Concat(numbers(0, 10), numbers(30, 35))},
		"two":            {driver.ConsumerSpec{StreamFilter: "red,blue"}, slices.Concat(numbers(0, 20), numbers(30, 35))},
		"and unfiltered": {driver.ConsumerSpec{StreamFilter: "blue", StreamUnfiltered: true}, numbers(10, 30)},
	} {
		c.spec.StreamOffset = driver.StreamFirst
		require.Equal(t, c.want, s.receive(c.spec, c.want[len(c.want)-1], nil), "filter: %s", name)
	}
}

func numbers(from, to int) (list []int) {
	for ; from < to; from++ {
		list = append(list, from)
	}
	return list
}

// send sends messages with a filter value, and waits until the broker has them.
func (s *streamTest) send(value string, from, to int) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	ended := make(chan driver.Outcome, to-from)
	p, err := s.d.Producer(ctx, driver.ProducerSpec{
		Connection: driver.Connection{Key: "p", Name: "p"}, Destination: s.dest, Name: "p", MaxPending: to - from,
		Variants: []driver.Variant{{Body: []byte("body"), Priority: -1, FilterValue: value}},
	}, driver.DoneFunc(func(_ driver.Slot, o driver.Outcome) { ended <- o }))
	require.NoError(s, err)
	for i := range to - from {
		slot := driver.NewSlot(uint32(i), 0) //nolint:gosec // small
		m := driver.Message{Slot: slot, Time: int64(from + i), Body: []byte("body")}
		require.NoError(s, p.Send(ctx, &m))
	}
	if flusher, ok := p.(driver.Flusher); ok {
		require.NoError(s, flusher.Flush(ctx))
	}
	for range to - from {
		require.Equal(s, driver.Accepted, (<-ended).State)
	}
	require.NoError(s, p.Close(ctx))
}

// receive opens a consumer, calls meanwhile, and returns the times of the messages up to the last and soon after it.
func (s *streamTest) receive(spec driver.ConsumerSpec, last int, meanwhile func()) (list []int) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	spec.Connection, spec.Destination, spec.Name = driver.Connection{Key: "c", Name: "c"}, s.dest, "c"
	k, err := s.d.Consumer(ctx, spec)
	require.NoError(s, err)
	if meanwhile != nil {
		meanwhile()
	}
	quiet, stop := context.WithCancel(ctx)
	defer stop()
	require.NoError(s, k.Run(quiet, func(d *driver.Delivery) driver.Verdict {
		if list = append(list, int(d.Time)); int(d.Time) == last {
			time.AfterFunc(100*time.Millisecond, stop)
		}
		return driver.Accept
	}))
	require.NoError(s, ctx.Err(), "received %v", list)
	require.NoError(s, k.Close(ctx))
	return list
}
