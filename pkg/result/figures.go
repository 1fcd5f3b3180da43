package result

import (
	"cmp"
	"math"
	"slices"
)

// Figures are rates of the measured part of a run or a step: from the end of the warm-up to the end of the load. Rates
// of a role that the run does not have are missing.
type Figures struct {
	// Span is the length of the measured part.
	Span int64 `json:"span"`
	// Since is when Span began, from the start of the load, if the rates are those of a backlog: from its first message to
	// its last.
	Since *int64 `json:"since,omitempty"`
	Averages
	// MinimumCompleted and MinimumReceived are the lowest rates of a full second; missing with fewer than three of them.
	MinimumCompleted *Extreme `json:"minimumCompleted,omitempty"`
	MinimumReceived  *Extreme `json:"minimumReceived,omitempty"`
	// MaximumCompleted and MaximumReceived are the highest.
	MaximumCompleted *Extreme `json:"maximumCompleted,omitempty"`
	MaximumReceived  *Extreme `json:"maximumReceived,omitempty"`
}

// Averages are average rates of the measured part, and the messages that were due by the rates.
type Averages struct {
	// Sent, Completed and Received are average rates in messages per second.
	Sent      *float64 `json:"sent,omitempty"`
	Completed *float64 `json:"completed,omitempty"`
	Received  *float64 `json:"received,omitempty"`
	// CompletedBytes and ReceivedBytes are average rates of payload in bytes per second.
	CompletedBytes *float64 `json:"completedBytes,omitempty"`
	ReceivedBytes  *float64 `json:"receivedBytes,omitempty"`
	// Offered is the average target rate (--rate), in messages per second; missing without a rate, and in the sum of
	// several steps.
	Offered *float64 `json:"offered,omitempty"`
	// Due is the number of messages that were due by the rates, and Unsent the number of them that were not sent; missing
	// without a rate.
	Due    *uint64 `json:"due,omitempty"`
	Unsent *uint64 `json:"unsent,omitempty"`
}

// Extreme is the lowest or highest rate of a full second.
type Extreme struct {
	// PerSecond is the rate in messages per second.
	PerSecond float64 `json:"perSecond"`
	// Time is the moment at which that second ended, by the wall clock.
	Time int64 `json:"time"`
	// Elapsed is the same moment as the time from the start of the load, by the monotonic clock.
	Elapsed int64 `json:"elapsed"`
}

// Spread is how evenly the workers of a group worked: messages of the whole run, completed for producers, received for
// consumers. A group with only one worker of a role has none.
type Spread struct {
	// Host is the host of the workers, in merged results.
	Host string `json:"host,omitempty"`
	// Group is the name of the group; missing for a plain command line.
	Group string `json:"group,omitempty"`
	// Role is "producers" or "consumers".
	Role string `json:"role"`
	// Workers is the number of workers.
	Workers int `json:"workers"`
	// Minimum, Median and Maximum are messages of one worker.
	Minimum uint64 `json:"minimum"`
	Median  uint64 `json:"median"`
	Maximum uint64 `json:"maximum"`
}

// figures returns the figures of a step or, without a name, of the run; nil if they are not known.
func (r *Result) figures(step string) *Figures {
	if step == "" {
		return r.Figures
	}
	if i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Name == step }); i >= 0 {
		return r.Steps[i].Figures
	}
	return nil
}

// read tells whether the parts have read a backlog in a step or, without a name, in the run.
func read(parts []*Result, step string) bool {
	return !slices.ContainsFunc(parts, func(r *Result) bool {
		f := r.figures(step)
		return f == nil || f.Since == nil
	})
}

