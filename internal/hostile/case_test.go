//go:build unix

package hostile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// memoryLimit is the limit of the memory of a process, in bytes, whatever a peer does.
const memoryLimit = 256 << 20

// textLimit is the largest length of an error, in bytes: a person is to read it.
const textLimit = 1 << 10

// testCase is one fault of a hostile broker, with the expected outcome.
type testCase struct {
	name string // stage: fault
	job  job
	// play serves one connection; the peer closes it afterwards.
	play func(*wire)
	want want
	// heavy marks attempts to exhaust memory: these cases run through the program as well.
	heavy bool
}

// want is the expected outcome of a case. The zero value: all messages are sent and accepted, or received.
type want struct {
	open, run []driver.Class // of which opening, or the load, has to fail; nil: it does not
	text      string         // a regular expression for the error
	quiet     bool           // nothing comes of it: the load ends when it is told to, without an error
	some      int            // how many are accepted or received before that, or before the load fails; -1: any number
}

// works is for faults that a driver has to bear.
func works() want { return want{} }

// quiet is for brokers that say nothing, or nothing of meaning, any more once n messages have passed.
func quiet(n int) want { return want{quiet: true, some: n} }

// openFails is for faults that the driver has to detect while opening.
func openFails(text string, classes ...driver.Class) want { return want{open: classes, text: text} }

// runFails is for faults that the driver has to detect under load, or at the end of opening, if it gets to them then.
func runFails(text string, classes ...driver.Class) want {
	return want{run: classes, text: text, some: -1}
}

// fails is for faults that the driver may detect while opening or under load.
func fails(text string, classes ...driver.Class) want {
	return want{open: classes, run: classes, text: text, some: -1}
}

func (w want) after(n int) want {
	w.some = n
	return w
}

// judge returns the faults in the outcome of a case.
func (c *testCase) judge(r *report, p *peer, memory int64) (wrong []string) {
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, v := range r.Violations {
		complain("%s", v)
	}
	if r.MaxRSS > memory {
		complain("the process took %d MiB", r.MaxRSS>>20)
	}
	passed, truth := r.States[driver.Accepted.String()], p.confirmed.Load()
	if c.job.Consume {
		passed, truth = r.Received, p.delivered.Load()
	}
	if int64(passed) > truth {
		complain("%d messages were accepted or received of %d", passed, truth)
	}
	if c.want.open != nil && (r.Open != nil || c.want.run == nil) {
		c.failed(r.Open, c.want.open, "opening", complain)
		if slices.Contains(c.want.open, driver.ClassTimeout) {
			if r.Opening > c.job.Connect+patience {
				complain("opening took %s", r.Opening)
			}
		} else if r.Opening >= c.job.Connect {
			complain("opening took %s: it was the time-out that ended it", r.Opening)
		}
		return wrong
	}
	if r.Open != nil && c.want.run != nil {
		c.failed(r.Open, c.want.run, "opening", complain)
		return wrong
	}
	if r.Open != nil {
		complain("opening failed: (%s) %s", r.Open.Class, r.Open.Text)
		return wrong
	}
	return append(wrong, c.judgeLoad(r, passed)...)
}

func (c *testCase) judgeLoad(r *report, passed int) (wrong []string) {
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if c.want.some >= 0 && (c.want.quiet || c.want.run != nil) && passed != c.want.some {
		complain("%d messages were accepted or received, not %d", passed, c.want.some)
	}
	switch {
	case c.want.run != nil:
		found := r.Run
		if found == nil {
			found = r.Outcome
		}
		if found != nil || len(r.Classes) == 0 { // a message that was released is no error
			c.failed(found, c.want.run, "the load", complain)
		}
		for class := range r.Classes {
			if !slices.ContainsFunc(c.want.run, func(w driver.Class) bool { return w.String() == class }) {
				complain("%d sends ended with class %s: %+v", r.Classes[class], class, r.Outcome)
			}
		}
		if r.Loading >= c.job.Watch {
			complain("the load took %s: it was we that ended it", r.Loading)
		}
	case c.want.quiet:
		if r.Run != nil && (c.job.Consume || r.Run.Class != driver.ClassTimeout.String()) {
			complain("the load failed: (%s) %s", r.Run.Class, r.Run.Text)
		}
		for class, n := range r.Classes {
			if class != driver.ClassTimeout.String() {
				complain("%d sends ended with class %s: %+v", n, class, r.Outcome)
			}
		}
	case r.Run != nil:
		complain("the load failed: (%s) %s", r.Run.Class, r.Run.Text)
	case passed < c.job.Messages:
		complain("%d of %d messages were accepted or received: %v %v %+v", passed, c.job.Messages, r.States, r.Classes, r.Outcome)
	}
	return wrong
}

// failed checks an error.
func (c *testCase) failed(f *failure, classes []driver.Class, what string, complain func(string, ...any)) {
	if f == nil {
		complain("%s did not fail", what)
		return
	}
	if !slices.ContainsFunc(classes, func(w driver.Class) bool { return w.String() == f.Class }) {
		complain("%s failed with class %s, not one of %v: %s", what, f.Class, classes, f.Text)
	}
	if f.Size > textLimit {
		complain("the error has %d bytes", f.Size)
	}
	if f.Hint == "" {
		complain("no hint: %s", f.Text)
	}
	if strings.TrimSpace(f.Text) == "" {
		complain("an error without a text")
	}
	if !regexp.MustCompile(c.want.text).MatchString(f.Text) {
		complain("the error does not match %q: %s", c.want.text, f.Text)
	}
}

// prepare sets the defaults of a case.
func (c *testCase) prepare() {
	j := &c.job
	if j.Messages == 0 {
		j.Messages = 10
	}
	if j.Size == 0 {
		j.Size = 100
	}
	if j.Connect == 0 {
		j.Connect = 2 * patience
		if slices.Contains(c.want.open, driver.ClassTimeout) {
			j.Connect = 500 * time.Millisecond
			if c.want.text != "" { // which speaks of a connection that was made in time
				j.Connect = 4 * time.Second
			}
		}
	}
	if j.Watch == 0 {
		j.Watch = 2 * patience
		if c.want.quiet {
			j.Watch = 300 * time.Millisecond
			if c.want.some > 0 { // which have to pass in it
				j.Watch = 4 * time.Second
			}
		}
	}
}

// producing and consuming are jobs with options of the driver.
func producing(options ...string) job { return job{Options: options} }
func consuming(options ...string) job { return job{Consume: true, Options: options} }

func (j job) messages(n int) job {
	j.Messages = n
	return j
}

func (j job) watched(d time.Duration) job {
	j.Watch = d
	return j
}
