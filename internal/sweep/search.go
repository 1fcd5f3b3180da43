package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// holdTimes is the number of loads for which the found rate is held.
	holdTimes = 3
	// reached is the share of the target, in percent, that a rate must reach.
	reached = 99
	// atBorders is the number of messages that a load may always miss: one due just before the end of the measured time
	// comes after it, and a slow answer may delay another. At low rates that is more than the share.
	atBorders = 2
)

// Search is a search for the highest rate that passes thresholds, and at which messages do not queue at the broker or
// in perfmq: a sequence of loads with different rates.
type Search struct {
	// First is a run as the user gave it, with one step; it is not carried out.
	First *run.Run
	// Thresholds are the search's own; all values of their metrics are printed. The thresholds of First apply as well.
	Thresholds []threshold.Threshold
	From       float64 // the first rate; 0 for the default
	// Build makes a run of that rate.
	Build    func(rate string) (*run.Run, error)
	Silent   bool
	Progress Progress

	dir   string // for the results; empty for none
	asked []threshold.Threshold
	tried int
	line  string // about the last load
}

// Do runs the search. It returns the outcome and the exit status.
func (s *Search) Do() (*record.Search, int) {
	s.dir = s.First.Outputs.Result
	s.asked = slices.Concat(s.Thresholds, thresholds(s.First.Plan))
	out := &record.Search{}
	err := s.begin(out)
	if err != nil {
		s.Progress.Fail(err)
		return out, result.StatusUsage
	}
	s.print("--- FIND-MAX: the highest rate at which %s; a load may miss its target by %d messages",
		strings.Join(out.Thresholds, ", "), atBorders)
	if err = s.keep(out); err == nil {
		f := &finder{first: s.From, probe: s.probe, Search: out}
		f.note = func(so *record.Search) error {
			s.print("%s", s.line)
			return s.keep(so)
		}
		err = f.highest()
	}
	status := s.conclude(out, err)
	if err := s.keep(out); err != nil {
		s.Progress.Fail(err) // shown once
		status = result.Graver(status, result.StatusFailed)
	}
	return out, status
}

// begin makes the folder, and the texts of all thresholds.
func (s *Search) begin(out *record.Search) error {
	for _, t := range s.demands(reached) {
		out.Thresholds = append(out.Thresholds, t.String())
	}
	if s.dir == "" {
		return nil
	}
	return makeFolder(s.dir)
}

// demands returns all thresholds of a load: those asked for, and those that refuse a rate at which messages queue in
// perfmq, or at the broker if the load also receives. A rate must reach that share of the target in percent.
func (s *Search) demands(share float64) []threshold.Threshold {
	of := " >= " + strconv.FormatFloat(share, 'f', -1, 64) + "% of target"
	own := []string{"completed.avg" + of, "delay.p99 < 100ms"}
	if s.First.Plan.Roles() == plan.Client {
		own = append(own, "received.avg"+of)
	}
	list := slices.Clone(s.asked)
	for _, text := range own {
		t, _ := threshold.Parse(text) // cannot fail
		list = append(list, t)
	}
	return list
}

// shareOf returns the share of the target, in percent, that a load of that many messages must reach.
func shareOf(messages float64) float64 {
	if messages <= atBorders {
		return 0
	}
	return min(reached, math.Floor(1e4*(1-atBorders/messages))/100)
}

// thresholdsOf returns all thresholds of a load.
func (s *Search) thresholdsOf(step *plan.Step) []threshold.Threshold {
	target := 0.0 // messages per second
	for _, g := range step.Groups {
		if g.Role.Produces() {
			target += g.Rate.Average(step.Duration)
		}
	}
	return s.demands(shareOf(target * measured(step).Seconds()))
}

func measured(step *plan.Step) time.Duration { return step.Duration - step.Warmup }

// load makes the run of a rate. Its own result is judged by the thresholds of the search, so that it says the same.
func (s *Search) load(rate float64, hold bool) (*run.Run, error) {
	of, err := s.Build(strconv.FormatFloat(rate, 'f', -1, 64))
	if err != nil {
		return nil, err
	}
	step := &of.Plan.Steps[0]
	if hold {
		step.Duration = step.Warmup + holdTimes*measured(step)
	}
	of.Plan.Thresholds, step.Thresholds = s.thresholdsOf(step), nil
	if err := of.Plan.Validate(of.Drivers); err != nil {
		return nil, err
	}
	of.Outputs.Silent, of.Outputs.JSON = true, ""
	dir := ""
	if s.dir != "" {
		dir = filepath.Join(s.dir, record.PointFolder(s.tried, rate))
	}
	of.Outputs.SetFolder(dir, of.Plan)
	return of, nil
}

// ended ends a search with the exit status of a load that failed.
type ended int

