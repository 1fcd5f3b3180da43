package page

// groupTable has the figures of groups, for each step with several groups.
func groupTable(r *Run) Table {
	t := Table{
		Title: "Groups",
		Head:  []string{"group"},
		Send:  8, Receive: 4,
	}
	shown := []column{
		{"due", "", "due", ""},
		{"total", "", "sent", ""},
		{"completed", "", "completed", ""},
		{"failed", "", "failed", ""},
		{unconfirmed, "", unconfirmed, ""},
		{"ack 50%", "", "ack.p50", "ms"},
		{"ack 99%", "", "ack.p99", "ms"},
		{"response 99%", "", "response.p99", "ms"},
		{"total", "", "received", ""},
		{"transfer 50%", "", "transfer.p50", "ms"},
		{"transfer 99%", "", "transfer.p99", "ms"},
		{"max transfer", "", "transfer.max", "ms"},
	}
	var lines []line
	for _, s := range r.Result.Steps {
		for _, g := range s.Groups {
			l := line{
				result: r.Result, run: g.Name, step: s.Name, counts: &g.Counts, latencies: &g.Latencies, due: g.Due,
			}
			if len(r.Result.Steps) > 1 {
				l.run = s.Name + " · " + g.Name
			}
			lines = append(lines, l)
		}
	}
	t.fill(shown, lines)
	return t
}
