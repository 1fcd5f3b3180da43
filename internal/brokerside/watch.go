package brokerside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// interval is the time between two samples, or two questions to a broker.
	interval = time.Second
	// ahead is the time from a sample to the next Take: at the same moments, one Take would find two samples, and another
	// one none.
	ahead = interval / 4
	// lastSample bounds the sample at the end of a run, beside the question to an endpoint.
	lastSample = 500 * time.Millisecond
	// maxEvents is the number of events that are kept.
	maxEvents = 20
)

// Config selects the sources to watch. A zero field turns its source off.
type Config struct {
	// PID is the broker's process on this host. Its load, disks and network are watched as well, and their values are
	// then never taken from the endpoint.
	PID int32 `set:"broker-pid,flag" section:"The broker's side" arg:"PID" range:"1.." help:"watch a process and its host"`
	// Metrics is a Prometheus endpoint. Series with known names are watched.
	Metrics Endpoint `set:"broker-metrics,flag" arg:"URL" help:"watch a broker on any host by its Prometheus endpoint or exporter"`
	// Log is a file; its lines of errors and warnings are counted.
	Log string `set:"broker-log,flag" arg:"FILE" check:"filled" help:"count the errors and warnings in the broker's log"`
}

// IsZero reports whether there is nothing to watch.
func (c *Config) IsZero() bool { return c.PID == 0 && c.Metrics.URL == "" && c.Log == "" }

// Watch samples the broker's side each second. Take and Sum are safe for concurrent use. A nil Watch watches nothing.
type Watch struct {
	process  *watched
	metrics  *client
	patience time.Duration // of a question for metrics
	log      *follower

	stop   context.CancelFunc
	ended  chan struct{}
	moment func(time.Time) time.Time

	mu      sync.Mutex
	last    sample            // the latest
	taken   time.Time         // the last Take; Start, before there is one
	pending *result.BrokerUse // since the last Take
	sum     result.BrokerSide
	noted   map[string]bool // by kind
}

// Open finds the sources to watch. The error names the missing ones.
func Open(ctx context.Context, c Config) (*Watch, error) {
	w := &Watch{noted: map[string]bool{}, patience: pagePatience}
	var errs []error
	add := func(err error, name func() string) {
		if err != nil {
			errs = append(errs, err)
			return
		}
		w.sum.Sources = append(w.sum.Sources, name())
	}
	var err error
	if c.PID != 0 {
		w.process, err = watchProcess(ctx, c.PID)
		add(err, func() string { return fmt.Sprintf("process %d (%s)", w.process.process.Pid, w.process.name) })
	}
	if c.Metrics.URL != "" {
		w.metrics, err = c.Metrics.open()
		add(err, func() string { return w.metrics.name() })
	}
	if c.Log != "" {
		w.log, err = follow(c.Log)
		if failed, ok := errors.AsType[*fs.PathError](err); ok {
			err = fmt.Errorf("the broker's log: %s: %w", failed.Path, failed.Err)
		}
		add(err, func() string { return "log " + c.Log })
	}
	if err := errors.Join(errs...); err != nil {
		w.release()
		return nil, err
	}
	return w, nil
}

// Start takes the first sample, from which everything except the log counts, and others each second until Stop, between
// the calls of Take. It does not wait. The times of events are as moment converts them.
func (w *Watch) Start(moment func(time.Time) time.Time) {
	if w == nil || w.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop, w.ended, w.moment = stop, make(chan struct{}), moment
	w.taken = time.Now()
	go func() {
		defer close(w.ended)
		first := w.look(ctx)
		if w.log != nil { // whose lines count from Open on
			first.Errors, first.Warnings = new(uint64), new(uint64)
		}
		w.mu.Lock()
		w.last = first
		w.mu.Unlock()
		repeat(ctx, w.untilNext, func() bool {
			w.add(w.look(ctx))
			return true
		})
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
		limit := lastSample
		if w.metrics != nil {
			limit += w.patience
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		w.add(w.look(ctx))
		cancel()
		w.stop = nil
	}
	w.release()
}

func (w *Watch) release() {
	if w.metrics != nil {
		w.metrics.close()
	}
	if w.log != nil {
		_ = w.log.file.Close() // it was only read
		w.log = nil
	}
}

// look takes a sample of all sources.
func (w *Watch) look(ctx context.Context) (s sample) {
	if w.metrics != nil {
		if err := w.metrics.scrape(ctx, w.patience, &s); err != nil && ctx.Err() == nil {
			w.note("metrics, "+driver.ClassOf(err).String(), "the broker's metrics: "+err.Error())
		}
		s.at = time.Now()
		s.cpuAt, s.diskAt = s.at, s.at
	}
	if w.process != nil { // the counters of two sources do not continue each other
		page := s.BrokerUse
		s = sample{BrokerUse: result.BrokerUse{
			Heap: page.Heap, Collections: page.Collections, CollectionTime: page.CollectionTime,
		}}
		s.host(ctx)
		event := w.process.sample(ctx, &s)
		s.at = time.Now()
		s.diskAt = s.at
		if event != "" {
			w.event(event)
		}
	}
	if s.at.IsZero() {
		s.at = time.Now()
	}
	if w.log != nil {
		if err := w.log.look(); err != nil {
			w.note("log", "the broker's log cannot be read any more: "+err.Error())
		}
		s.Errors, s.Warnings = new(w.log.counts[levelError]), new(w.log.counts[levelWarning])
		w.mu.Lock()
		w.sum.FirstError, w.sum.FirstWarning = w.log.first[levelError], w.log.first[levelWarning]
		w.mu.Unlock()
	}
	return s
}

// add adds the interval from the last sample to this one.
func (w *Watch) add(s sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	use := between(&w.last, &s)
	if use.Span <= 0 {
		return
	}
	s.keep(&w.last)
	w.last = s
	w.pending = Join(w.pending, &use)
	w.sum.Whole = *Join(&w.sum.Whole, &use)
	if use.CPU != nil {
		share := float64(*use.CPU) / float64(use.CPUSpan)
		highest(&w.sum.CPUMost, &share)
	}
}

// Take returns the use since the previous call; nil if nothing was sampled since.
func (w *Watch) Take() *result.BrokerUse {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	use := w.pending
	w.pending, w.taken = nil, time.Now()
	return use
}

// Sum returns the use until now.
func (w *Watch) Sum() *result.BrokerSide {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := w.sum
	return &sum
}

func (w *Watch) event(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sum.Events) < maxEvents {
		at := w.moment(time.Now()).UnixMicro()
		w.sum.Events = append(w.sum.Events, result.BrokerEvent{Time: at, Text: text})
	}
}

