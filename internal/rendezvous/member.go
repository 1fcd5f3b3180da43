package rendezvous

import (
	"bytes"
	"cmp"
	"context"
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

// Shard is what a load tells of itself.
type Shard struct {
	Shard          result.Shard
	Version        string
	PlanHash, Host string
	Aborts         []Abort
	ClockShift     time.Duration // of this machine's clock, for tests
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
	session string
	shift   time.Duration
	started chan int64         // the start, by the clock of the host
	closing context.CancelFunc // of follow
	running sync.WaitGroup
	endPush func() // waits for the end of pushing

	mu    sync.Mutex
	begun bool
	end   string // why all must end
	lost  error  // of the rendezvous

	sent map[string]int64 // bytes of files
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
		o: o, at: at, shift: s.ClockShift, halt: halt, say: say, started: make(chan int64, 1),
		endPush: func() {}, sent: map[string]int64{}, http: http.Client{
			Transport: &http.Transport{TLSClientConfig: config, IdleConnTimeout: patience, DialContext: o.dial},
			// It would take the token elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	q := hello{protocol, s.Version, s.Shard, s.PlanHash, s.Host, s.Aborts}
	var w welcome
	err = m.repeat(ctx, o.Timeout, func() error { return m.post(ctx, "/hello", &q, &w) })
	if err != nil {
		m.http.CloseIdleConnections()
		return nil, m.failure("meet the other shards", err)
	}
	m.session, m.RunID = w.Session, w.RunID
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
		case <-time.After(retry):
		case <-ctx.Done():
		}
	}
}

// post asks the host something.
func (m *Member) post(ctx context.Context, path string, question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 2*pollTime)
	defer cancel()
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.at.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+m.o.Token)
	w, err := m.http.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return err
	}
	defer func() { _ = w.Body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(w.Body, maxReply))
	if err != nil {
		return err
	}
	if w.StatusCode != http.StatusOK {
		refusal := &Refusal{Status: w.StatusCode}
		if json.Unmarshal(text, refusal) != nil || refusal.Text == "" {
			refusal.Text = fmt.Sprintf("the server answers %.100q: it is no rendezvous of this version", w.Status)
			refusal.Hint = "name the address of perfmq merge --rendezvous, with http or https as it says"
		}
		return refusal
	}
	return json.Unmarshal(text, answer)
}

// follow listens to the host until ctx ends or the host is lost.
func (m *Member) follow(ctx context.Context) {
	q := state{Session: m.session}
	for ctx.Err() == nil {
		var n news
		if err := m.repeat(ctx, patience, func() error { return m.post(ctx, "/wait", &q, &n) }); err != nil {
			if ctx.Err() == nil {
				m.lose(err)
			}
			return
		}
		if n.Start > 0 && !q.Started {
			q.Started = true
			m.started <- n.Start
		}
		if n.End != "" && !q.Ended {
			q.Ended = true
			m.mu.Lock()
			m.end = n.End
			m.mu.Unlock()
			m.halt <- "the rendezvous ends the run: " + n.End
		}
	}
}

// Ended reports whether the rendezvous ended the run.
func (m *Member) Ended() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.end != ""
}

// lose gives the host up. A load that has begun continues by itself.
func (m *Member) lose(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost != nil {
		return
	}
	m.lost = driver.Errorf(driver.ClassConnect, "", "join the folders of all shards by perfmq merge DIR...",
		"the rendezvous at %s was lost: %w", m.at.Host, err)
	if m.begun && m.end == "" {
		m.say("warning: the rendezvous is lost: this load continues to its end; its result is in " + m.Dir)
	}
	select {
	case m.started <- 0: // for one that still waits
	default:
	}
}

