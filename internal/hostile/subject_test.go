//go:build unix

package hostile

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/pkg/driver"
)

// job is the task of a subject, a driver in a process of its own, with a peer.
type job struct {
	Program  []string // a command line to execute instead of all that follows
	Session  *session // to be run instead of all that follows but the driver
	Driver   string   // by its name in subjects
	URL      string
	Options  []string
	Consume  bool
	Topic    bool
	TLS      bool
	Shared   bool // another consumer, which does not run, shares the connection
	Tx       int  // messages per transaction
	Selector string
	Ordered  bool // the time of each message tells its queue, and its place in it
	Messages int  // to send, or to wait for
	Size     int  // of a body
	Connect  time.Duration
	Watch    time.Duration // how long the load may take before it is ended
}

// report is the outcome of a job.
type report struct {
	Open       *failure // why nothing could be opened
	Run        *failure // why the load ended: the error of Run or Send
	Sent       int
	Received   int
	States     map[string]int // of sends, by the name of the state
	Classes    map[string]int // of sends, by the name of the class
	Outcome    *failure       // of a send that was not accepted
	Opening    time.Duration
	Loading    time.Duration
	Closing    time.Duration
	MaxRSS     int64    // of the process so far, in bytes
	Violations []string // of the contract of package driver
	Program    *outcome
	Session    string // the parameters of a session, as text
}

// failure is an error, as it gets through a pipe.
type failure struct {
	Class, Text, Hint string
	Size              int // of the whole text
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	text := err.Error()
	const most = 4 << 10
	return &failure{driver.ClassOf(err).String(), text[:min(len(text), most)], driver.HintOf(err), len(text)}
}

const (
	// lastSay is the time that the engine adds to the connect time-out.
	lastSay = 100 * time.Millisecond
	// closing is the time limit of a Close.
	closing = 500 * time.Millisecond
	// queueShift is the position of the queue's number in the times of jobs with Ordered, in bits.
	queueShift = 32
	// patience: on a busy machine an operation may exceed its limit by this.
	patience = 40 * time.Second
)

// serveJobs reads jobs from in, does them one after the other, and writes their reports to out.
func serveJobs(in io.Reader, out io.Writer) error {
	factories := map[string]driver.Factory{}
	for _, s := range subjects() {
		factories[s.name] = s.factory
	}
	go watchMemory()
	lines, results := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	for {
		var j job
		if err := lines.Decode(&j); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		forgetMaxRSS()
		var r *report
		switch {
		case j.Program != nil:
			r = j.runProgram()
		case j.Session != nil:
			r = j.Session.run(factories[j.Driver])
		default:
			r = j.do(factories[j.Driver])
		}
		if err := results.Encode(r); err != nil {
			return err
		}
	}
}

func (j *job) do(f driver.Factory) *report {
	before := goleak.IgnoreCurrent()
	r := &report{States: map[string]int{}, Classes: map[string]int{}}
	opts := driver.OpenOptions{URL: j.URL, ConnectTimeout: j.Connect, Options: f.NewOptions()}
	opts.TLS.InsecureSkipVerify = true
	if err := driver.SetOptions(opts.Options, j.Options); err != nil {
		r.violate("%v", err)
		return r
	}
	d, err := f.Open(context.Background(), opts)
	if err != nil {
		r.Open = failureOf(err)
		return r
	}
	if j.Consume {
		j.consume(d, r)
	} else {
		j.produce(d, r)
	}
	r.closes("Driver.Close", d.Close)
	r.noLeaks(before)
	r.MaxRSS = ownMaxRSS()
	return r
}

// noLeaks waits until no more goroutines are there than before.
func (r *report) noLeaks(before goleak.Option) {
	for deadline := time.Now().Add(patience); ; {
		err := leaks(before)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			r.violate("goroutines are left: %v", err)
			return
		}
	}
}

// ownMaxRSS returns the largest memory of this process, in bytes; 0 where the system has no VmHWM. The maximum of
// getrusage would include the parent's memory.
func ownMaxRSS() (n int64) {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		_, text, _ := strings.Cut(string(status), "VmHWM:")
		_, _ = fmt.Sscan(text, &n)
	}
	return n << 10
}

// watchMemory ends the process before it takes the machine's memory.
func watchMemory() {
	const often = 25 * time.Millisecond
	for range time.Tick(often) {
		if mib := ownMaxRSS() >> 20; mib > 2*raceFactor*memoryLimit>>20 {
			panic(fmt.Sprintf("the process has taken %d MiB", mib))
		}
	}
}

// leaks looks for goroutines once. goleak cannot read the stacks of one that is deep in a recursion.
func leaks(before goleak.Option) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("goleak: %v", reason)
		}
	}()
	return goleak.Find(before)
}

// forgetMaxRSS makes ownMaxRSS count from zero, where the system can (proc(5), clear_refs), for one job alone.
func forgetMaxRSS() {
	if raceFactor == 1 { // the detector makes that slow, and the cases that need much memory run without it
		debug.FreeOSMemory()
	}
	const peak = "5"
	_ = os.WriteFile("/proc/self/clear_refs", []byte(peak), 0)
}

func (r *report) violate(format string, args ...any) {
	r.Violations = append(r.Violations, fmt.Sprintf(format, args...))
}

// closes calls a Close, which has to return when its context has ended.
func (r *report) closes(what string, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	began := time.Now()
	_ = f(ctx) // the error may be about the hostile broker
	took := time.Since(began)
	r.Closing += took
	if took > closing+patience {
		r.violate("%s took %s", what, took)
	}
}

