package result

import (
	"cmp"
	"errors"
	"fmt"
)

// Outage is a time in which workers had lost their connections, of a run that opens them again. Times are microseconds.
type Outage struct {
	// Host is the host that saw it, and its shard, in merged results.
	Host string `json:"host,omitempty"`
	// Time is the moment of the first failure that a worker was told of, by the wall clock.
	Time int64 `json:"time"`
	// Elapsed is the same from the start of the load.
	Elapsed int64 `json:"elapsed"`
	// Length is how long it lasted: to the first confirmation or receipt on a connection that was opened after it; missing
	// if none came.
	Length int64 `json:"length,omitempty"`
	// Confirmed and Received are the times from its start to the first confirmation, and the first receipt, on such a
	// connection; missing if none came.
	Confirmed int64 `json:"confirmed,omitempty"`
	Received  int64 `json:"received,omitempty"`
	// Reconnected is the time from its start until all workers were connected again; missing if one of them was not, or
	// needed it no more.
	Reconnected int64 `json:"reconnected,omitempty"`
	// Silent is the time before Time in which no answer and no message had come to any worker: if all connections broke at
	// once, to notice that took no longer.
	Silent int64 `json:"silent,omitempty"`
	// Recovered is the time from its start to the first of three seconds in which completions and receipts were back at
	// 90% of Before, each; missing if there were none. It is exact to a second.
	Recovered int64 `json:"recovered,omitempty"`
	// Before are the medians of the ten seconds with messages before the outage; of several outages from which the load
	// had not recovered in between, those before the first.
	Before Rates `json:"before,omitzero"`
	// Watched is how much of the load in the same step followed the first message that came through, up to Recovered.
	Watched int64 `json:"watched,omitempty"`
	// Workers are those that lost their connections; NotBack those of them that were not connected again.
	Workers []string `json:"workers"`
	NotBack []string `json:"notBack,omitempty"`
	// Attempts are the attempts to connect that failed.
	Attempts uint64 `json:"attempts,omitempty"`
	// LastAttempt is the error of the last of these; missing if there is none.
	LastAttempt string `json:"lastAttempt,omitempty"`
	// InDoubt are the messages that ended without an answer.
	InDoubt uint64 `json:"inDoubt,omitempty"`
	// Resent are the times that one of these was sent again.
	Resent uint64 `json:"resent,omitempty"`
	// Lost are messages that the broker had confirmed and that never came: those for which this is the first outage that
	// began after they were sent. It is missing if there are none, or nothing was verified.
	Lost uint64 `json:"lost,omitempty"`
	// Doubled are the copies that came because an outage had cut off their settlement, from its start to that of the next
	// outage; missing if there are none, or nothing was verified.
	Doubled uint64 `json:"doubled,omitempty"`
	// Worst are the highest latencies of the seconds from that of Time until the load has recovered; if it does not, until
	// the load of the step is over, its drain included. Without rates Before, they end when the first message comes
	// through.
	Worst Worst `json:"worst,omitzero"`
	// Class and Error are those of the first failure.
	Class string `json:"class"`
	Error string `json:"error"`
}

// MoreOutages are the sums of outages that are not listed. Times are microseconds.
type MoreOutages struct {
	// Count is how many there are.
	Count uint64 `json:"count"`
	// Length is how long they lasted, added up, and Longest how long the longest did.
	Length  int64 `json:"length"`
	Longest int64 `json:"longest"`
	// Recovered is the longest time in which the load recovered from one, Unrecovered from how many it was not seen to.
	Recovered   int64  `json:"recovered,omitempty"`
	Unrecovered uint64 `json:"unrecovered,omitempty"`
	// Attempts, InDoubt, Resent, Lost and Doubled are those of an outage, added up.
	Attempts uint64 `json:"attempts,omitempty"`
	InDoubt  uint64 `json:"inDoubt,omitempty"`
	Resent   uint64 `json:"resent,omitempty"`
	Lost     uint64 `json:"lost,omitempty"`
	Doubled  uint64 `json:"doubled,omitempty"`
	// Worst are the highest latencies around them.
	Worst Worst `json:"worst,omitzero"`
}

// mergeOutages adds the outages that a part does not list.
func (r *Result) mergeOutages(part *Result) (err error) {
	if more := part.MoreOutages; more != nil && len(part.Parts) < 2 {
		r.Outcome.Warnings = append(r.Outcome.Warnings, fmt.Sprintf("%s: %d outages are not listed, between the first and "+
			"the last of %d", part.name(), more.Count, len(part.Outages)))
	}
	r.MoreOutages, err = addOutages(r.MoreOutages, part.MoreOutages)
	return err
}

func addOutages(m, part *MoreOutages) (*MoreOutages, error) {
	if m == nil || part == nil {
		return cmp.Or(m, part), nil
	}
	sum := *m
	length := uint64(sum.Length)
	err := addTo(&length, uint64(part.Length))
	for to, n := range map[*uint64]uint64{
		&sum.Count: part.Count, &sum.Unrecovered: part.Unrecovered, &sum.Attempts: part.Attempts, &sum.InDoubt: part.InDoubt,
		&sum.Resent: part.Resent, &sum.Lost: part.Lost, &sum.Doubled: part.Doubled,
	} {
		err = errors.Join(err, addTo(to, n))
	}
	sum.Length, sum.Longest, sum.Recovered = int64(length), max(m.Longest, part.Longest), max(m.Recovered, part.Recovered)
	for to, us := range map[*int64]int64{
		&sum.Worst.Ack: part.Worst.Ack, &sum.Worst.Response: part.Worst.Response, &sum.Worst.Transfer: part.Worst.Transfer,
	} {
		*to = max(*to, us)
	}
	return &sum, err
}

// Worst are the highest of latencies; missing if there was none. Those of messages due in a warm-up count.
type Worst struct {
	// Ack is from the actual send to the confirmation.
	Ack int64 `json:"ack,omitempty"`
	// Response is from the moment when a message was due to its confirmation, of a load with a rate.
	Response int64 `json:"response,omitempty"`
	// Transfer is from the actual send to the delivery to a consumer.
	Transfer int64 `json:"transfer,omitempty"`
}

// Rates are messages per second.
type Rates struct {
	// Completed are the messages that the broker accepted.
	Completed float64 `json:"completed"`
	// Received are the messages that came to consumers.
	Received float64 `json:"received"`
}
