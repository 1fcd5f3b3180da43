package page

import (
	"slices"
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

// part has the sums of the measured rows of a run or a step.
type part struct {
	step                      string
	length                    int64
	sent, completed, received uint64
	bestCompleted             best
	bestReceived              best // begins with the first second that starts after a receipt
	allReceived               best
	everReceived              uint64 // in any phase
}

func (p *part) add(r *result.Row) {
	var sent, completed, received uint64
	if r.Producers != nil {
		sent, completed = r.Producers.Sent, r.Producers.Completed
	}
	if r.Consumers != nil {
		received = r.Consumers.Received
	}
	if r.Phase == result.Measure {
		p.length += r.Length
		p.sent, p.completed, p.received = p.sent+sent, p.completed+completed, p.received+received
		p.bestCompleted.add(completed, r.Length)
		p.allReceived.add(received, r.Length)
		if p.everReceived > 0 {
			p.bestReceived.add(received, r.Length)
		}
	}
	p.everReceived += received
}

// reads reports that nothing was sent: the rate of receiving may then cover only the time from the first to the last
// message.
func (p *part) reads() bool { return p.sent == 0 && p.completed == 0 }

// tally has the sums of the rows of a run, as a whole and for each step.
type tally struct {
	whole part
	steps []part
	total result.Producers // only Sent and Completed
	got   uint64
	over  bool // at some row, completed exceeded sent
	drift drift
}

func (t *tally) add(r *result.Row) {
	t.whole.add(r)
	if n := len(t.steps); n == 0 || t.steps[n-1].step != r.Step {
		t.steps = append(t.steps, part{step: r.Step})
	}
	t.steps[len(t.steps)-1].add(r)
	if r.Phase == result.Measure {
		t.drift.add(r)
	}
	if r.Producers != nil {
		t.total.Sent += r.Producers.Sent
		t.total.Completed += r.Producers.Completed
	}
	if r.Consumers != nil {
		t.got += r.Consumers.Received
	}
	t.over = t.over || t.total.Completed > t.total.Sent
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

func (t *tally) clone() *tally {
	c := *t
	c.steps = slices.Clone(t.steps)
	return &c
}

// complete reports whether the rows add up to the totals of the result.
func (t *tally) complete(r *result.Result) bool {
	var sent, completed, received uint64
	if p := r.Total.Producers; p != nil {
		sent, completed = p.Sent, p.Completed
	}
	if c := r.Total.Consumers; c != nil {
		received = c.Received
	}
	return t.total.Sent == sent && t.total.Completed == completed && t.got == received
}
