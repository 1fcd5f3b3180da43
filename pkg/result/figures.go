package result

// Figures are rates of the measured part of a run or a step: from the end of the warm-up to the end of the load. Rates
// of a role that the run does not have are missing.
type Figures struct {
	// Span is the length of the measured part.
	Span int64 `json:"span"`
	// Since is when Span began, from the start of the load, if the rates are those of a backlog: from its first message to
	// its last.
	Since *int64 `json:"since,omitempty"`
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
	// MinimumCompleted and MinimumReceived are the lowest rates of a full second; missing with fewer than three of them.
	MinimumCompleted *Extreme `json:"minimumCompleted,omitempty"`
	MinimumReceived  *Extreme `json:"minimumReceived,omitempty"`
	// MaximumCompleted and MaximumReceived are the highest.
	MaximumCompleted *Extreme `json:"maximumCompleted,omitempty"`
	MaximumReceived  *Extreme `json:"maximumReceived,omitempty"`
	// MaximumLive is the largest number of open connections at the end of a second; missing without groups of
	// connections.
	MaximumLive *uint64 `json:"maximumLive,omitempty"`
}

// Extreme is the lowest or highest rate of a full second.
type Extreme struct {
	// PerSecond is the rate in messages per second.
	PerSecond float64 `json:"perSecond"`
	// Time is the moment at which that second ended, by the wall clock.
	Time int64 `json:"time"`
	// Elapsed is the same moment as the time from the start of the load, by the monotonic clock.
	Elapsed int64 `json:"elapsed"`
	// Seconds is the number of full seconds of which this is the lowest or highest; only during a run.
	Seconds int `json:"-"`
}

// EnoughSeconds is the number of full seconds that a lowest or highest rate needs to be significant.
const EnoughSeconds = 3

// Known reports whether there were enough seconds for the rate to be significant.
func (e *Extreme) Known() bool { return e.Seconds >= EnoughSeconds }

// Include considers the rates of other seconds: it keeps the lower rate, or with sign -1 the higher one.
func (e *Extreme) Include(o *Extreme, sign float64) {
	seconds := e.Seconds + o.Seconds
	if e.Seconds == 0 || o.Seconds > 0 && sign*o.PerSecond < sign*e.PerSecond {
		*e = *o
	}
	e.Seconds = seconds
}

// IfKnown returns the rate as results have it; nil if it is not Known.
func (e Extreme) IfKnown() *Extreme {
	if !e.Known() {
		return nil
	}
	e.Seconds = 0
	return &e
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
	// Length is the time that it lasted.
	Length int64 `json:"length"`
	// Group is the only group that stalled, and Broker the only broker or host, of several.
	Group  string `json:"group,omitempty"`
	Broker string `json:"broker,omitempty"`
	// Warmup: the stall ended in a warm-up.
	Warmup bool `json:"warmup,omitempty"`
}