// Start reports that the load is connected, and waits for the start. It returns that by this machine's clock, with the
// lead of that over the clock of the host.
func (m *Member) Start(ctx context.Context) (time.Time, *result.Offset, error) {
	ctx, cancel := context.WithTimeout(ctx, m.o.Timeout+patience)
	defer cancel()
	err := m.repeat(ctx, patience, func() error {
		return m.post(ctx, "/connected", &state{Session: m.session}, &nothing{})
	})
	if err != nil && ctx.Err() == nil {
		return time.Time{}, nil, m.failure("wait for the other shards", err)
	}
	start := int64(0)
	select {
	case start = <-m.started:
	case <-ctx.Done():
	}
	m.mu.Lock()
	end, lost := m.end, m.lost
	m.mu.Unlock()
	switch {
	case end != "":
		return time.Time{}, nil, driver.Errorf(driver.ClassConnect, "", "", "the run did not begin: %s", end)
	case start == 0 && lost != nil:
		return time.Time{}, nil, lost
	case start == 0:
		return time.Time{}, nil, ctx.Err()
	}
	ahead := m.Clock(ctx)
	if ahead == nil {
		return time.Time{}, nil, driver.Errorf(driver.ClassTimeout, "", "", "the rendezvous did not tell its clock")
	}
	at := time.UnixMicro(start + int64(ahead.Ahead))
	ahead.Error += result.Drift(at.Sub(m.now()))
	m.mu.Lock()
	m.begun = true
	m.mu.Unlock()
	pushing, cancel := context.WithCancel(context.Background())
	var pushed sync.WaitGroup
	m.endPush = func() { cancel(); pushed.Wait() }
	pushed.Go(func() { m.pushAlways(pushing) })
	return at, ahead, nil
}

func (m *Member) now() time.Time { return time.Now().Add(m.shift) }

// Clock measures how far this machine's clock is ahead of the host's, as NTP does (RFC 5905, section 8): by the fastest
// of some requests.
func (m *Member) Clock(ctx context.Context) *result.Offset {
	const exchanges = 8
	ctx, cancel := context.WithTimeout(ctx, lead/2)
	defer cancel()
	var best *result.Offset
	least := int64(math.MaxInt64)
	for range exchanges {
		var at instant
		sent := m.now().UnixMicro()
		if err := m.post(ctx, "/clock", &nothing{}, &at); err != nil {
			break
		}
		came := m.now().UnixMicro()
		if way := came - sent - (at.Answered - at.Received); way >= 0 && way < least {
			least = way
			best = &result.Offset{
				Ahead: result.Difference((sent - at.Received + came - at.Answered) / 2), Error: way/2 + 2,
			}
		}
	}
	return best
}

// pushAlways hands the files over while they grow.
func (m *Member) pushAlways(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = m.push(ctx, false) // Leave tries again, and says it
		case <-ctx.Done():
			return
		}
	}
}

// push sends what the host does not have yet.
func (m *Member) push(ctx context.Context, whole bool) error {
	names, rest := files()
	if whole {
		names = append(names, rest...)
	}
	sizes := map[string]int64{}
	for i := range names { // the histograms first: those that are there have their rows
		name := names[len(names)-1-i]
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
	q := part{m.session, name, m.sent[name], make([]byte, min(chunk, size-m.sent[name]))}
	if _, err := f.ReadAt(q.Data, q.Offset); err != nil {
		return err
	}
	var have stored
	if err := m.post(ctx, "/file", &q, &have); err != nil {
		return err
	}
	if have.Size < 0 || have.Size > size {
		return fmt.Errorf("the rendezvous has %d bytes of %s, which has %d", have.Size, name, size)
	}
	m.sent[name] = have.Size
	return nil
}

// Leave hands the rest over, if it is complete, and says goodbye. The error says that the host lacks something.
func (m *Member) Leave(ctx context.Context, bye Goodbye, complete bool) (err error) {
	defer m.http.CloseIdleConnections()
	defer m.running.Wait()
	defer m.closing()
	m.endPush()
	m.mu.Lock()
	lost, begun := m.lost, m.begun
	m.mu.Unlock()
	if lost != nil {
		return lost
	}
	if begun && complete {
		err = m.repeat(ctx, 2*patience, func() error { return m.push(ctx, true) })
	}
	bye.Session = m.session
	again := m.repeat(ctx, patience, func() error { return m.post(ctx, "/bye", &bye, &nothing{}) })
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
