package page

import "github.com/perfmq/perfmq/pkg/result"

// groupTable has the figures of groups, for each step with several groups.
func groupTable(r *Run) Table {
	t := Table{
		Title: "Groups",
		Note: "Counts include the warm-up; due are the messages that the rate of the group wanted to be sent. Times are in " +
			"ms, of the messages due after the warm-up. " +
			"Ack: send to the broker's answer. Response: intended send to the answer. Transfer: send to the consumer.",
		Head: []string{
			"group", "due", "total", "succeeded", "failed", "ack 50%", "ack 99%", "response 99%", "total", "transfer 50%",
			"transfer 99%", "max transfer",
		},
		Groups: []Columns{{"", 1}, {"Send", 7}, {"Receive", 4}},
	}
	for i := range r.Result.Steps {
		s := &r.Result.Steps[i]
		for k := range s.Groups {
			name := s.Groups[k].Name
			if len(r.Result.Steps) > 1 {
				name = s.Name + " · " + name
			}
			t.Rows = append(t.Rows, append([]string{name}, groupCells(&s.Groups[k])...))
		}
	}
	return t
}

func groupCells(g *result.Group) []string {
	due, cells := "-", []string{"-", "-", "-"}
	if g.Due > 0 {
		due = count(g.Due)
	}
	if p := g.Counts.Producers; p != nil {
		cells = []string{count(p.Sent), count(p.Completed), count(failed(p))}
	}
	l := &g.Latencies
	cells = append(append([]string{due}, cells...), percentileCell(l[result.Ack], 50), percentileCell(l[result.Ack], 99),
		percentileCell(l[result.Response], 99))
	received := "-"
	if c := g.Counts.Consumers; c != nil {
		received = count(c.Received)
	}
	most := "-"
	if l[result.Transfer] != nil && l[result.Transfer].Count > 0 {
		most = ms(float64(l[result.Transfer].Max))
	}
	return append(cells, received, percentileCell(l[result.Transfer], 50), percentileCell(l[result.Transfer], 99), most)
}

// percentileCell is the 50% or 99% percentile in ms.
func percentileCell(l *result.Latency, percent int) string {
	if l == nil || l.Count == 0 || l.Percentiles == nil {
		return "-"
	}
	if percent == 50 {
		return ms(float64(l.P50))
	}
	return ms(float64(l.P99))
}
