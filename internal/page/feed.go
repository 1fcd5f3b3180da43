package page

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
)

// Feed serves the page of the run in this process. It has the methods of a [result.Writer], and keeps thinned rows and
// sums in memory. Row and Finish are safe to call while browsers read the page.
type Feed struct {
	server *Server

	mu     sync.Mutex
	run    Run
	sum    *result.Sum
	result *result.Result // set at the end of the run
	warmup result.Latencies
}

// NewFeed listens on address, as [NewServer] does.
func NewFeed(address string) (*Feed, error) {
	s, err := NewServer(address, "--web")
	if err != nil {
		return nil, err
	}
	return &Feed{server: s, run: Run{Name: "this run", series: &series{limit: limitOf(2)}, tally: &tally{}, Live: true}},
		nil
}

// Address returns the address of the page.
func (f *Feed) Address() string { return f.server.Address().String() }

// Start sets the head.
func (f *Feed) Start(head result.Head) error {
	f.mu.Lock()
	f.sum = result.NewSum(head)
	f.mu.Unlock()
	f.server.Publish(f.page, false)
	return nil
}

// Row adds a row with its histograms.
func (f *Feed) Row(row result.Row) error {
	f.mu.Lock()
	err := f.sum.Add(&row)
	f.run.series.add(&row)
	f.run.tally.add(&row)
	f.mu.Unlock()
	f.server.Publish(f.page, false)
	if err != nil {
		return fmt.Errorf("add up a row for the page: %w", err)
	}
	return nil
}

// Finish sets the result.
func (f *Feed) Finish(r result.Result) error {
	f.mu.Lock()
	_, f.warmup = f.sum.Result()
	r.Rows, r.Complete = nil, true
	f.result = &r
	f.mu.Unlock()
	f.server.Publish(f.page, true)
	return nil
}

// Close stops serving, as [Server.Close] does.
func (f *Feed) Close() error { return f.server.Close() }

// page returns a page that shares no memory with later changes of the feed.
func (f *Feed) page() (*Page, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	run := f.run
	run.series, run.tally = f.run.series.clone(), f.run.tally.clone()
	if run.Result, run.Warmup = f.result, f.warmup; run.Result == nil {
		run.Result, run.Warmup = f.sum.Result()
	}
	p := &Page{Groups: []Group{{Name: run.Name, Runs: []*Run{&run}}}}
	p.Title = p.title()
	return p, nil
}

// Follow checks a folder every second and reads it again after a change. It rests for restFor times the duration of the
// last reading, so that large results cost little processor time.
const (
	lookEvery = time.Second
	restFor   = 20 // times as long as reading took
)

// Follow serves the page of results in folders until ctx ends, and reads them again as they grow. It returns an error
// of the first reading; after that reading it calls ready. Later errors are shown on the page.
func Follow(ctx context.Context, s *Server, ready func(), dirs ...string) error {
	var seen string
	for first := true; ; first = false {
		began := time.Now()
		if now := state(dirs); first || now != seen {
			seen = now
			p, err := Read(dirs...)
			if first && err != nil {
				return err
			}
			final := err == nil && p.ended()
			s.Publish(func() (*Page, error) { return p, err }, final)
			if first {
				ready()
			}
			if final {
				<-ctx.Done()
				return nil
			}
		}
		rest := time.NewTimer(max(lookEvery, restFor*time.Since(began)))
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
			return nil
		}
	}
}

// ended reports whether all runs have ended.
func (p *Page) ended() bool {
	for _, r := range p.runs() {
		if !r.Result.Complete {
			return false
		}
	}
	if p.search != nil {
		return p.search.Complete
	}
	return p.matrix == nil || !slices.ContainsFunc(p.matrix.sweep.Runs,
		func(r record.Run) bool { return r.State != record.Done })
}

// state returns a text that changes with the results.
func state(dirs []string) (text string) {
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { // Read reports the error
			switch filepath.Base(path) {
			case result.RowsFile, result.ResultFile, record.SweepFile, record.SearchFile:
			default:
				return nil
			}
			if info, statErr := os.Stat(path); err == nil && statErr == nil {
				text += fmt.Sprintln(path, info.Size(), info.ModTime().UnixNano(), time.Since(info.ModTime()) < growingTime)
			}
			return nil
		})
	}
	return text
}
