package rendezvous

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Options are where a load meets the others.
type Options struct {
	URL       string        `set:"rendezvous" arg:"URL" check:"rendezvous" help:"begin and end with the other shards, and hand the result over, at perfmq merge --rendezvous: http[s]://HOST:PORT"`
	TokenFile string        `set:"token-file" needs:"rendezvous" arg:"FILE" help:"FILE with the token of the rendezvous"`
	CAFile    string        `set:"rendezvous-ca" needs:"rendezvous" arg:"FILE" none:"as for the broker" help:"PEM file of the authorities that the rendezvous' certificate is from"`
	Timeout   time.Duration `set:"rendezvous-timeout" default:"5m" least:"1s" help:"time limit for the rendezvous and all shards to be there and connected"`

	Token string
	dial  func(ctx context.Context, network, address string) (net.Conn, error) // nil but in tests

	// TLS has no value: without CAFile its settings are the broker's.
	TLS *driver.TLS
}

// Member is a shard at a rendezvous.
type Member struct {
	RunID int64
	// Dir is the folder of the result. It is set before Start, which hands it over while it grows.
	Dir string

	o       Options
	halt    chan<- string // gets why the load must end, once
	say     func(string)
	at      *url.URL
	http    http.Client
	shift   time.Duration
	news    chan struct{}      // closed when the start or the end is known, or the rendezvous is lost
	closing context.CancelFunc // of follow
	running sync.WaitGroup
	sent    map[string]int64 // bytes of files; of follow, and then of Leave

	mu    sync.Mutex
	state report
	order order // the last one
	begun bool
	lost  error // of the rendezvous
}

// Join comes to the rendezvous. It waits for one that cannot be reached yet. halt gets why the load must end, once.
func Join(ctx context.Context, o Options, s Shard, halt chan<- string, say func(string)) (*Member, error) {
	at, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	config, err := o.TLS.Config(at.Hostname())
	if err != nil {
		return nil, &driver.Error{Class: driver.ClassTLS, Err: err}
	}
	m := &Member{
		o: o, at: at, shift: s.ClockShift, halt: halt, say: say, news: make(chan struct{}), sent: map[string]int64{},
		state: report{Protocol: protocol, Who: s, Session: rand.Text()}, http: http.Client{
			Transport: &http.Transport{TLSClientConfig: config, IdleConnTimeout: patience, DialContext: o.dial},
			// It would take the token elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	var first order
	err = m.repeat(ctx, o.Timeout, func() (err error) {
		first, err = m.report(ctx, nil, nil)
		return err
	})
	if err != nil {
		m.http.CloseIdleConnections()
		return nil, m.failure("meet the other shards", err)
	}
	m.RunID, m.state.RunID = first.RunID, first.RunID
	following, cancel := context.WithCancel(context.Background())
	m.closing = cancel
	m.running.Go(func() { m.follow(following) })
	return m, nil
}

// failure explains why the rendezvous cannot be used.
func (m *Member) failure(doing string, err error) error {
	class, hint := driver.ClassConnect, "start perfmq merge --rendezvous there"
	var r *Refusal
	switch {
	case errors.As(err, &r):
		class, hint = driver.ClassAuth, r.Hint
	case errors.As(err, new(*tls.CertificateVerificationError)):
		class, hint = driver.ClassTLS, "give its authority by --rendezvous-ca"
	}
	return driver.Errorf(class, doing+" at "+m.at.Scheme+"://"+m.at.Host, hint, "%w", err)
}

// repeat tries something until it succeeds, is refused, or has failed for a time.
func (m *Member) repeat(ctx context.Context, limit time.Duration, try func() error) error {
	for begun := time.Now(); ; {
		err := try()
		permanent := errors.As(err, new(*Refusal)) || errors.As(err, new(*tls.CertificateVerificationError)) ||
			errors.Is(err, http.ErrSchemeMismatch)
		if err == nil || permanent || time.Since(begun) > limit || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
		}
	}
}

// report says how the load is, and returns the order of the host.
func (m *Member) report(ctx context.Context, p *part, bye *Goodbye) (o order, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	m.mu.Lock()
	q := m.state
	m.mu.Unlock()
	q.Part, q.Bye = p, bye
	body, err := json.Marshal(&q)
	if err != nil {
		return o, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.at.JoinPath("/report").String(), bytes.NewReader(body))
	if err != nil {
		return o, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+m.o.Token)
	w, err := m.http.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return o, err
	}
	defer func() { _ = w.Body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(w.Body, maxReply))
	if err != nil {
		return o, err
	}
	if w.StatusCode != http.StatusOK {
		refusal := &Refusal{Status: w.StatusCode}
		if json.Unmarshal(text, refusal) != nil || refusal.Text == "" {
			refusal.Text = fmt.Sprintf("the server answers %.100q: it is no rendezvous of this version", w.Status)
			refusal.Hint = "name the address of perfmq merge --rendezvous, with http or https as it says"
		}
		return o, refusal
	}
	return o, json.Unmarshal(text, &o)
}

