//go:build unix

package hostile

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/tcpproxy"
	"github.com/perfmq/perfmq/pkg/driver"
)

// session is a load between a driver and the embedded broker, through a proxy that mutates the bytes. The seed and the
// number of the case determine all choices.
type session struct {
	Protocol string
	Seed     uint64
	Case     uint64

	// Chosen by choose.
	mode     string
	up, down []mutation
	mean     float64
	options  []string
	tx       int
	messages int
	size     int
	pending  int
	connect  time.Duration
	watch    time.Duration
}

// The modes of sessions.
const (
	modeCalm     = "calm"     // nothing is changed, only late: all has to go well
	modeRequests = "requests" // bytes from the driver are changed
	modeAnswers  = "answers"  // bytes from the broker are changed
	modeBoth     = "both"
	modeEnds     = "ends" // connections end, or freeze
)

// sessionOptions are the options with which a session may open a driver.
func sessionOptions(protocol string) [][]string {
	switch protocol {
	case broker.STOMP:
		return [][]string{
			nil, {"heart-beat=100ms"}, {"heart-beat=0"},
		}
	case broker.RocketMQ:
		return [][]string{
			nil,
			{"send=sync"},
			{"send=batch", "batch-size=5"},
			{"queues=1"},
			{"queues=20"},
			{"pull-batch=1"},
			{"send=oneway"},
		}
	default:
		return [][]string{nil, {"idle-timeout=200ms"}, {"idle-timeout=0"}}
	}
}

// choose sets the parameters of a session.
func (s *session) choose() {
	rng := rand.New(rand.NewPCG(s.Seed, s.Case)) //nolint:gosec // repeatable, not secret
	modes := []string{modeCalm, modeRequests, modeRequests, modeAnswers, modeAnswers, modeBoth, modeEnds}
	s.mode = modes[rng.IntN(len(modes))]
	late := rng.IntN(2) == 0
	s.up = kindsOf(s.mode == modeRequests || s.mode == modeBoth, late || s.mode == modeCalm, s.mode == modeEnds)
	s.down = kindsOf(s.mode == modeAnswers || s.mode == modeBoth, late || s.mode == modeCalm, s.mode == modeEnds)
	s.mean = []float64{100, 1000, 10_000, 100_000}[rng.IntN(4)]
	options := sessionOptions(s.Protocol)
	s.options = options[rng.IntN(len(options))]
	s.messages, s.size, s.pending = 1+rng.IntN(300), 1+rng.IntN(3000), 1+rng.IntN(50)
	if s.Protocol != broker.RocketMQ && rng.IntN(4) == 0 {
		s.tx = 1 + rng.IntN(5)
		s.pending += s.tx
	}
	s.connect, s.watch = 300*time.Millisecond, 300*time.Millisecond
	if s.mode == modeCalm { // late bytes must not be taken for silence, and all must arrive in time
		s.connect, s.watch = 2*patience, 2*patience
		s.mean, s.messages, s.size = max(s.mean, 1000), min(s.messages, 100), min(s.size, 1000)
		if len(s.options) > 0 && (s.options[0] == "heart-beat=100ms" || s.options[0] == "idle-timeout=200ms") {
			s.options = nil
		}
	}
}

// confirms reports whether the broker must have taken each accepted message. In a transaction it need not have: a SEND
// that is cut within its headers can swallow the COMMIT, and ask for its receipt.
func (s *session) confirms() bool {
	changed := s.mode == modeAnswers || s.mode == modeBoth
	return !changed && (s.tx == 0 || s.mode != modeRequests) && !slices.Contains(s.options, "send=oneway")
}

// run does a session, and reports its outcome and its violations of the contract.
func (s *session) run(f driver.Factory) *report {
	s.choose()
	before := goleak.IgnoreCurrent()
	r := &report{States: map[string]int{}, Classes: map[string]int{}, Session: fmt.Sprintf("%s, %d messages, options %v, "+
		"transactions of %d, a change each %.0f bytes", s.mode, s.messages, s.options, s.tx, s.mean)}
	b, err := broker.Start(broker.Config{
		Listen: map[string]string{s.Protocol: "127.0.0.1:0"}, MaxMessage: 1 << 20,
		Limits: store.Config{Limit: 10_000, LimitBytes: 16 << 20},
	})
	if err != nil {
		r.violate("%v", err)
		return r
	}
	stop := make(chan struct{})
	proxy, err := tcpproxy.New(tcpproxy.Config{Target: b.Addr(s.Protocol), Stream: s.mutants(stop)})
	if err != nil {
		r.violate("%v", err)
		return r
	}
	s.load(f, proxy.Addr(), r)
	s.compare(b, r)
	close(stop)
	proxy.Close()
	b.Close()
	r.noLeaks(before)
	r.MaxRSS = ownMaxRSS()
	return r
}