func (ended) Error() string { return "a load ended" }

// probe runs a load of the given rate and judges it.
func (s *Search) probe(rate float64, hold bool) (point record.Point, err error) {
	s.tried++
	of, err := s.load(rate, hold)
	if err != nil {
		return point, err
	}
	e := of.Do()
	if !e.Finished() {
		s.Progress.Ended("", &e)
		if e.Ended() {
			return point, ended(result.StatusInterrupted)
		}
		return point, ended(e.Status())
	}
	switch driver.ClassOf(e.Summary.Err) {
	case driver.ClassConnectionLost, driver.ClassConnect: // no load shows what such a broker can do
		s.Progress.Fail(e.Summary.Err)
		return point, ended(result.StatusFailed)
	}
	point = judge(e.Summary)
	point.Why, point.Limit = of.Secrets.Line(point.Why), of.Secrets.Line(point.Limit) // may hold texts of the broker
	s.line = s.describe(rate, hold, measured(&of.Plan.Steps[0]), &point, e.Summary)
	if n := e.Summary.Missing; n != nil && *n > 0 {
		s.print("%s", s.line)
		s.Progress.Fail(plan.Wrong("purge the destination, and raise --drain-timeout",
			"%d messages left after --drain-timeout would disturb the next load",
			*n))
		return point, ended(result.StatusFailed)
	}
	return point, nil
}

// judge takes over the verdict on a load.
func judge(s *stats.Summary) record.Point {
	var p record.Point
	// a load that reached its rate has no other limit, even if a threshold failed
	if s.Limit.Kind != result.LimitNone {
		p.Limit = words.Limit(s.Limit)
	}
	var broken []string
	for _, o := range s.Thresholds {
		if !o.Kept {
			broken = append(broken, o.Threshold+": "+o.Value)
		}
	}
	if !s.Outcome.Success {
		broken = append(broken, s.Problems()...)
	}
	p.Kept = len(broken) == 0
	p.Why = strings.Join(broken, ", ")
	p.Tester = !p.Kept && result.OfTester(s.Limit.Kind)
	if !p.Kept && !p.Tester && s.Tester.Crowded() {
		p.Tester = true
		p.Limit = fmt.Sprintf("the machine (other programs, such as a broker, took %.0f%% of its processors)",
			100*s.Tester.OthersShare())
	}
	return p
}

// describe returns a line about a load.
func (s *Search) describe(rate float64, hold bool, length time.Duration, p *record.Point, sum *stats.Summary) string {
	verdict := p.Verdict()
	if hold {
		verdict += " for " + length.Round(time.Millisecond).String()
	}
	var values []string
	for i, o := range sum.Thresholds {
		if i < len(s.Thresholds) || !o.Kept {
			values = append(values, fmt.Sprintf("%s %s", o.Metric, o.Value))
		}
	}
	limit, _, _ := strings.Cut(cmp.Or(p.Limit, result.LimitNone), " (")
	return fmt.Sprintf("--- %9s msg/s: %-4s  %s; limit: %s", record.PerSecond(rate), verdict,
		strings.Join(values, ", "), limit)
}

// conclude prints the outcome and returns the exit status.
func (s *Search) conclude(found *record.Search, err error) int {
	text := found.String()
	var status ended
	switch {
	case errors.As(err, &status):
		s.print("--- %s", text)
		return int(status)
	case err != nil && !errors.Is(err, errNothing) && !errors.Is(err, errUndecided):
		s.Progress.Fail(err)
		return result.StatusFailed
	case found.Kind() == record.Undecided:
		hint := "search on an idle machine"
		if found.Rate == 0 {
			hint += ", or begin with a lower --rate"
		}
		s.Progress.Fail(&plan.Mistake{Text: text, Hint: hint})
		return result.StatusUndecided
	case !found.Held:
		s.Progress.Fail(errors.New(text))
		return result.StatusThreshold
	}
	s.print("--- %s", text)
	if limit := found.Failed.Limit; limit != "" && found.Kind() == record.Maximum {
		s.print("--- limit: %s", limit)
	}
	return result.StatusOK
}

// keep writes the findings so far into --result: a search that is killed has them, and perfmq report shows them.
func (s *Search) keep(so *record.Search) error {
	if s.dir == "" {
		return nil
	}
	if err := so.Write(s.dir); err != nil {
		return fmt.Errorf("write --result: %w", err)
	}
	return nil
}

func (s *Search) print(format string, args ...any) {
	if !s.Silent {
		s.Progress.Print(fmt.Sprintf(format, args...))
	}
}

