package page

import (
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// outageTable has the periods without a connection of some worker, in the words of the console.
func outageTable(r *Run) Table {
	t := Table{
		Title: "Outages", Words: true,
		Head: []string{"at", "outage"},
	}
	if m := r.Result.MoreOutages; m != nil {
		t.more = m.Count
	}
	for _, o := range r.Result.Outages {
		t.add(outageName(&o), words.Outage(&o))
	}
	return t
}

// outageName returns the start of an outage and, in a merged result, its load host.
func outageName(o *result.Outage) string {
	return ofHost(o.Host, seconds(o.Elapsed)+" s")
}

// outageBands returns a band for each outage. An outage without a later message lasts to the end of the run.
func (r *Run) outageBands() []band {
	list := []band{}
	end := int64(0)
	if n := len(r.series.points); n > 0 {
		end = r.series.points[n-1].to
	}
	for _, o := range r.Result.Outages[:min(len(r.Result.Outages), maxItems)] {
		to, text := o.Elapsed+o.Length, "outage: "+words.Duration(o.Length)+" at "+outageName(&o)
		if o.Length == 0 {
			to, text = max(o.Elapsed, end), "outage from "+outageName(&o)+" on: no message came through after it"
		}
		list = append(list, band{"outage", millis(o.Elapsed), millis(to), text})
	}
	return list
}