// mergedFigures returns the figures of parts: rates of the time in which all of them measured, and of a backlog those
// from the first to the last message. Extremes belong to one run, so the merged result has none.
func mergedFigures(parts []*Result, starts []int64, step string) (*Figures, error) {
	m := &Figures{Averages: Averages{Offered: new(float64), Due: new(uint64), Unsent: new(uint64)}}
	for _, p := range parts {
		f := p.figures(step)
		if f == nil {
			return nil, nil //nolint:nilnil // they are not known
		}
		var errs [2]error
		m.Due, errs[0] = addKnown(m.Due, f.Due)
		m.Unsent, errs[1] = addKnown(m.Unsent, f.Unsent)
		if err := cmp.Or(errs[0], errs[1]); err != nil {
			return nil, err
		}
		if f.Offered == nil || m.Offered == nil {
			m.Offered = nil
		} else {
			*m.Offered += *f.Offered
		}
	}
	var rates Averages
	if read(parts, step) {
		m.Since, m.Span, rates = readTogether(parts, starts, step)
	} else {
		t := MeasureTogether(parts, starts, step, func(row *Row) *Counts { return &row.Counts })
		m.Span, rates = t.Span, t.Averages()
	}
	rates.Offered, rates.Due, rates.Unsent = m.Offered, m.Due, m.Unsent
	m.Averages = rates
	return m, nil
}

// readTogether returns when the first message of a backlog came, the time to the last one, and the rates of that time.
func readTogether(parts []*Result, starts []int64, step string) (since *int64, length int64, rates Averages) {
	from, to := int64(math.MaxInt64), int64(0)
	var received, bytes float64
	for i, p := range parts {
		f := p.figures(step)
		from, to = min(from, starts[i]+*f.Since), max(to, starts[i]+*f.Since+f.Span)
		if f.Received != nil {
			received += *f.Received * float64(f.Span)
		}
		if f.ReceivedBytes != nil {
			bytes += *f.ReceivedBytes * float64(f.Span)
		}
	}
	length, from = to-from, from-slices.Min(starts)
	if length > 0 {
		received, bytes = received/float64(length), bytes/float64(length)
		rates.Received, rates.ReceivedBytes = &received, &bytes
	}
	return &from, length, rates
}

// Mark is the moment at which a step reached a number of messages.
type Mark struct {
	// Host is the host that counted, in merged results.
	Host string `json:"host,omitempty"`
	// Step is the name of the step.
	Step string `json:"step"`
	// Of is "completed" or "received".
	Of string `json:"of"`
	// Messages is the number.
	Messages uint64 `json:"messages"`
	// Elapsed is the time from the start of the load of the step, interpolated within the second in which the number was
	// reached.
	Elapsed int64 `json:"elapsed"`
	// Average is Messages over that time, in messages per second.
	Average float64 `json:"average"`
	// Momentary is the rate of that second, or, if the load ended within it, of the second before, in messages per second.
	Momentary float64 `json:"momentary"`
	// BrokerLoad is the load average of the broker's host then, and BrokerCPU the processor time of the broker in that
	// second, as a share of one processor, if the broker's side was watched.
	BrokerLoad *float64 `json:"brokerLoad,omitempty"`
	BrokerCPU  *float64 `json:"brokerCpu,omitempty"`
}

// Stall is a time, of the requested length or longer, in which the broker did nothing although it had something to do.
type Stall struct {
	// Host is the host that noticed it, and its shard, in merged results.
	Host string `json:"host,omitempty"`
	// Side is "send" if messages were in flight or due and none was answered, "receive" if messages waited and none was
	// received, or "both".
	Side string `json:"side"`
	// Time is the moment at which it began, by the wall clock.
	Time int64 `json:"time"`
	// Elapsed is the same moment as the time from the start of the load, by the monotonic clock.
	Elapsed int64 `json:"elapsed"`
	// Length is how long it lasted.
	Length int64 `json:"length"`
	// Group is the only group that stalled, and Broker the only broker or host, of several.
	Group  string `json:"group,omitempty"`
	Broker string `json:"broker,omitempty"`
	// Warmup: the stall ended in a warm-up.
	Warmup bool `json:"warmup,omitempty"`
}
