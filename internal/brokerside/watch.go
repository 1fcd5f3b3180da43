package brokerside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// interval is the time between two samples.
	interval = time.Second
	// ahead is how long a sample is taken before the next Take: at the same moments, one of these would find two samples,
	// and another one none.
	ahead = interval / 4
	// lastPatience bounds the sample at the end of a run, beside the question to an endpoint.
	lastPatience = 500 * time.Millisecond
	// maxEvents is how many events are kept.
	maxEvents = 20
)

// Config selects the sources to watch. A source whose field is zero is not watched.
type Config struct {
	// PID is the broker's process on this host, whose load, disks and network are watched as well.
	PID int32
	// Metrics is a Prometheus endpoint, of which Series are watched beside the series that are known by name.
	Metrics Endpoint
	Series  []Series
	// Log is a file whose lines of errors and warnings are counted.
	Log string
}

// IsZero tells whether there is nothing to watch.
func (c *Config) IsZero() bool { return c.PID == 0 && c.Metrics.URL == "" && c.Log == "" }

// Event is something that happened to the broker.
type Event struct {
	At   time.Time
	Text string
}

// Sum is the usage of a broker while it was watched.
type Sum struct {
	// Source names the sources: "process 123 (java)", the URL of an endpoint without its password, a log.
	Source []string
	// Whole is the sum over all of the time: the most of memory, threads, files, heap, load and the busiest disk.
	Whole Use
	// CPUMost is the most processor time in an interval, as a share of one processor; nil if it is not known.
	CPUMost *float64
	// Lowest and Highest are the extremes of the chosen series.
	Lowest, Highest map[string]float64
	// FirstError and FirstWarning are lines of the log; empty if there are none. They are a stranger's text.
	FirstError, FirstWarning string
	// Events are the events of the process, such as its end; Notes say why something is not known.
	Events []Event
	Notes  []string
}

// Watch samples the broker's side each second. Take and Sum are safe for concurrent use.
type Watch struct {
	config  Config
	process *watched
	scraper *scraper
	log     *follower
	own     sample // whatever this host has told: of that, no endpoint is believed

	stop  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex
	last    sample    // the latest
	taken   time.Time // the last Take; Start, before there is one
	pending *Use      // since the last Take
	sum     Sum
	noted   map[string]bool // by kind
	missed  int             // questions to the endpoint without an answer
}

// Open finds the sources to watch, and takes the first sample. The error names the missing ones.
func Open(ctx context.Context, c Config) (*Watch, error) {
	w := &Watch{config: c, noted: map[string]bool{}}
	var errs []error
	if c.PID != 0 {
		p, err := watchProcess(ctx, c.PID)
		if err != nil {
			errs = append(errs, err)
		} else {
			w.process = p
			w.own.cpu = new(int64) // CPU time comes from the process or is unknown
			w.sum.Source = append(w.sum.Source, fmt.Sprintf("process %d (%s)", p.pid, p.name))
		}
	}
	if c.Metrics.URL != "" {
		s, err := newScraper(c.Metrics, c.Series)
		if err != nil {
			errs = append(errs, err)
		} else {
			w.scraper = s
			w.sum.Source = append(w.sum.Source, s.name())
		}
	}
	if c.Log != "" {
		f, err := follow(c.Log)
		if err != nil {
			var pe *fs.PathError
			if errors.As(err, &pe) {
				err = fmt.Errorf("%s: %w", pe.Path, pe.Err)
			}
			errs = append(errs, fmt.Errorf("the broker's log: %w", err))
		} else {
			w.log = f
			w.sum.Source = append(w.sum.Source, "log "+c.Log)
		}
	}
	if err := errors.Join(errs...); err != nil {
		w.release()
		return nil, err
	}
	return w, nil
}

// Start lets the first sample be taken, from which everything but the log counts, and others each second until Stop,
// between the calls of Take. It does not wait.
func (w *Watch) Start() {
	if w == nil || w.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop, w.ended = stop, make(chan struct{})
	w.taken = time.Now()
	go func() {
		defer close(w.ended)
		first := w.look(ctx)
		w.mu.Lock()
		w.last = first
		none := uint64(0)
		if w.log != nil { // whose lines count from Open on
			w.last.errors, w.last.warnings = &none, &none
		}
		w.mu.Unlock()
		timer := time.NewTimer(w.untilNext())
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				w.add(w.look(ctx))
				timer.Reset(w.untilNext())
			case <-ctx.Done():
				return
			}
		}
	}()
}