func (j *job) destination() driver.Destination {
	if j.Topic {
		return driver.Destination{Kind: driver.Topic, Name: "t"}
	}
	return driver.Destination{Name: "q"}
}

// ledger holds sends against the contract.
type ledger struct {
	mu      sync.Mutex
	r       *report
	open    map[driver.Slot]bool
	closed  bool
	changed chan struct{}
}

// Done implements [driver.Completions].
func (l *ledger) Done(s driver.Slot, o driver.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open[s] {
		l.r.violate("Done of slot %d, in which nothing is under way", s)
		return
	}
	if l.closed {
		l.r.violate("Done of slot %d after Close", s)
	}
	delete(l.open, s)
	l.r.States[o.State.String()]++
	if o.State != driver.Accepted {
		l.r.Classes[o.Class.String()]++
		if l.r.Outcome == nil && o.Err != nil {
			l.r.Outcome = failureOf(o.Err)
			l.r.Outcome.Class = o.Class.String()
		}
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// DoneAll implements [driver.Completions].
func (l *ledger) DoneAll(slots []driver.Slot, o driver.Outcome) {
	for _, s := range slots {
		l.Done(s, o)
	}
}

// begin notes that a message is to be sent.
func (l *ledger) begin(s driver.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[s] = true
}

// take notes that Send has returned an error.
func (l *ledger) take(s driver.Slot, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open[s] {
		l.r.violate("Send of slot %d returned %v after Done", s, err)
	}
	delete(l.open, s)
	l.r.Run = failureOf(err)
}

// close checks that all has ended.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if len(l.open) > 0 {
		l.r.violate("%d sends have not ended", len(l.open))
	}
}

func (l *ledger) violate(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.r.violate(format, args...)
}

func (l *ledger) pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// produce sends all messages at once, and waits for their outcomes.
func (j *job) produce(d driver.Driver, r *report) {
	l := &ledger{r: r, open: map[driver.Slot]bool{}, changed: make(chan struct{}, 1)}
	spec := driver.ProducerSpec{
		Connection: driver.Connection{Key: "c", Name: "hostile"}, Destination: j.destination(), Name: "producer-0",
		MaxPending: j.Messages, CommitInterval: j.Tx, Variants: []driver.Variant{{Body: make([]byte, j.Size), Priority: -1}},
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), j.Connect+lastSay)
	p, err := d.Producer(ctx, spec, l)
	cancel()
	r.Opening = time.Since(began)
	if err != nil {
		r.Open = failureOf(err)
		return
	}
	began = time.Now()
	ctx, cancel = context.WithTimeout(context.Background(), j.Watch)
	defer cancel()
	for i := range j.Messages {
		s := driver.NewSlot(uint32(i), 1) //nolint:gosec // few
		l.begin(s)
		if err := p.Send(ctx, &driver.Message{Slot: s, Time: 1_700_000_000_000_001}); err != nil {
			l.take(s, err)
			break
		}
		r.Sent++
	}
	for wait := true; wait && l.pending() > 0; {
		select {
		case <-l.changed:
		case <-ctx.Done():
			wait = false
		}
	}
	r.Loading = time.Since(began)
	if r.Loading > j.Watch+patience {
		r.violate("sending took %s", r.Loading)
	}
	r.closes("Producer.Close", p.Close)
	l.close()
}

// consume receives until all messages have come.
func (j *job) consume(d driver.Driver, r *report) {
	spec := driver.ConsumerSpec{
		Connection: driver.Connection{Key: "c", Name: "hostile"}, Destination: j.destination(), Name: "consumer-0", Selector: j.Selector,
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), j.Connect+lastSay)
	c, err := d.Consumer(ctx, spec)
	if err == nil && j.Shared {
		var second driver.Consumer
		other := spec
		other.Name = "consumer-1"
		if second, err = d.Consumer(ctx, other); err == nil {
			defer r.closes("Consumer.Close", second.Close)
		}
	}
	cancel()
	r.Opening = time.Since(began)
	if err != nil {
		r.Open = failureOf(err)
		if c != nil {
			r.closes("Consumer.Close", c.Close)
		}
		return
	}
	began = time.Now()
	ctx, cancel = context.WithTimeout(context.Background(), j.Watch)
	defer cancel()
	ended := false
	next := map[int64]int64{} // by queue
	err = c.Run(ctx, func(d *driver.Delivery) driver.Verdict {
		if ended {
			r.violate("a delivery after Run")
		}
		if queue, offset := d.Time>>queueShift, d.Time&(1<<queueShift-1); j.Ordered {
			if offset != next[queue] {
				r.violate("message %d of queue %d came where %d was due", offset, queue, next[queue])
			}
			next[queue] = offset + 1
		}
		if r.Received++; r.Received == j.Messages {
			cancel()
		}
		return driver.Accept
	})
	ended = true
	r.Run = failureOf(err)
	r.Loading = time.Since(began)
	if r.Loading > j.Watch+patience {
		r.violate("Run took %s", r.Loading)
	}
	r.closes("Consumer.Close", c.Close)
}

// subjectVariable tells a process that executes the test binary that it is a subject.
const subjectVariable = "PERFMQ_HOSTILE_SUBJECT"

func isSubject() bool { return os.Getenv(subjectVariable) != "" }