// load runs a producer and a consumer until all messages have been received, something fails, or the time is over.
func (s *session) load(f driver.Factory, addr string, r *report) {
	opts := driver.OpenOptions{URL: f.Schemes[0] + "://" + addr, ConnectTimeout: s.connect, Options: f.NewOptions()}
	options := s.options
	if s.Protocol == broker.RocketMQ {
		options = append([]string{"broker-address=" + addr, "send-timeout=" + s.connect.String()}, options...)
	}
	if err := driver.SetOptions(opts.Options, options); err != nil {
		r.violate("%v", err)
		return
	}
	d, err := f.Open(context.Background(), opts)
	if err != nil {
		r.violate("%v", err)
		return
	}
	defer r.closes("Driver.Close", d.Close)
	opening, cancel := context.WithTimeout(context.Background(), s.connect+lastSay)
	defer cancel()
	dest := driver.Destination{Name: "q"}
	c, err := d.Consumer(opening, driver.ConsumerSpec{
		Connection: driver.Connection{Key: "c", Name: "session"}, Destination: dest, Name: "consumer-0",
	})
	if err != nil {
		r.Open = failureOf(err)
		r.classified(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.watch)
	defer cancel()
	var receiving sync.WaitGroup
	var runErr error
	receiving.Go(func() {
		runErr = c.Run(ctx, func(*driver.Delivery) driver.Verdict {
			if r.Received++; r.Received == s.messages {
				cancel()
			}
			return driver.Accept
		})
	})
	s.send(d, dest, r)
	if r.Run != nil || r.Open != nil {
		cancel()
	}
	receiving.Wait()
	if runErr != nil {
		r.Run = failureOf(runErr)
		r.classified(runErr)
	}
	r.closes("Consumer.Close", c.Close)
}

// send sends all messages, and waits for their outcomes.
func (s *session) send(d driver.Driver, dest driver.Destination, r *report) {
	ctx, cancel := context.WithTimeout(context.Background(), s.watch)
	defer cancel()
	free := make(chan driver.Slot, s.pending)
	for i := range s.pending {
		free <- driver.NewSlot(uint32(i), 1) //nolint:gosec // few
	}
	l := &ledger{r: r, open: map[driver.Slot]bool{}, changed: make(chan struct{}, 1)}
	done := driver.DoneFunc(func(slot driver.Slot, o driver.Outcome) {
		l.Done(slot, o)
		if o.State != driver.Accepted && o.Class == driver.ClassNone {
			l.violate("a send ended as %s, without a class", o.State)
		}
		select {
		case free <- driver.NewSlot(slot.Index(), slot.Generation()+1):
		default: // a second Done, which was noted
		}
	})
	opening, opened := context.WithTimeout(context.Background(), s.connect+lastSay)
	defer opened()
	p, err := d.Producer(opening, driver.ProducerSpec{
		Connection: driver.Connection{Key: "p", Name: "session"}, Destination: dest, Name: "producer-0",
		MaxPending: s.pending, CommitInterval: s.tx, Variants: []driver.Variant{{Body: make([]byte, s.size), Priority: -1}},
	}, done)
	if err != nil {
		r.Open = failureOf(err)
		r.classified(err)
		return
	}
	for range s.messages {
		var slot driver.Slot
		select {
		case slot = <-free:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		l.begin(slot)
		if err := p.Send(ctx, &driver.Message{Slot: slot, Time: time.Now().UnixMicro()}); err != nil {
			l.take(slot, err)
			r.classified(err)
			break
		}
		r.Sent++
	}
	if f, ok := p.(driver.Flusher); ok {
		_ = f.Flush(ctx) // Close reports the sends that Flush could not end
	}
	for wait := true; wait && l.pending() > 0; {
		select {
		case <-l.changed:
		case <-ctx.Done():
			wait = false
		}
	}
	r.closes("Producer.Close", p.Close)
	l.close()
}

// classified checks that an error has a class and is not too long.
func (r *report) classified(err error) {
	var e *driver.Error
	if !errors.As(err, &e) || driver.ClassOf(err) == driver.ClassNone {
		r.violate("an error without a class: %v", err)
	}
	if len(err.Error()) > textLimit {
		r.violate("an error of %d bytes: %.200s", len(err.Error()), err)
	}
}

// compare compares the counts with the broker's, as far as the driver sees true answers.
func (s *session) compare(b *broker.Broker, r *report) {
	stats := b.Stats()
	var sent, delivered uint64
	for _, d := range stats.Destinations {
		sent += d.Sent
		for _, q := range d.Queues {
			delivered += q.Delivered
		}
	}
	if stats.RocketMQ != nil {
		delivered = stats.RocketMQ.Delivered
	}
	accepted := r.States[driver.Accepted.String()]
	if s.mode == modeAnswers || s.mode == modeBoth {
		return
	}
	if s.confirms() && uint64(accepted) > sent { //nolint:gosec // not negative
		r.violate("%d sends were accepted, but the broker has taken only %d", accepted, sent)
	}
	if uint64(r.Received) > delivered { //nolint:gosec // not negative
		r.violate("%d messages were received, but the broker has delivered only %d", r.Received, delivered)
	}
	if s.mode != modeCalm {
		return
	}
	if r.Open != nil || r.Run != nil {
		r.violate("nothing was changed, but it failed: %+v %+v", r.Open, r.Run)
	}
	if accepted != s.messages || r.Received != s.messages {
		r.violate("nothing was changed, but of %d messages %d were accepted and %d received: %v %+v", s.messages, accepted, r.Received, r.Classes, r.Outcome)
	}
}

// Flags of the sessions.
var (
	sessionTime = flag.Duration("session.time", 3*time.Second, "for how long to run sessions, for each protocol")
	sessionSeed = flag.Uint64("session.seed", 1, "what all that sessions do follows from; 0 takes one by chance")
	sessionCase = flag.Int64("session.case", -1, "only the session of that number; all without")
)

// TestSession runs loads between the drivers and the embedded broker, and mutates their bytes.
func TestSession(t *testing.T) {
	t.Parallel()
	seed := *sessionSeed
	if seed == 0 {
		seed = rand.Uint64() //nolint:gosec // not secret
	}
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) { runSessions(t, &s, seed) })
	}
}