// untilNext returns the time to the next sample: ahead of a Take, and half an interval away at least.
func (w *Watch) untilNext() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := interval - ahead - time.Since(w.taken)
	for next < interval/2 {
		next += interval
	}
	return next
}

// Stop takes the last sample and ends the watch. It may be called again.
func (w *Watch) Stop() {
	if w == nil {
		return
	}
	if w.stop != nil {
		w.stop()
		<-w.ended
		ctx, cancel := context.WithTimeout(context.Background(), w.pagePatience()+lastPatience)
		w.add(w.look(ctx))
		cancel()
		w.stop = nil
	}
	w.release()
}

// pagePatience bounds a question to the endpoint.
func (w *Watch) pagePatience() time.Duration {
	if w.scraper == nil {
		return pagePatience
	}
	return w.scraper.patience
}

func (w *Watch) release() {
	if w.scraper != nil {
		w.scraper.close()
	}
	if w.log != nil {
		w.log.close()
		w.log = nil
	}
}

// look takes a sample of all sources.
func (w *Watch) look(ctx context.Context) sample {
	var s sample
	if w.process != nil {
		s.host(ctx)
		event := w.process.look(ctx, &s)
		s.at = time.Now()
		s.diskAt = s.at
		if event != "" {
			w.event(s.at, event)
		}
	}
	if w.scraper != nil {
		var page sample
		if err := w.scraper.look(ctx, &page); err != nil {
			if ctx.Err() == nil {
				w.failed(err)
			}
		}
		page.cpuAt = time.Now()
		page.diskAt = page.cpuAt
		w.beside(&s, &page)
	}
	if s.at.IsZero() {
		s.at = time.Now()
	}
	if w.log != nil {
		if err := w.log.look(); err != nil {
			w.note("log", "the broker's log cannot be read any more: "+err.Error())
		}
		errors, warnings := w.log.errors, w.log.warnings
		s.errors, s.warnings = &errors, &warnings
		w.mu.Lock()
		w.sum.FirstError, w.sum.FirstWarning = w.log.firstError, w.log.firstWarning
		w.mu.Unlock()
	}
	return s
}

// beside fills in, from the page of an endpoint, values that this host has never told. A value that it has told once
// and does not tell any more, as of a process that has ended, stays unknown: the counters of two sources do not
// continue each other.
func (w *Watch) beside(s, page *sample) {
	w.own.fill(s)
	page.without(&w.own)
	s.fill(page)
}

// add adds the interval from the last sample to this one.
func (w *Watch) add(s sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	use := between(&w.last, &s)
	if use.Span <= 0 {
		return
	}
	w.last = s.keeping(&w.last)
	w.pending = Join(w.pending, &use)
	w.sum.Whole.join(&use)
	if use.CPU != nil {
		share := float64(*use.CPU) / float64(use.CPUSpan)
		highest(&w.sum.CPUMost, &share)
	}
	for text, v := range use.Series {
		if w.sum.Lowest == nil {
			w.sum.Lowest, w.sum.Highest = map[string]float64{}, map[string]float64{}
		}
		if low, ok := w.sum.Lowest[text]; !ok || v < low {
			w.sum.Lowest[text] = v
		}
		if high, ok := w.sum.Highest[text]; !ok || v > high {
			w.sum.Highest[text] = v
		}
	}
}

// Take returns the usage since the previous call; nil if nothing was sampled since. Of a nil Watch it is nil.
func (w *Watch) Take() *Use {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	use := w.pending
	w.pending, w.taken = nil, time.Now()
	return use
}

// Sum returns the usage until now.
func (w *Watch) Sum() *Sum {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := w.sum
	if w.missed > 1 {
		sum.Notes = append(sum.Notes[:len(sum.Notes):len(sum.Notes)],
			fmt.Sprintf("the broker's metrics were not answered %d times", w.missed))
	}
	return &sum
}

func (w *Watch) event(at time.Time, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sum.Events) < maxEvents {
		w.sum.Events = append(w.sum.Events, Event{at, text})
	}
}

// failed notes a question without an answer.
func (w *Watch) failed(err error) {
	w.mu.Lock()
	w.missed++
	w.mu.Unlock()
	w.note("metrics, "+driver.ClassOf(err).String(), "the broker's metrics: "+err.Error())
}

// note notes the first reason of each kind.
func (w *Watch) note(kind, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.noted[kind] {
		w.noted[kind] = true
		w.sum.Notes = append(w.sum.Notes, text)
	}
}
