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
	due, cells, received := "-", []string{"-", "-", "-"}, "-"
	if g.Due > 0 {
		due = count(g.Due)
	}
	if p := g.Counts.Producers; p != nil {
		cells = []string{count(p.Sent), count(p.Completed), count(failed(p))}
	}
	if c := g.Counts.Consumers; c != nil {
		received = count(c.Received)
	}
	cells = append(append([]string{due}, cells...), latencyCells(&g.Latencies, "ack.p50", "ack.p99", "response.p99")...)
	return append(append(cells, received), latencyCells(&g.Latencies, "transfer.p50", "transfer.p99", "transfer.max")...)
}

// latencyCells are statistics of latencies in ms, by the names of their metrics.
func latencyCells(l *result.Latencies, names ...string) (cells []string) {
	metrics := map[string]float64{}
	l.Metrics(metrics, func(string) uint64 { return 0 })
	for _, name := range names {
		cell := "-"
		if v, known := metrics[name]; known {
			cell = ms(v)
		}
		cells = append(cells, cell)
	}
	return cells
}
