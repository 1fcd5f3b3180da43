package page

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// Times of a live page. A request for a newer version is answered after pollTime at the latest, well within the limit
// that listen sets for a request; the browser then asks again. Close waits for browsers that asked within seenTime.
const (
	pollTime  = 5 * time.Second
	lookEvery = 20 * time.Millisecond
	seenTime  = 2 * time.Second
)

// ended is the version of a page that does not change any more.
const ended = "ended"

// Feed serves the page of the run in this process. It has the methods of a [result.Writer], and keeps thinned rows and
// sums in memory. The page is rendered on request, once for each version; rows wait meanwhile.
type Feed struct {
	http *listen.HTTP

	mu      sync.Mutex
	last    stats.Snapshot
	run     Run
	sum     *result.Result
	rows    int
	version string
	html    []byte // of the version; nil before the first request
	err     error
	asked   time.Time // when a browser asked last, or got a version that is not the last one
}

// NewFeed listens on address, HOST:PORT or :PORT (on loopback).
func NewFeed(address string) (*Feed, error) {
	l, err := listen.TCP(context.Background(), "the page", "--web", address)
	if err != nil {
		return nil, err
	}
	return newFeed(l, address), nil
}

func newFeed(l net.Listener, address string) *Feed {
	f := &Feed{run: Run{Name: "this run", of: "this run", Live: true}}
	f.run.begin(1)
	f.run.series.limit = limitOf(2) // it is sent each second
	f.http = listen.Serve(l, f.handler(address, l.Addr().String()))
	return f
}

// Address returns the address of the page, with the real port if port 0 was requested.
func (f *Feed) Address() string { return f.http.Addr().String() }

// change makes the next version of the page, until the function that it returns is called.
func (f *Feed) change(version string) (end func()) {
	f.mu.Lock()
	f.version, f.html = version, nil
	return f.mu.Unlock
}

// Start sets the head.
func (f *Feed) Start(head result.Head) error {
	defer f.change("0")()
	f.sum = result.NewSum(head)
	return nil
}

// Look sets the state of the run at the end of the next row.
func (f *Feed) Look(s *stats.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = *s
}

// Row adds a row with its histograms.
func (f *Feed) Row(row result.Row) error {
	f.rows++
	defer f.change(strconv.Itoa(f.rows))()
	f.run.add(&row)
	f.sum.AddRow(&row)
	return nil
}

// Finish sets the result.
func (f *Feed) Finish(r result.Result) error {
	defer f.change(ended)()
	r.Rows, r.Complete = nil, true
	f.run.Result, f.run.Live = &r, false
	return nil
}

// Close stops serving, after browsers that follow the page have had the time to fetch the last version.
func (f *Feed) Close() error {
	wait(context.Background(), func() bool { return !f.followed() })
	return f.http.Close()
}

// wait waits until something is done, at most for pollTime.
func wait(ctx context.Context, done func() bool) {
	ctx, end := context.WithTimeout(ctx, pollTime)
	defer end()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for !done() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

func (f *Feed) followed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version == ended && time.Since(f.asked) < seenTime
}

// handler serves reads only. On loopback it refuses requests with a foreign host name, because these come from web
// pages (DNS rebinding).
func (f *Feed) handler(address, at string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", f.serve)
	secured := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
	if listen.IsLoopback(at) {
		return listen.Local(listen.HostNames(address), secured)
	}
	return secured
}

// serve answers with the page as soon as its version is not the one in after. When pollTime is over, a browser with a
// page keeps it, and one without a page gets an error: the run has not begun.
func (f *Feed) serve(w http.ResponseWriter, r *http.Request) {
	after := r.FormValue("after")
	var text []byte
	var err error
	wait(r.Context(), func() bool {
		text, err = f.newer(after)
		return text != nil || err != nil
	})
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case text != nil:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(text)
	case after == "":
		http.Error(w, "the run has not begun", http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// newer returns the page, unless the browser has this version or the run has not begun.
func (f *Feed) newer(after string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.version == "" {
		return nil, nil
	}
	if f.version != after && f.html == nil {
		run := f.run
		p := &Page{Runs: []*Run{&run}}
		if run.Result == nil {
			run.Result = run.rated(f.sum)
			p.now = f.now(run.Result)
		}
		p.Title = p.title()
		var b bytes.Buffer
		f.err = p.html(&b, f.version)
		f.html = b.Bytes()
	}
	if f.version != ended {
		f.asked = time.Now()
	}
	if f.version == after {
		return nil, nil
	}
	return f.html, f.err
}

// now is the state of a run that continues, for assets/live.js. Times are in microseconds.
type now struct {
	Elapsed int64    `json:"elapsed"` // of the load
	Phase   string   `json:"phase"`
	Step    string   `json:"step"`
	InStep  int64    `json:"inStep"`  // since the step began
	Outage  int64    `json:"outage"`  // its length so far; 0 if there is none
	Down    int      `json:"down"`    // workers without a connection
	Pending []string `json:"pending"` // thresholds without a value yet
	// Plan has the names and the lengths of the steps.
	Plan json.RawMessage `json:"plan"`
}

// now returns the state of the run, and adds to r what the rows lack: thresholds as they stand, findings, outages,
// stalls and the verification.
func (f *Feed) now(r *result.Result) *now {
	n := &now{Elapsed: f.last.Elapsed, Phase: f.last.Phase, Step: f.last.Step, Plan: r.Plan}
	if k := len(r.Steps); k > 0 {
		n.InStep = r.Steps[k-1].End - r.Steps[k-1].Start
	}
	r.Outcome.Reason = "" // the verdict says that it runs
	if o := f.last.Outage; o != nil {
		n.Outage, n.Down = o.Since.Microseconds(), o.Down
	}
	s := f.last.SoFar
	if s == nil {
		return n
	}
	r.Outages, r.MoreOutages, r.Stalls, r.BrokerSide = s.Outages, s.MoreOutages, s.Stalls, s.BrokerSide
	r.Verification, r.Findings = s.Verification, s.Findings
	r.Outcome.Problems, r.Outcome.Warnings = s.Problems(), s.Warnings()
	for _, t := range s.Thresholds {
		if t.Measured == nil {
			n.Pending = append(n.Pending, t.Threshold)
		} else {
			r.Thresholds = append(r.Thresholds, t)
		}
	}
	return n
}
