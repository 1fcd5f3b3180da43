package page

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/pkg/result"
)

// Feed serves the page of the run that this process makes: it takes what a [result.Writer] takes, and keeps the thinned
// rows and sums in memory. Row and Finish may be called while others read.
type Feed struct {
	server *Server

	mu     sync.Mutex
	run    Run
	sum    *result.Sum
	result *result.Result // when the run has ended
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

// Address returns where it is served.
func (f *Feed) Address() string { return f.server.Address().String() }

// Start takes the head.
func (f *Feed) Start(head result.Head) error {
	f.mu.Lock()
	f.sum = result.NewSum(head)
	f.mu.Unlock()
	f.server.Publish(f.page, false)
	return nil
}

// Row takes a row with its histograms.
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

// Finish takes the result.
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

// page returns a page that shares nothing with the feed.
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

// Times of a folder that is followed: it is looked at every second, and read anew if it has changed, but for most of
// the time nothing is done.
const (
	lookEvery = time.Second
	restFor   = 20 // times as long as reading took
)

// Follow serves the page of results in folders until ctx ends, and reads them anew as they grow. The first reading must
// succeed, then it calls ready; what goes wrong later is shown on the page.
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

// ended tells whether all runs have come to their end.
func (p *Page) ended() bool {
	for _, r := range p.runs() {
		if !r.Result.Complete {
			return false
		}
	}
	return p.matrix == nil || !slices.ContainsFunc(p.matrix.sweep.Runs,
		func(r sweep.Run) bool { return r.State != sweep.Done })
}

// state is a text that changes when results do.
func state(dirs []string) (text string) {
	for _, dir := range dirs {
		list, s, _ := setsOf("", dir) // reading says what is wrong
		if s != nil {
			text += fileState(filepath.Join(dir, sweep.File))
		}
		var paths []string
		for _, one := range list {
			paths = append(paths, one.paths...)
		}
		for _, path := range paths {
			text += fmt.Sprintln(path, growing(path))
			text += fileState(filepath.Join(path, result.RowsFile)) + fileState(filepath.Join(path, result.ResultFile))
		}
	}
	return text
}

func fileState(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintln(path, info.Size(), info.ModTime().UnixNano())
}
