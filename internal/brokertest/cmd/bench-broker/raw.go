//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/brokertest/peerbench"
	"github.com/perfmq/perfmq/internal/brokertest/rawamqp"
)

const (
	rawSize   = 1024
	rawCredit = 1000
	// rawDrain is how long a run may go on after its time, and countWait how long a broker's counters may lag behind.
	rawDrain, countWait = 30 * time.Second, 5 * time.Second
	// javaWarmup is how long the first run lasts, at least, which does not count: Java compiles as it goes.
	javaWarmup = 10 * time.Second
)

// counter returns how many messages a queue has taken and how many of them were accepted, as the broker counts.
type counter func(ctx context.Context, queue string) (stored, settled int64, err error)

// rawOutcome is one run of the raw client, after the warm-up.
type rawOutcome struct {
	rate, broker, client float64 // msg/s; microseconds of processor time per message
}

// sample is the state of a run at one moment.
type sample struct {
	at             time.Time
	received       int64
	broker, client time.Duration // processor time
}

// raw compares the targets with so many messages in flight.
func (b *bench) raw(ctx context.Context, pending int, targets ...target) error {
	columns := make([]peerbench.Column[rawOutcome], len(targets))
	for round := range b.repeat + 1 {
		duration := time.Duration(b.duration) * time.Second
		if round == 0 {
			duration = max(duration, javaWarmup)
		}
		for i, t := range targets {
			columns[i].Name = t.name
			o, err := b.rawOnce(ctx, pending, duration, t)
			if err != nil {
				return fmt.Errorf("raw client on %s: %w", t.name, err)
			}
			if round > 0 {
				columns[i].Runs = append(columns[i].Runs, o)
			}
		}
	}
	t := peerbench.Table[rawOutcome]{W: os.Stdout, Columns: columns}
	t.Head(fmt.Sprintf("amqp, raw client, %d in flight", pending))
	t.Row("received msg/s", func(o rawOutcome) float64 { return o.rate })
	t.Row("broker cpu us/message", func(o rawOutcome) float64 { return o.broker })
	t.Row("client cpu us/message", func(o rawOutcome) float64 { return o.client })
	t.Row("processors, broker", func(o rawOutcome) float64 { return o.rate * o.broker / 1e6 })
	return nil
}

// rawOnce runs the raw client with a queue of its own. Messages that the broker counts otherwise than the client are
// an error.
func (b *bench) rawOnce(ctx context.Context, pending int, duration time.Duration, t target) (o rawOutcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, duration+rawDrain)
	defer cancel()
	u, err := url.Parse(t.urls["amqp"])
	if err != nil {
		return o, err
	}
	b.runs++
	queue := fmt.Sprintf("RAW.%d", b.runs)
	pair, err := rawamqp.Open(ctx, u.Host, rawamqp.Load{Queue: queue, Size: rawSize, Pending: pending, Credit: rawCredit})
	if err != nil {
		return o, err
	}
	defer pair.Close() //nolint:errcheck // the brokers' counters tell whether all is well
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- pair.Run(ctx, duration)
	}()
	var at [2]sample // the edges of the measured part
	for i, wait := range []time.Duration{warmup, duration - warmup - edge} {
		select {
		case <-time.After(wait):
			at[i], err = take(pair, t.pid)
		case err = <-ended:
			if err == nil { // this process had no processor for longer than edge
				at[i], err = take(pair, t.pid)
			}
		}
		if err != nil {
			cancel()
			for range ended { // until Run is over, the connections are its own
			}
			return o, err
		}
	}
	if err := <-ended; err != nil {
		return o, err
	}
	if err := t.check(ctx, queue, pair.Accepted()); err != nil {
		return o, err
	}
	n := float64(at[1].received - at[0].received)
	return rawOutcome{
		rate:   n / at[1].at.Sub(at[0].at).Seconds(),
		broker: (at[1].broker - at[0].broker).Seconds() * 1e6 / n,
		client: (at[1].client - at[0].client).Seconds() * 1e6 / n,
	}, nil
}

// edge is the time from the end of the measured part to the end of a run.
const edge = 50 * time.Millisecond

func take(pair *rawamqp.Pair, broker int) (s sample, err error) {
	s.at, s.received = time.Now(), pair.Received()
	var theirs, own bool
	s.broker, theirs = peerbench.ProcessCPU(broker)
	s.client, own = peerbench.ProcessCPU(os.Getpid())
	if !theirs || !own {
		err = fmt.Errorf("the processor time is not known; has the broker ended?")
	}
	return s, err
}

// check waits until the broker's own counters equal the client's.
func (t target) check(ctx context.Context, queue string, want int64) error {
	ctx, cancel := context.WithTimeout(ctx, countWait)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		stored, settled, err := t.count(ctx, queue)
		if err == nil && stored == want && settled == want {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			differ := fmt.Errorf("the client sent and received %d messages, the broker stored %d and saw %d accepted", want,
				stored, settled)
			return errors.Join(differ, err)
		}
	}
}

// countArtemis returns the counters of an Artemis.
func countArtemis(a *brokertest.Artemis) counter {
	return func(ctx context.Context, queue string) (stored, settled int64, err error) {
		q, err := a.Queue(ctx, queue)
		return q.MessagesAdded, q.MessagesAcked, err
	}
}

// countEmbedded returns the counters of perfmq broker, whose control is at a URL.
func countEmbedded(stats string) counter {
	return func(ctx context.Context, queue string) (stored, settled int64, err error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, stats, nil)
		if err != nil {
			return 0, 0, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, 0, err
		}
		defer resp.Body.Close() //nolint:errcheck // it was only read
		var s struct {
			Destinations []struct {
				Address string
				Queues  []struct{ Stored, Settled int64 }
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
			return 0, 0, err
		}
		for _, d := range s.Destinations {
			if d.Address == "queue://"+queue && len(d.Queues) == 1 {
				return d.Queues[0].Stored, d.Queues[0].Settled, nil
			}
		}
		return 0, 0, fmt.Errorf("the broker knows no queue %s", queue)
	}
}
