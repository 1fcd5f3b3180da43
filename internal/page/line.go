package page

import (
	"github.com/perfmq/perfmq/pkg/result"
)

// line is a row of the table of messages: a run, or a step of one.
type line struct {
	run, step string
	result    *result.Result
	elapsed   int64
	counts    *result.Counts
	latencies *result.Latencies
	limit     *result.Limit
	// sends and receives tell the roles of the run or step.
	sends, receives bool
	// Averages of the measured time, and the lowest and highest full second; nil if unknown.
	completed, received         *float64
	bestCompleted, bestReceived *extent
}

// lines returns the line of the run and, if there are several steps, one for each.
func (r *Run) lines() []line {
	res := r.Result
	whole := line{
		run: r.Name, result: res, elapsed: max(0, res.End-res.Start), counts: &res.Total,
		latencies: &res.Latencies, limit: res.Limit, sends: r.sends(), receives: r.receives(),
	}
	whole.figures(res.Figures, r.tally, r)
	list := []line{whole}
	if len(res.Steps) < 2 {
		return list
	}
	for i := range res.Steps {
		s := &res.Steps[i]
		l := line{
			run: r.Name, step: s.Name, result: res, elapsed: max(0, s.End-s.Start), counts: &s.Counts,
			latencies: &s.Latencies, limit: s.Limit,
		}
		l.sends, l.receives = r.does(s.Name)
		rows := &tally{}
		if i < len(r.tally.steps) && r.tally.steps[i].step == s.Name {
			rows.whole, rows.steps = r.tally.steps[i], r.tally.steps[i:i+1]
		}
		l.figures(s.Figures, rows, r)
		list = append(list, l)
	}
	return list
}

// figures sets the rates of the result or, without these, those of the rows. A merged result has no extremes, because
// these belong to one run.
func (l *line) figures(f *result.Figures, rows *tally, r *Run) {
	if f != nil {
		l.completed, l.received = f.Completed, f.Received
		l.bestCompleted = extremes(f.MinimumCompleted, f.MaximumCompleted)
		l.bestReceived = extremes(f.MinimumReceived, f.MaximumReceived)
		if len(r.Result.Parts) == 0 {
			return
		}
	} else if p := &rows.whole; p.length > 0 {
		rates := p.averages(r)
		l.completed, l.received = rates.Completed, rates.Received
	}
	completed, received := rows.bests()
	if l.bestCompleted == nil && r.sends() {
		l.bestCompleted = completed
	}
	if l.bestReceived == nil && r.receives() {
		l.bestReceived = received
	}
}

func extremes(least, most *result.Extreme) *extent {
	if least == nil || most == nil {
		return nil
	}
	return &extent{least.PerSecond, most.PerSecond}
}

// does reports whether a step has producers and consumers. If that is unknown, it has the roles of the run.
func (r *Run) does(step string) (sends, receives bool) {
	sends, receives = r.sends(), r.receives()
	for i := range r.Result.Steps {
		if s := &r.Result.Steps[i]; s.Name == step && s.Figures != nil && len(r.Result.Steps) > 1 {
			return sends && s.Figures.Completed != nil, receives && s.Figures.Received != nil
		}
	}
	return sends, receives
}

// producers returns the counts of producers; nil without them.
func (l *line) producers() *result.Producers {
	if p := l.counts.Producers; p != nil && (l.sends || p.Sent > 0) {
		return p
	}
	return nil
}

// consumed returns the number of messages received; false without consumers.
func (l *line) consumed() (uint64, bool) {
	if c := l.counts.Consumers; c != nil && (l.receives || c.Received > 0) {
		return c.Received, true
	}
	return 0, false
}

// values returns the numbers of a line by name: what is known of rates, counts, times in microseconds and the tester.
// Latencies are there even if many values are left out of them.
func (l *line) values() map[string]float64 {
	all := map[string]float64{"elapsed": float64(l.elapsed) / 1e6}
	l.latencies.Metrics(all, func(string) uint64 { return 0 })
	averages := result.Averages{Completed: l.completed, Received: l.received}
	averages.Metrics(all)
	if p := l.producers(); p != nil {
		all["sent"], all["completed"], all["failed"] = float64(p.Sent), float64(p.Completed), float64(failed(p))
	}
	if n, known := l.consumed(); known {
		all["received"] = float64(n)
	}
	for name, e := range map[string]*extent{"completed": l.bestCompleted, "received": l.bestReceived} {
		if e != nil {
			all[name+".min"], all[name+".max"] = e.low, e.high
		}
	}
	if t := &l.result.Tester; l.step == "" {
		all["tester.cpu"] = 100 * float64(t.CPU) / float64(max(1, l.elapsed))
		all["tester.memory"] = float64(max(t.Memory, t.MemoryPeak))
		if t.MachineAll > 0 {
			all["machine"] = 100 * float64(t.MachineBusy) / float64(t.MachineAll)
		}
	}
	return all
}

// cells is a row of a table: the name of the run, and the columns.
func (l *line) cells(columns []column, values map[string]float64) []string {
	row := []string{l.run}
	for i := range columns {
		v, known := values[columns[i].value]
		row = append(row, columns[i].text(v, known))
	}
	return row
}