// runSessions runs sessions of a driver until the time is over, some at once.
func runSessions(t *testing.T, s *subject, seed uint64) {
	hosts := &hosts{}
	t.Cleanup(hosts.end)
	var total tally
	var next atomic.Uint64
	last := uint64(math.MaxUint64)
	if *sessionCase >= 0 {
		last = uint64(*sessionCase)
		next.Store(last)
	}
	began, length := time.Now(), *sessionTime
	if testing.Short() {
		length = min(length, time.Second)
	}
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for (time.Since(began) < length || !total.enough() && time.Since(began) < 5*patience) && !t.Failed() {
				n := next.Add(1) - 1
				if n > last {
					return
				}
				one := session{Protocol: s.factory.Name, Seed: seed, Case: n}
				r, err := hosts.try(&job{Driver: s.name, Session: &one})
				var wrong []string
				switch {
				case err != nil:
					wrong = append(wrong, err.Error())
				case r.MaxRSS > memoryLimit*raceFactor:
					wrong = append(wrong, fmt.Sprintf("the process took %d MiB", r.MaxRSS>>20))
				}
				if wrong = append(wrong, total.add(r)...); len(wrong) > 0 {
					t.Errorf("session %d of seed %d: %s\n%s\nonce more: go test ./internal/hostile -run 'TestSession/%s' -session.seed=%d -session.case=%d",
						n, seed, strings.Join(wrong, "\n"), describe(r), s.name, seed, n)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("seed %d: %d sessions, %d of which failed somewhere: %d messages accepted, %d received; at most %d MiB", seed, total.sessions,
		total.failed, total.accepted, total.received, total.most>>20)
	require.True(t, *sessionCase >= 0 || t.Failed() || total.enough())
}

// tally adds up the reports of sessions.
type tally struct {
	mu                                   sync.Mutex
	sessions, failed, accepted, received int
	most                                 int64 // memory of one
}

// enough reports whether messages got through and loads failed.
func (a *tally) enough() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.accepted > 0 && a.received > 0 && a.failed > 0
}

// add counts a session, and returns its violations.
func (a *tally) add(r *report) []string {
	if r == nil {
		return []string{"it did not end"}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions++
	a.accepted += r.States[driver.Accepted.String()]
	a.received += r.Received
	a.most = max(a.most, r.MaxRSS)
	if r.Open != nil || r.Run != nil || len(r.Classes) > 0 {
		a.failed++
	}
	return r.Violations
}