// follow reports, and hands the files over while they grow, until ctx ends or the host is lost.
func (m *Member) follow(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := m.repeat(ctx, patience, func() error {
			o, err := m.report(ctx, nil, nil)
			if err == nil {
				m.obey(o)
			}
			return err
		})
		if err != nil {
			if ctx.Err() == nil {
				m.lose(err)
			}
			return
		}
		m.mu.Lock()
		begun := m.begun
		m.mu.Unlock()
		if begun {
			_ = m.push(ctx, false) // Leave tries again, and says it
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// obey notes an order.
func (m *Member) obey(o order) {
	m.mu.Lock()
	before := m.order
	m.order = o
	m.mu.Unlock()
	if before.Start == 0 && before.End == "" && (o.Start != 0 || o.End != "") {
		close(m.news)
	}
	if before.End == "" && o.End != "" {
		m.halt <- "the rendezvous ends the run: " + o.End
	}
}

// Ended reports whether the rendezvous ended the run.
func (m *Member) Ended() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.order.End != ""
}

// lose gives the host up. A load that has begun continues by itself.
func (m *Member) lose(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = driver.Errorf(driver.ClassConnect, "", "join the folders of all shards by perfmq merge DIR...",
		"the rendezvous at %s was lost: %w", m.at.Host, err)
	if m.begun && m.order.End == "" {
		m.say("warning: the rendezvous is lost: this load continues to its end; its result is in " + m.Dir)
	}
	if m.order.Start == 0 && m.order.End == "" {
		close(m.news)
	}
}

// Start reports that the load is connected, and waits for the start. It returns that by this machine's clock, with the
// lead of that over the clock of the host.
func (m *Member) Start(ctx context.Context) (time.Time, *result.Offset, error) {
	ctx, cancel := context.WithTimeout(ctx, m.o.Timeout+patience)
	defer cancel()
	m.mu.Lock()
	m.state.Connected = true
	m.mu.Unlock()
	select {
	case <-m.news:
	case <-ctx.Done():
	}
	m.mu.Lock()
	o, lost := m.order, m.lost
	m.mu.Unlock()
	switch {
	case o.End != "":
		return time.Time{}, nil, driver.Errorf(driver.ClassConnect, "", "", "the run did not begin: %s", o.End)
	case o.Start == 0:
		return time.Time{}, nil, cmp.Or(lost, ctx.Err())
	}
	ahead := m.Clock(ctx)
	if ahead == nil {
		return time.Time{}, nil, driver.Errorf(driver.ClassTimeout, "", "", "the rendezvous did not tell its clock")
	}
	at := time.UnixMicro(o.Start + int64(ahead.Ahead))
	ahead.Error += result.Drift(at.Sub(m.now()))
	m.mu.Lock()
	m.begun = true
	m.mu.Unlock()
	return at, ahead, nil
}

func (m *Member) now() time.Time { return time.Now().Add(m.shift) }

// Clock measures how far this machine's clock is ahead of the host's, as NTP does (RFC 5905, section 8): by the fastest
// of some reports.
func (m *Member) Clock(ctx context.Context) *result.Offset {
	const exchanges = 8
	ctx, cancel := context.WithTimeout(ctx, lead/2)
	defer cancel()
	var best *result.Offset
	least := int64(math.MaxInt64)
	for range exchanges {
		sent := m.now().UnixMicro()
		o, err := m.report(ctx, nil, nil)
		if err != nil {
			break
		}
		came := m.now().UnixMicro()
		if way := came - sent - (o.Answered - o.Received); way >= 0 && way < least {
			least = way
			best = &result.Offset{
				Ahead: result.Difference((sent - o.Received + came - o.Answered) / 2), Error: way/2 + 2,
			}
		}
	}
	return best
}

// push sends what the host does not have yet.
func (m *Member) push(ctx context.Context, whole bool) error {
	names, rest := files()
	if whole {
		names = append(names, rest...)
	}
	sizes := map[string]int64{}
	for _, name := range slices.Backward(names) { // the histograms first: those that are there have their rows
		if info, err := os.Stat(filepath.Join(m.Dir, name)); err == nil {
			sizes[name] = info.Size()
		}
	}
	for _, name := range names {
		for m.sent[name] < sizes[name] {
			if err := m.pushPart(ctx, name, sizes[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Member) pushPart(ctx context.Context, name string, size int64) error {
	f, err := os.Open(filepath.Join(m.Dir, name))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	p := &part{Name: name, Offset: m.sent[name], Data: make([]byte, min(chunk, size-m.sent[name]))}
	p.Last = p.Offset+int64(len(p.Data)) == size
	if _, err := f.ReadAt(p.Data, p.Offset); err != nil {
		return err
	}
	o, err := m.report(ctx, p, nil)
	if err != nil {
		return err
	}
	if o.Size < 0 || o.Size > size {
		return fmt.Errorf("the rendezvous has %d bytes of %s, which has %d", o.Size, name, size)
	}
	m.sent[name] = o.Size
	return nil
}

// Leave hands the rest over, if it is complete, and says goodbye. The error says that the host lacks something.
func (m *Member) Leave(ctx context.Context, bye Goodbye, complete bool) (err error) {
	defer m.http.CloseIdleConnections()
	m.closing()
	m.running.Wait()
	m.mu.Lock() // an engine that was abandoned may still start
	lost, begun := m.lost, m.begun
	m.mu.Unlock()
	if lost != nil {
		return lost
	}
	if begun && complete {
		err = m.repeat(ctx, 2*patience, func() error { return m.push(ctx, true) })
	}
	again := m.repeat(ctx, patience, func() error {
		_, err := m.report(ctx, nil, &bye)
		return err
	})
	if err = cmp.Or(err, again); err != nil {
		return m.failure("hand the result over", err)
	}
	return nil
}

// Plain reports whether the token can be read on the network.
func (o *Options) Plain() bool {
	u, err := url.Parse(o.URL)
	return err == nil && u.Scheme == "http" && !listen.IsLoopback(u.Host)
}
