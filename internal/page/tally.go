package page

import (
	"fmt"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// fullSecond is [stats.FullSecond] in the microseconds of a result.
const fullSecond = int64(stats.FullSecond / time.Microsecond)

// best has the lowest and highest rate of the seconds of a run or a step, as in its summary: an interval shorter than a
// second counts with the second before it or, without one, with the second after it.
type best struct {
	seconds int
	rates   extent
	open    struct { // the latest second
		n      uint64
		length int64
	}
	alone extent // of the intervals of a full second alone, as earlier versions counted them
	full  int    // number of these
}

func (b *best) add(n uint64, length int64) {
	if length >= fullSecond {
		if b.full++; b.full == 1 {
			b.alone = nothing()
		}
		b.alone.add(perSecond(n, length))
	}
	if b.open.length > 0 && min(length, b.open.length) < fullSecond {
		n, length = n+b.open.n, length+b.open.length
	} else {
		*b = b.counted()
	}
	b.open.n, b.open.length = n, length
}

// counted returns b with its latest second.
func (b best) counted() best {
	if b.open.length >= fullSecond {
		if b.seconds == 0 {
			b.rates = nothing()
		}
		b.seconds++
		b.rates.add(perSecond(b.open.n, b.open.length))
	}
	return b
}

func (b *best) known() bool { return b.seconds >= stats.EnoughSeconds }

// sums are the messages of some rows or workers.
type sums struct{ sent, completed, received uint64 }

func (s *sums) add(c *result.Counts) {
	if p := c.Producers; p != nil {
		s.sent, s.completed = s.sent+p.Sent, s.completed+p.Completed
	}
	if c := c.Consumers; c != nil {
		s.received += c.Received
	}
}

func (s sums) String() string {
	return fmt.Sprintf("%d messages sent, %d completed, %d received", s.sent, s.completed, s.received)
}

// part has the sums of the measured rows of a run or a step.
type part struct {
	step   string
	length int64
	sums
	bestCompleted best
	bestReceived  best // begins with the first second that starts after a receipt
	allReceived   best
	everReceived  uint64 // in any phase
}

func (p *part) add(r *result.Row) {
	var row sums
	row.add(&r.Counts)
	if r.Phase == result.Measure {
		p.length += r.Length
		p.sums.add(&r.Counts)
		p.bestCompleted.add(row.completed, r.Length)
		p.allReceived.add(row.received, r.Length)
		if p.everReceived > 0 {
			p.bestReceived.add(row.received, r.Length)
		}
	}
	p.everReceived += row.received
}

// averages are the rates of the rows, for the roles of the run.
func (p *part) averages(r *Run) (rates result.Averages) {
	rate := func(n uint64) *float64 {
		v := perSecond(n, p.length)
		return &v
	}
	if r.sends() {
		rates.Sent, rates.Completed = rate(p.sent), rate(p.completed)
	}
	if r.receives() {
		rates.Received = rate(p.received)
	}
	return rates
}

// reads reports that nothing was sent: the rate of receiving may then cover only the time from the first to the last
// message.
func (p *part) reads() bool { return p.sent == 0 && p.completed == 0 }

// tally has the sums of the rows of a run, as a whole and for each step.
type tally struct {
	whole part
	steps []part
	all   sums // in any phase
}

func (t *tally) add(r *result.Row) {
	t.whole.add(r)
	if n := len(t.steps); n == 0 || t.steps[n-1].step != r.Step {
		t.steps = append(t.steps, part{step: r.Step})
	}
	t.steps[len(t.steps)-1].add(r)
	t.all.add(&r.Counts)
}

// bests returns the lowest and highest rates over the steps that sent, and over those that received; nil if there are
// too few seconds.
func (t *tally) bests() (completed, received *extent) {
	join := func(to *extent, b *best, there bool) *extent {
		all := b.counted()
		if !there || !all.known() {
			return to
		}
		e := all.rates
		if to != nil {
			e.join(*to)
		}
		return &e
	}
	for i := range t.steps {
		p := &t.steps[i]
		completed = join(completed, &p.bestCompleted, !p.reads())
		received = join(received, &p.bestReceived, p.everReceived > 0)
	}
	return completed, received
}

// complete reports whether the rows add up to the totals of the result.
func (t *tally) complete(r *result.Result) bool {
	var total sums
	total.add(&r.Total)
	return t.all == total
}
