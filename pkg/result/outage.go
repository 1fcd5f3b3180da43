package result

import (
	"cmp"
	"fmt"
)

// Outage is a time in which workers had lost their connections, in a run that reconnects. Times are microseconds.
type Outage struct {
	// Host is the host that noticed it, and its shard, in merged results.
	Host string `json:"host,omitempty"`
	// Time is the moment of the first failure that was reported to a worker, by the wall clock.
	Time int64 `json:"time"`
	// Elapsed is the same moment as the time from the start of the load.
	Elapsed int64 `json:"elapsed"`
	// Length is the time to the first confirmation or receipt on a connection that was opened after the start, or until a
	// producer that had nothing to send was connected again; missing if neither came.
	Length int64 `json:"length,omitempty"`
	// Confirmed and Received are the times from the start to the first confirmation, and the first receipt, on such a
	// connection; missing if none came.
	Confirmed int64 `json:"confirmed,omitempty"`
	Received  int64 `json:"received,omitempty"`
	// Tried is the time from the start to the last attempt that found the broker away, and Back that to the first success
	// after it: the broker came back between them. Tried is missing if no attempt failed, Back if none succeeded.
	Tried int64 `json:"tried,omitempty"`
	Back  int64 `json:"back,omitempty"`
	// Reconnected is the time from the start until all workers were connected again; missing if a worker was not, or no
	// longer needed a connection.
	Reconnected int64 `json:"reconnected,omitempty"`
	// LastBack is the time from the start to the last reconnection, if Reconnected is missing.
	LastBack int64 `json:"lastBack,omitempty"`
	// Logins is the number of logins of workers that connected again, LoginP99 the time that 99% of them did not
	// exceed, and LoginRate the most of them within a second. Missing without a login.
	Logins    uint64 `json:"logins,omitempty"`
	LoginP99  int64  `json:"loginP99,omitempty"`
	LoginRate uint64 `json:"loginRate,omitempty"`
	// Silent is the time before Time in which no answer and no message had come to any worker: if all connections broke at
	// once, it bounds the time until the loss was noticed.
	Silent int64 `json:"silent,omitempty"`
	// Recovered is the time from the start to the first of three seconds in which completions and receipts were both back
	// at 90% of the rates before the outage, or to Confirmed or Received if they were later; missing if there were
	// none. It is exact to a second.
	Recovered int64 `json:"recovered,omitempty"`
	// Watched is how much load of the same step followed the first message that came through, up to Recovered.
	Watched int64 `json:"watched,omitempty"`
	// Workers are the workers that lost their connections; NotBack the members of Workers that were not connected again.
	Workers []string `json:"workers"`
	NotBack []string `json:"notBack,omitempty"`
	// Attempts is the number of failed attempts to connect.
	Attempts uint64 `json:"attempts,omitempty"`
	// LastAttempt is the error of the last failed attempt; missing if there is none.
	LastAttempt string `json:"lastAttempt,omitempty"`
	// InDoubt is the number of messages that ended without an answer.
	InDoubt uint64 `json:"inDoubt,omitempty"`
	// Resent is how often such messages were sent again.
	Resent uint64 `json:"resent,omitempty"`
	// Lost is the number of messages that the broker had confirmed and that never came, and for which this is the first
	// outage that began after they were sent. It is missing if there are none, if nothing was verified, or
	// after a hundred outages.
	Lost uint64 `json:"lost,omitempty"`
	// Doubled is the number of copies that came because an outage had cut off their settlement, from the start of this
	// outage to the start of the next; missing if there are none, if nothing was verified, or, if there were more than
	// a hundred outages, from the hundredth on.
	Doubled uint64 `json:"doubled,omitempty"`
	// Class and Error describe the first failure.
	Class string `json:"class"`
	Error string `json:"error"`
}

// MoreOutages are the sums of the outages that are not listed. Times are microseconds.
type MoreOutages struct {
	// Count is the number of outages.
	Count uint64 `json:"count"`
	// Length is the sum of their lengths, Longest the longest of them.
	Length  int64 `json:"length"`
	Longest int64 `json:"longest"`
	// InDoubt is the number of messages that ended without an answer.
	InDoubt uint64 `json:"inDoubt,omitempty"`
}

// Unended reports whether no message came through after an outage, unless its workers no longer needed a connection.
func (o *Outage) Unended() bool { return o.Length == 0 && (o.Reconnected > 0 || len(o.NotBack) > 0) }

// Recovery is the time from the return of the broker to the recovery of the load; 0 if it was not seen to recover.
func (o *Outage) Recovery() int64 {
	if o.Recovered == 0 {
		return 0
	}
	return max(1, o.Recovered-o.Back)
}

// mergeOutages adds the outages that a part does not list.
func (r *Result) mergeOutages(part *Result) {
	if more := part.MoreOutages; more != nil {
		r.Outcome.Warnings = append(r.Outcome.Warnings, fmt.Sprintf("%s: %d outages are not listed, between the first and "+
			"the last of %d", part.name(), more.Count, len(part.Outages)))
	}
	m, more := r.MoreOutages, part.MoreOutages
	if m == nil || more == nil {
		r.MoreOutages = cmp.Or(m, more)
		return
	}
	r.MoreOutages = &MoreOutages{
		Count: m.Count + more.Count, InDoubt: m.InDoubt + more.InDoubt,
		Length: m.Length, Longest: max(m.Longest, more.Longest),
	}
	addTo(&r.MoreOutages.Length, more.Length)
}