// note keeps the first reason of each kind.
func (w *Watch) note(kind, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.noted[kind] {
		w.noted[kind] = true
		w.sum.Notes = append(w.sum.Notes, text)
	}
}

// The bounds for reading a log.
const (
	maxLogRead  = 16 << 20 // bytes at a time: the rest of a log that grows faster waits
	maxLogLine  = 4 << 10  // bytes of a line that are kept; its level is in the first levelWithin
	levelWithin = 256
)

// follower reads the lines that are added to a log.
type follower struct {
	path   string
	file   *os.File
	at     int64  // where to read on
	rest   []byte // of a line that has no end yet
	buffer []byte

	counts [2]uint64 // of the lines of errors, and of warnings
	first  [2]string // of these lines
}

// Levels of lines, and others.
const (
	levelError = iota
	levelWarning
	levelOther
)

// follow opens a log at its end.
func follow(path string) (*follower, error) {
	f := &follower{path: path, buffer: make([]byte, 64<<10)}
	info, err := os.Stat(path) // first: opening a pipe would wait for its writer
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("is not a regular file")}
	}
	if err != nil {
		return nil, err
	}
	if f.file, err = os.Open(path); err != nil { //nolint:gosec // the user named it
		return nil, err
	}
	f.at, err = f.file.Seek(0, io.SeekEnd)
	return f, err
}

// look reads the lines that were added. A log that was truncated is read from its beginning. So is a new log of its
// name, after the end of the old one.
func (f *follower) look() error {
	err := f.read()
	there, gone := os.Stat(f.path)
	if gone != nil || !there.Mode().IsRegular() {
		return err
	}
	if own, failed := f.file.Stat(); failed != nil || os.SameFile(own, there) {
		return err
	}
	file, failed := os.Open(f.path)
	if failed != nil {
		return err
	}
	_ = f.file.Close() // it was only read
	f.file, f.at, f.rest = file, 0, nil
	return errors.Join(err, f.read())
}

func (f *follower) read() error {
	if info, err := f.file.Stat(); err == nil && info.Size() < f.at {
		f.at, f.rest = 0, nil
	}
	for read := 0; read < maxLogRead; {
		n, err := f.file.ReadAt(f.buffer, f.at)
		f.at += int64(n)
		read += n
		f.add(f.buffer[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add counts the lines in a part of the log. Of a line it keeps the beginning.
func (f *follower) add(text []byte) {
	for len(text) > 0 {
		part, after, ended := bytes.Cut(text, []byte{'\n'})
		f.rest = append(f.rest, part[:min(len(part), maxLogLine-len(f.rest))]...)
		if ended {
			f.line(string(f.rest))
			f.rest = f.rest[:0]
		}
		text = after
	}
}

func (f *follower) line(line string) {
	level := levelOf(line)
	if level == levelOther {
		return
	}
	if f.counts[level]++; f.counts[level] == 1 {
		f.first[level] = line
	}
}

// levelOf returns the level of a line: the first word near its beginning that is one, in capitals, as Log4j, Logback
// and java.util.logging write it, or in brackets, as RabbitMQ does.
func levelOf(line string) int {
	line = line[:min(len(line), levelWithin)]
	separates := func(r rune) bool {
		return r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	}
	for _, word := range strings.FieldsFunc(line, separates) {
		if strings.Contains(line, "["+word+"]") {
			word = strings.ToUpper(word)
		}
		switch word {
		case "ERROR", "FATAL", "SEVERE", "CRITICAL", "ALERT", "EMERGENCY":
			return levelError
		case "WARN", "WARNING":
			return levelWarning
		case "INFO", "DEBUG", "TRACE", "NOTICE", "FINE", "CONFIG":
			return levelOther
		}
	}
	return levelOther
}
