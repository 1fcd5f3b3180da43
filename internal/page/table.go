package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// Table is a table of texts. The first cell of a row names it.
type Table struct {
	Title, Note string
	Head        []string
	Rows        [][]string
	// Send and Receive are the numbers of the last columns that are of sending, and of receiving after these; 0 without
	// such columns.
	Send, Receive int
	// Words means that the columns are texts, not numbers.
	Words bool
	// Folded means that a page shows the table on demand, and Markdown leaves it out.
	Folded bool

	more uint64 // rows that the result does not have
}

// Named is the number of the columns of no side.
func (t *Table) Named() int { return len(t.Head) - t.Send - t.Receive }

// ID is the anchor of the table in a page.
func (t *Table) ID() string { return "t-" + strings.ToLower(strings.ReplaceAll(t.Title, " ", "-")) }

// add adds a row.
func (t *Table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// column is a column of the table of messages, of CSV, or of both; where it has no name it is not there.
type column struct {
	head, csv string
	value     string // its name in [line.values]
	unit      string // s, ms (of a value in microseconds), or empty for a count; others are rates and shares
}

// columns returns the columns of numbers. The table's columns are first, in its order.
func columns() []column {
	list := []column{
		{"elapsed s", "elapsed_s", "elapsed", "s"},
		{"total", "sent", "sent", ""},
		{"completed", "completed", "completed", ""},
		{"failed", "failed", "failed", ""},
		{unconfirmed, unconfirmed, unconfirmed, ""},
		{"average/s", "completed_avg", "completed.avg", "/s"},
		{"min/s", "completed_min", "completed.min", "/s"},
		{"max/s", "completed_max", "completed.max", "/s"},
		{"average ack", "", "ack.mean", "ms"},
		{"max ack", "", "ack.max", "ms"},
		{"total", "received", "received", ""},
		{"average/s", "received_avg", "received.avg", "/s"},
		{"min/s", "received_min", "received.min", "/s"},
		{"max/s", "received_max", "received.max", "/s"},
		{"average transfer", "", "transfer.mean", "ms"},
		{"max transfer", "", "transfer.max", "ms"},
	}
	for _, kind := range result.KindNames() {
		for _, s := range result.Statistics() {
			list = append(list, column{"", kind + "_" + s.Name + "_ms", kind + "." + s.Name, "ms"})
		}
	}
	return append(list, column{"", "tester_cpu_percent", "tester.cpu", "%"},
		column{"", "tester_memory_bytes", "tester.memory", ""}, column{"", "machine_percent", "machine", "%"},
		column{"", "broker_cpu_cores", "broker.cpu", "cores"}, column{"", "broker_memory_bytes", "broker.memory", "B"},
		column{"", "broker_disk_percent", "broker.disk", "%"},
		column{"", "broker_network_bytes_per_second", "broker.network", "B"},
		column{"", "broker_loopback_bytes_per_second", "broker.loopback", "B"},
		column{"", "broker_load", "broker.load", "load"})
}

// text is the cell of a value in the table.
func (c *column) text(v float64, known bool) string {
	switch {
	case !known:
		return "-"
	case c.unit == "ms":
		return ms(v)
	case c.unit == "s":
		return fmt.Sprintf("%.2f", v)
	}
	return number(v)
}

// decimal is the cell of a value in CSV.
func (c *column) decimal(v float64, known bool) string {
	digits := 3
	switch {
	case !known:
		return ""
	case c.unit == "", c.unit == "B":
		digits = 0
	case c.unit == "ms":
		v /= 1e3
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// messages is the main table of a report: counts, rates and latencies of the messages sent and received.
func messages(runs []*Run) Table {
	t := Table{
		Title: "Messages",
		Head:  []string{"run"},
		Send:  9, Receive: 6,
	}
	var lines []line
	for _, r := range runs {
		for _, l := range r.lines() {
			if l.Name != "" {
				l.run = "· " + l.Name
			}
			lines = append(lines, l)
		}
	}
	t.fill(slices.DeleteFunc(columns(), func(c column) bool { return c.head == "" }), lines)
	return t
}

// latencyTable has the percentiles of all latencies.
func latencyTable(runs []*Run) Table {
	t := Table{
		Title: "Latencies",
		Head:  []string{"", "messages", "mean", "50%", "90%", "99%", "99.9%", "99.99%", "max"},
	}
	for _, r := range runs {
		metrics := (&result.Result{Latencies: r.Result.Latencies}).Metrics()
		for _, k := range result.Kinds() {
			l, title := r.Result.Latencies[k.Kind], k.Name
			leftOut := r.Result.LeftOut(&k)
			values := int64(0)
			if l != nil {
				values = l.Count
			}
			if values == 0 && leftOut == 0 {
				continue
			}
			if leftOut > 0 {
				title += fmt.Sprintf(" (%s below 0 left out)", count(leftOut))
			}
			if len(runs) > 1 {
				title = r.Name + " · " + title
			}
			row := []string{title, number(float64(values))}
			for _, s := range result.Statistics() {
				v, known := metrics[k.Name+"."+s.Name]
				row = append(row, (&column{unit: "ms"}).text(v, known))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// replyTable has the counters of requests and replies.
func replyTable(runs []*Run) Table {
	t := Table{Title: "Replies", Head: []string{"", "count", "metric"}}
	for _, r := range runs {
		metrics := r.Result.Metrics()
		for _, c := range result.CounterTable() {
			if v, known := metrics[c.Name]; known && c.Role&(result.Requesting|result.Responding) != 0 {
				title := strings.TrimSuffix(c.Help, ".")
				if len(runs) > 1 {
					title = r.Name + " · " + title
				}
				t.add(title, number(v), c.Name)
			}
		}
	}
	return t
}

// testers has the use of perfmq's own machine.
func testers(runs []*Run) Table {
	t := Table{
		Title: "perfmq",
		Head:  []string{"run", "cores used", "cores", "memory MB", "machine", "pauses", "longest ms", "late sends"},
	}
	for _, r := range runs {
		x := &r.Result.Tester
		memory, late := "-", "-"
		if peak := max(x.MemoryPeak, x.Memory); peak > 0 {
			memory = megabytes(peak)
		}
		if p := r.Result.Total.Producers; p != nil {
			late = count(p.Late)
		}
		t.add(r.Name, cores(x.CPU, r.Result.End-r.Result.Start), fmt.Sprint(x.Cores), memory,
			cores(x.MachineBusy, r.Result.End-r.Result.Start), count(x.Pauses), ms(float64(x.PauseMax)), late)
	}
	return t
}

func thresholdTable(r *Run) Table {
	t := Table{Title: "Thresholds", Head: []string{"threshold", "measured", "result"}}
	for _, x := range r.Result.Thresholds {
		name := x.Threshold
		if x.Step != "" {
			name = x.Step + ": " + name
		}
		t.add(name, measured(&x), map[bool]string{true: "passed", false: "failed"}[x.Kept])
	}
	return t
}

// measured is the value of a threshold's metric.
func measured(x *result.Threshold) string {
	switch {
	case x.Measured == nil:
		return unmeasured
	case x.Unit == "us":
		return words.Duration(int64(*x.Measured))
	default:
		return strings.TrimSpace(number(*x.Measured) + " " + x.Unit)
	}
}

func stallTable(r *Run) Table {
	t := Table{
		Title: "Stalls of the broker", Head: []string{"at", "length", "side", "by the clock"}, more: r.Result.MoreStalls,
	}
	for _, s := range r.Result.Stalls {
		t.add(seconds(s.Elapsed)+" s", words.Duration(s.Length), stallSide(&s), moment(s.Time))
	}
	return t
}

// stallSide says on which side the broker stalled and, in a run with several, which broker for which group.
func stallSide(s *result.Stall) string {
	side := s.Side
	if s.Broker != "" {
		side += ", broker " + s.Broker
	}
	if s.Group != "" {
		side += ", group " + s.Group
	}
	return side
}

func errorTable(r *Run) Table {
	t := Table{Title: "Failures by class", Head: []string{"class", "messages", "first"}, Words: true}
	for _, f := range r.Result.Errors {
		t.add(f.Class, count(f.Count), strings.Join(f.Examples, "; "))
	}
	return t
}

// verified has the outcomes of messages by subscription.
func verified(r *Run) Table {
	t := Table{
		Title: "Verification",
		Head:  []string{"", "expected", "received", "lost", "left", "duplicates", "out of order", "damaged", "foreign"},
	}
	v := r.Result.Verification
	if v == nil {
		return t
	}
	t.Note = strings.Join(v.Notes, " ")
	late := v.Total.ArrivedLate > 0
	if late {
		t.Head = append(t.Head, "arrived late")
	}
	row := func(name string, known bool, c *result.Verified) {
		expected, lost, left := count(c.Expected), count(c.Lost), count(c.Left)
		if !known {
			expected, lost, left = "-", "-", "-"
		}
		cells := []string{
			name, expected, count(c.Received), lost, left, count(c.Duplicates), count(c.Disordered), count(c.Damaged),
			count(c.Foreign),
		}
		if late {
			cells = append(cells, count(c.ArrivedLate))
		}
		t.add(cells...)
	}
	for _, s := range v.Subscriptions {
		name := s.Destination
		if s.Name != "" {
			name += " (" + s.Name + ")"
		}
		row(name, s.Known, &s.Verified)
	}
	if len(v.Subscriptions) != 1 {
		row("all", v.Known, &v.Total)
	}
	return t
}

// brokerCounts compares the brokers' own counts with the counts of the run.
func brokerCounts(r *Run) Table {
	t := Table{
		Title: "The broker's own count",
		Head:  []string{"destination", "sent", "added", "received", "acknowledged", "depth at the end"},
	}
	b := r.Result.BrokerCount
	if b == nil {
		return t
	}
	t.Note = strings.Join(b.Notes, " ")
	compared := func(c *result.Compared) string {
		switch {
		case c == nil:
			return "not known"
		case c.Count < c.Least || c.Count > c.Most:
			return count(c.Count) + ", differs"
		}
		return count(c.Count) + ", agrees"
	}
	for _, d := range b.Destinations {
		depth := "-"
		if d.Depth != nil {
			depth = count(*d.Depth)
		}
		t.add(d.Destination, count(d.Sent), compared(d.Added), count(d.Received), compared(d.Acknowledged), depth)
	}
	return t
}

// sideTable has the use of the brokers and their hosts from the start of the load to the end of the run.
func sideTable(r *Run) Table {
	t := Table{
		Title: "The broker's side", Head: []string{"", "from the start of the load to the end of the run"}, Words: true,
	}
	for _, s := range r.Result.BrokerSide {
		for _, line := range append([][2]string{{"watched", strings.Join(s.Sources, ", ")}}, words.Side(&s)...) {
			t.add(ofHost(s.Host, line[0]), line[1])
		}
	}
	return t
}

// marksTable has the rates at the marks of a run.
func marksTable(r *Run) Table {
	t := Table{Title: "Marks", Head: []string{"mark"}, Words: true}
	for _, m := range r.Result.Marks {
		t.add(ofHost(m.Host, words.Mark(&m, len(r.Result.Steps) > 1)))
	}
	return t
}

// ofHost puts the load host of a merged result before a text.
func ofHost(host, text string) string {
	if host == "" {
		return text
	}
	return host + ": " + text
}

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
			l := line{result: r.Result, run: g.Name, due: g.Due, Step: result.Step{
				Name: s.Name, Counts: g.Counts, Latencies: g.Latencies,
			}}
			if len(r.Result.Steps) > 1 {
				l.run = s.Name + " · " + g.Name
			}
			lines = append(lines, l)
		}
	}
	t.fill(shown, lines)
	return t
}

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

// count returns a number with separators of thousands: 1,234,567.
func count(n uint64) string { return record.PerSecond(float64(n)) }

// number returns a rate or another figure; small ones with decimals.
func number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case math.Abs(v) >= 99.95 || v == math.Trunc(v):
		whole := count(uint64(math.Round(math.Abs(v))))
		if v < 0 {
			return "-" + whole
		}
		return whole
	case math.Abs(v) >= 9.995:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// ms returns microseconds as milliseconds.
func ms(us float64) string {
	if v := us / 1000; v >= 0.9995 {
		return number(v)
	}
	return fmt.Sprintf("%.3f", us/1000)
}

// seconds returns microseconds as seconds.
func seconds(us int64) string { return fmt.Sprintf("%.2f", float64(us)/1e6) }

// moment returns microseconds since the epoch as a time in UTC.
func moment(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02 15:04:05 UTC") }

// megabytes returns bytes as MB of a million bytes.
func megabytes(bytes uint64) string { return number(float64(bytes) / 1e6) }

// cores returns the number of cores used on average over a span; "-" if the span is not positive.
func cores(used, span int64) string {
	if span <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(used)/float64(span))
}

// sentence capitalises the first letter of a text.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// The charts get their numbers as JSON: a column per curve, with null for a missing value. Times are in milliseconds
// from the start of the load, latencies in microseconds, rates in messages per second.
type (
	chartData struct {
		Runs     []runData     `json:"runs"`
		Note     string        `json:"note,omitempty"` // names the runs, if not all are drawn
		Lines    []lineAt      `json:"lines"`
		Sweep    *sweepData    `json:"sweep,omitempty"`
		Search   *searchData   `json:"search,omitempty"`
		Sets     []string      `json:"sets,omitempty"` // of a comparison
		Compared []compare.Row `json:"compared,omitempty"`
		Now      *now          `json:"now,omitempty"` // of a live page
	}
	runData struct {
		Name  string `json:"name"`
		Group int    `json:"group"`
		// Seconds is the length of a point of several rows; the curves then have their lowest and highest values.
		Seconds     float64                  `json:"seconds"`
		Time        []number64               `json:"time"`
		Curves      []curve                  `json:"curves"` // over time
		Bands       []band                   `json:"bands"`
		Percentiles map[string]*distribution `json:"percentiles"`
		// Heat and Bars, of a single run, count latencies by time and size, and after the warm-up by size alone.
		Heat    map[string]*heat   `json:"heat,omitempty"`
		Bars    map[string]buckets `json:"bars,omitempty"`
		Offered number64           `json:"offered"` // the rate that was asked for; 0 without one
	}
	// band is a marked period, or moment: a warm-up, a drain, a stall, an outage, a step, or an event of the broker.
	band struct {
		Kind string   `json:"kind"`
		From number64 `json:"from"`
		To   number64 `json:"to"`
		Text string   `json:"text"`
	}
	// lineAt is a threshold that can be drawn: a level of a metric.
	lineAt struct {
		Metric string   `json:"metric"`
		Value  number64 `json:"value"`
		Text   string   `json:"text"`
		Kept   bool     `json:"kept"`
	}
)

// maxDrawn is the maximum number of runs that are drawn with all their repeats: more curves hide each other.
const maxDrawn = 16

// dataOf returns the numbers of the charts.
func dataOf(p *Page) *chartData {
	runs := p.Runs
	d := &chartData{Lines: linesOf(runs), Sweep: p.swept(), Search: p.searched(), Runs: []runData{}, Now: p.now}
	if len(runs) > 1 && p.sweep == nil && p.search == nil {
		all := p.compared()
		for _, s := range all.Sets {
			d.Sets = append(d.Sets, s.Name)
		}
		d.Compared = all.Rows
	}
	for i, r := range runs {
		if len(runs) > maxDrawn && i > 0 && runs[i-1].group == r.group {
			d.Note = "Drawn is the first repeat of each."
			continue
		}
		d.Runs = append(d.Runs, r.data())
	}
	return safetext.Each(d, safetext.Line)
}

func (r *Run) data() runData {
	s := r.series
	d := runData{
		Name: r.Name, Group: r.group, Seconds: float64(s.span) / 1e6,
		Percentiles: map[string]*distribution{}, Heat: map[string]*heat{}, Bars: map[string]buckets{},
		Curves: r.curves(), Time: []number64{}, Bands: r.outageBands(),
	}
	for i := range s.points {
		p := &s.points[i]
		d.Time = append(d.Time, millis(p.to))
		if i == 0 || s.points[i-1].step != p.step {
			d.Bands = append(d.Bands, band{"step", millis(p.from), millis(p.from), p.step})
		}
		d.mark(p)
	}
	for _, stall := range r.Result.Stalls {
		d.Bands = append(d.Bands, band{
			"stall", millis(stall.Elapsed), millis(stall.Elapsed + stall.Length),
			fmt.Sprintf("stall (%s): %s at %s s", stallSide(&stall), words.Duration(stall.Length),
				seconds(stall.Elapsed)),
		})
	}
	for _, side := range r.Result.BrokerSide {
		for _, e := range side.Events {
			at := millis(e.Time - r.Result.Start)
			d.Bands = append(d.Bands, band{"event", at, at, e.Text})
		}
	}
	for kind, name := range result.KindNames() {
		l := r.Result.Latencies[kind]
		c := distributionOf(l)
		if c == nil {
			continue
		}
		d.Percentiles[name] = c
		if r.heat != nil {
			d.Bars[name] = buckets{}
			d.Bars[name].add(l.Histogram)
			if h := &r.heat[kind]; len(h.Columns) > 0 {
				d.Heat[name] = h
			}
		}
	}
	if f := r.Result.Figures; f != nil && f.Offered != nil {
		d.Offered = number64(*f.Offered)
	}
	return d
}

// mark adds a point to the band of its phase.
func (d *runData) mark(p *point) {
	if p.phase != result.Warmup && p.phase != result.Drain {
		return
	}
	if n := len(d.Bands); d.Bands[n-1].Kind == p.phase { // after the band of the step
		d.Bands[n-1].To = millis(p.to)
		return
	}
	d.Bands = append(d.Bands, band{Kind: p.phase, From: millis(p.from), To: millis(p.to)})
}

// linesOf returns the thresholds that can be drawn as levels in the charts, of several runs each once.
func linesOf(runs []*Run) []lineAt {
	list := []lineAt{}
	for _, r := range runs {
		for _, t := range r.Result.Thresholds {
			parsed, err := threshold.Parse(t.Threshold)
			if err != nil || parsed.OfTarget || parsed.Metric.Unit != threshold.Time &&
				parsed.Metric.Unit != threshold.PerSecond {
				continue
			}
			if !slices.ContainsFunc(list, func(l lineAt) bool { return l.Text == t.Threshold }) {
				list = append(list, lineAt{parsed.Metric.Name, number64(parsed.Value), t.Threshold, t.Kept})
			}
		}
	}
	return list
}
