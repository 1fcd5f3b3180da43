package page

import (
	"fmt"

	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// maxListed is the maximum number of rows in a table of stalls or outages.
const maxListed = 50

// outageTable has the periods without a connection of some worker.
func outageTable(r *Run) Table {
	t := Table{
		Title: "Outages", Words: true,
		Head: []string{
			"at", "nothing came before it for", "length", "first confirmation", "first receipt", "recovered", "workers",
			"all connected again", "failed attempts",
			"in doubt", "resent", "lost", "delivered again", "worst response", "worst ack", "worst transfer", "first failure",
		},
		Note: "An outage begins with the first failure that a worker was told of, and lasts to the first message that " +
			"was confirmed, or received, on a connection that " +
			"was opened after that. Times are from its begin. The broker came back between the last failed attempt to connect " +
			"and the first success. The load has recovered when the rates were back at 90% of those " +
			"before it for three seconds. Messages in doubt ended without an answer: the broker has them " +
			"or not. Lost are confirmed messages for which it was the first outage that began after they were " +
			"sent. The worst latencies are of the seconds from its begin until the load has recovered, or is over.",
	}
	list, all := r.Result.Outages, uint64(len(r.Result.Outages))
	if m := r.Result.MoreOutages; m != nil {
		all += m.Count
	}
	known := func(us int64, other string) string {
		if us == 0 {
			return other
		}
		return span(us)
	}
	return listed(t, list, all, func(o *result.Outage) []string {
		again, failure := "-", o.Class+": "+o.Error
		if o.Reconnected > 0 {
			again = "after " + span(o.Reconnected)
		}
		if o.Tried > 0 && o.Back > 0 {
			failure += "; the broker came back between " + span(o.Tried) + " and " + span(o.Back)
		}
		if len(o.NotBack) > 0 {
			again = fmt.Sprintf("%d of %d not", len(o.NotBack), len(o.Workers))
			if o.LastAttempt != "" {
				failure += "; the last attempt: " + o.LastAttempt
			}
		}
		return []string{
			outageName(o), known(o.Silent, "-"), known(o.Length, "no end"), known(o.Confirmed, "none"),
			known(o.Received, "none"), recovered(o), fmt.Sprint(len(o.Workers)), again,
			count(o.Attempts), count(o.InDoubt), count(o.Resent), count(o.Lost),
			count(o.Doubled),
			known(o.Worst.Response, "-"), known(o.Worst.Ack, "-"), known(o.Worst.Transfer, "-"),
			failure,
		}
	})
}

// recovered says when the load had recovered.
func recovered(o *result.Outage) string {
	switch {
	case o.Recovered > 0:
		return "after " + span(o.Recovered)
	case o.Watched > 0:
		return "not in " + span(o.Watched)
	}
	return "-"
}

// outageName returns the start of an outage and, in a merged result, its load host.
func outageName(o *result.Outage) string {
	name := seconds(o.Elapsed) + " s"
	if o.Host != "" {
		name = o.Host + ": " + name
	}
	return name
}

func outageText(o *result.Outage) string {
	if o.Length == 0 {
		return fmt.Sprintf("outage from %s on: no message came through after it", outageName(o))
	}
	return fmt.Sprintf("outage: %s at %s", span(o.Length), outageName(o))
}

// outageBands returns a band for each outage. An outage without a later message lasts to the end of the run.
func (r *Run) outageBands() (list []band) {
	end := int64(0)
	if n := len(r.series.points); n > 0 {
		end = r.series.points[n-1].to
	}
	for i := range r.Result.Outages[:min(len(r.Result.Outages), maxItems)] {
		o := &r.Result.Outages[i]
		to := o.Elapsed + o.Length
		if o.Length == 0 {
			to = max(o.Elapsed, end)
		}
		list = append(list, band{"outage", millis(o.Elapsed), millis(to), outageText(o)})
	}
	return list
}

// outagesSoFar says how many outages there were, of a run whose outages are not known yet; empty if there were none.
func (r *Run) outagesSoFar() string {
	n := len(r.series.points)
	if r.Result.Complete || n == 0 || r.series.points[n-1].outages == 0 {
		return ""
	}
	last := &r.series.points[n-1]
	text := words.Plural(last.outages, "outage") + " so far"
	if last.down > 0 {
		text += fmt.Sprintf("; up to %d workers are not connected", last.down)
	}
	return text + "."
}

// outageSentence returns the number of outages and their lengths.
func outageSentence(list []result.Outage, more *result.MoreOutages) string {
	var sum, longest int64
	open, all := 0, uint64(len(list))
	if more != nil {
		sum, longest, all = more.Length, more.Longest, all+more.Count
	}
	for i := range list {
		sum, longest = sum+list[i].Length, max(longest, list[i].Length)
		if list[i].Length == 0 {
			open++
		}
	}
	text := words.Plural(all, "outage")
	switch {
	case all == 1 && open == 1:
		return text + ", after which no message came through."
	case all == 1:
		return text + " of " + span(sum) + "."
	case sum > 0:
		text += ", together " + span(sum) + ", the longest " + span(longest)
	}
	if open > 0 {
		text += fmt.Sprintf("; no message came through after %d of them", open)
	}
	return text + "."
}