const (
	defaultFirst = 1000
	precision    = 0.02 // the largest distance of the result to a rate that failed, as a fraction
	minRate      = 1    // messages per second
	maxRate      = 1e8  // above any broker, and within the range of a schedule's clock
	digits       = 3    // significant digits of tried rates, for readability
	maxHolds     = 4    // how often a rate is held, each time a lower one
	backOff      = 0.03
	maxConfirms  = 3 // how often the lowest failed rate is tried again, as long as it is kept then
	patience     = 2 // tries of a rate at which perfmq was the limit: it may have been disturbed
)

var (
	// errNothing reports that even the lowest rate failed.
	errNothing = errors.New("nothing found")
	// errUndecided reports that perfmq, or its machine, was the limit of two loads in a row, so that the search shows
	// nothing of the broker.
	errUndecided = errors.New("undecided")
)

// finder is a search for the highest rate that passes.
type finder struct {
	first float64                                             // the first rate; 0 for the default
	probe func(rate float64, hold bool) (record.Point, error) // puts a load on the broker; an error ends the search
	note  func(*record.Search) error                          // called after each load; an error ends the search
	*record.Search
}

// highest finds the highest rate that passes: it doubles the rate until a load fails, bisects, tries the lowest failed
// rate once more, since it may have failed by chance, and holds the rate that it found for longer. It goes no higher
// when perfmq's machine was the limit of two loads in a row. It keeps the findings, also with an error: [errNothing],
// [errUndecided], or an error of probe or note.
func (s *finder) highest() error {
	err := s.narrow()
	if errors.Is(err, errUndecided) && s.Rate > 0 {
		err = nil // the broker may hold the rate below
	}
	rate, back := s.Rate, backOff
	for tries := 0; err == nil && !s.Held && tries < maxHolds; tries++ {
		err = s.try(rate, true)
		rate, back = max(round(rate*(1-back)), minRate), 2*back
	}
	s.Complete = err == nil || errors.Is(err, errNothing) || errors.Is(err, errUndecided)
	return err
}

// narrow finds a rate that passes and one, a little higher, that fails, also when it is tried again.
func (s *finder) narrow() error {
	for confirms := 0; ; confirms++ {
		for rate := s.next(); rate > 0; rate = s.next() {
			if err := s.try(rate, false); err != nil {
				return err
			}
		}
		above := s.Above
		switch {
		case s.Rate == 0:
			return errNothing
		case above == 0 || confirms == maxConfirms:
			return nil
		}
		if err := s.try(above, false); err != nil || s.Above == above {
			return err
		}
	}
}

// next returns a rate above all that passed and below all that failed; 0 if none is left to be tried.
func (s *finder) next() (rate float64) {
	switch {
	case s.Rate == 0 && s.Above == 0:
		return round(cmp.Or(max(0, s.first), defaultFirst))
	case s.Above == 0 && s.Rate < maxRate:
		return min(round(2*s.Rate), maxRate)
	case s.Rate == 0 && s.Above > minRate:
		return max(round(s.Above/4), minRate)
	case s.Rate > 0 && s.Above/s.Rate > 1+precision:
		rate = round(math.Sqrt(s.Rate * s.Above))
	}
	if rate <= s.Rate || rate >= s.Above {
		return 0 // no rate with so few digits lies between
	}
	return rate
}

// try tries a rate. If it fails to hold, the highest rate below it that passed remains. It returns [errUndecided] when
// perfmq was the limit of each try.
func (s *finder) try(rate float64, hold bool) error {
	for tries := 1; ; tries++ {
		p, err := s.probe(rate, hold)
		if err != nil {
			return err
		}
		p.Rate, p.Hold = rate, hold
		s.Points = append(s.Points, p)
		decided := p.Kept || !p.Tester
		if decided || tries == patience {
			s.judge(p)
		}
		switch err := s.note(s.Search); {
		case err != nil || decided:
			return err
		case tries == patience:
			return errUndecided
		}
	}
}

// judge updates the findings with the outcome of a load: Rate with the highest rate below a failure that passed, Failed
// and Above with the lowest one above a pass that failed.
func (s *finder) judge(p record.Point) {
	if !p.Kept {
		s.Above, s.Failed, s.Rate, s.Held = p.Rate, p, 0, false
		for _, earlier := range s.Points {
			if earlier.Kept && earlier.Rate < p.Rate {
				s.Rate = max(s.Rate, earlier.Rate)
			}
		}
		return
	}
	s.Rate, s.Held = p.Rate, p.Hold
	if s.Above == 0 || p.Rate < s.Above {
		return
	}
	s.Failed = record.Point{}
	for _, earlier := range s.Points {
		if !earlier.Kept && earlier.Rate > p.Rate && (s.Failed.Rate == 0 || earlier.Rate < s.Failed.Rate) {
			s.Failed = earlier
		}
	}
	s.Above = s.Failed.Rate
}

// round rounds a rate to few digits.
func round(rate float64) float64 {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(rate, 'g', digits, 64), 64)
	return v
}
