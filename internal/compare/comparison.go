package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/pkg/result"
)

// Options say what a comparison is of.
type Options struct {
	Metrics []string                   // names; none for the usual metrics
	FailIf  []string                   // limits, the metrics of which are compared as well
	Unlike  bool                       // runs of different plans are compared as well
	Check   func(*result.Result) error // refuses results whose numbers contradict each other
	Clean   func(string) string        // makes texts of results fit to print
}

// Comparison holds sets against the first of them.
type Comparison struct {
	sets        []Set
	rows        []Row
	differences []Difference
	limits      []Limit
}

// Compare reads the sets in folders and compares them. It returns all mistakes.
func Compare(paths []string, o Options) (*Comparison, []error) {
	c := new(Comparison)
	metrics, errs := c.parse(&o)
	errs = append(errs, c.read(paths, o.Check)...)
	if len(errs) > 0 {
		return nil, errs
	}
	c.differences = Differences(c.sets)
	for i := range c.sets {
		c.sets[i].Sift()
	}
	c.clean(o.Clean)
	if unlike := Unlike(c.differences); len(unlike) > 0 && !o.Unlike {
		return nil, refused(unlike)
	}
	if c.rows = Sets(c.sets, metrics); len(c.rows) == 0 {
		return nil, []error{&plan.Mistake{Text: "the results have none of these figures", Hint: "--metric names others"}}
	}
	return c, nil
}

// parse returns the metrics, with those of the limits.
func (c *Comparison) parse(o *Options) (metrics []Metric, errs []error) {
	names := o.Metrics
	if len(names) == 0 {
		names = Usual()
	}
	add := func(flag string, m Metric, err error) {
		if err != nil {
			errs = append(errs, &plan.Mistake{Text: flag + ": " + err.Error(), Hint: "perfmq compare --help shows examples"})
		} else if !slices.ContainsFunc(metrics, func(o Metric) bool { return o.Name == m.Name }) {
			metrics = append(metrics, m)
		}
	}
	for _, name := range names {
		m, err := Named(name)
		add("--metric", m, err)
	}
	for _, text := range o.FailIf {
		l, err := ParseLimit(text)
		add("--fail-if", l.Metric, err)
		c.limits = append(c.limits, l)
	}
	return metrics, errs
}

// read reads the sets. Those of one name are named by their paths.
func (c *Comparison) read(paths []string, check func(*result.Result) error) (errs []error) {
	if len(paths) < 2 {
		return []error{&plan.Mistake{Text: "at least two results are needed", Hint: "perfmq compare BEFORE AFTER"}}
	}
	names := map[string]int{}
	for _, path := range paths {
		s, err := Read(path, check)
		if err != nil {
			errs = append(errs, err)
		}
		names[s.Name]++
		c.sets = append(c.sets, s)
	}
	sweeps := len(c.sets[0].Cells) > 0
	if len(errs) == 0 && slices.ContainsFunc(c.sets, func(s Set) bool { return len(s.Cells) > 0 != sweeps }) {
		errs = append(errs, &plan.Mistake{
			Text: "a sweep with several cells compares with another sweep alone", Hint: "name the folder of one of its cells",
		})
	}
	for i := range c.sets {
		if names[c.sets[i].Name] > 1 {
			c.sets[i].Name = paths[i]
		}
	}
	return errs
}

// clean makes the texts of results fit to print.
func (c *Comparison) clean(text func(string) string) {
	each := func(list ...*string) {
		for _, s := range list {
			*s = text(*s)
		}
	}
	for i := range c.sets {
		s := &c.sets[i]
		each(&s.Name)
		for k := range s.Cells {
			each(&s.Cells[k].Name)
		}
		for _, r := range s.Failed {
			for k := range r.Outcome.Problems {
				each(&r.Outcome.Problems[k])
			}
		}
	}
	for i := range c.differences {
		d := &c.differences[i]
		each(&d.Name, &d.Cell)
		for k := range d.Values {
			each(&d.Values[k])
		}
	}
}

// maxRefused is how many differences are named when plans are refused for them; --unlike prints all.
const maxRefused = 5

// refused returns errors about the differences of plans, first that of the protocol, which brings others with it.
func refused(unlike []Difference) (errs []error) {
	isProtocol := func(d Difference) bool { return strings.HasSuffix(d.Name, ".protocol") }
	protocol := slices.DeleteFunc(slices.Clone(unlike), func(d Difference) bool { return !isProtocol(d) })
	unlike = append(protocol, slices.DeleteFunc(slices.Clone(unlike), isProtocol)...)
	for i, d := range unlike {
		if rest := len(unlike) - i; i == maxRefused-1 && rest > 1 {
			return append(errs, &plan.Mistake{
				Text: fmt.Sprintf("the plans differ in %d more settings", rest),
				Hint: "compare runs of one plan, or add --unlike, which lists what differs",
			})
		}
		values := slices.Clone(d.Values)
		for k, v := range values {
			values[k] = cmp.Or(v, "none")
		}
		errs = append(errs, &plan.Mistake{
			Text: fmt.Sprintf("the plans%s differ in %s: %s", ofCell(d.Cell), d.Name, strings.Join(values, " | ")),
			Hint: "compare runs of one plan, or add --unlike",
		})
	}
	return errs
}

// ofCell returns " of NAME" for a cell of a sweep, and nothing without a name.
func ofCell(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// Formats are those of [Comparison.Write].
func Formats() []string { return []string{"text", "markdown", "csv"} }

// Write writes the comparison in a format. CSV has no place for notes; see [Comparison.Notes].
func (c *Comparison) Write(w io.Writer, format string) error {
	switch format {
	case "markdown":
		return Markdown(w, c.sets, c.rows, c.differences)
	case "csv":
		return CSV(w, c.sets, c.rows)
	default:
		return Text(w, c.sets, c.rows, c.differences)
	}
}

// Notes returns what to know of the sets.
func (c *Comparison) Notes() []string {
	notes := Notes(c.sets)
	if text := Bounded(c.sets); text != "" {
		notes = append([]string{text}, notes...)
	}
	return notes
}

// JSON returns the comparison for programs.
func (c *Comparison) JSON() ([]byte, error) {
	var names []string
	var failed, bounded []int
	for i := range c.sets {
		s := &c.sets[i]
		names, failed, bounded = append(names, s.Name), append(failed, len(s.Failed)), append(bounded, s.BoundedRuns())
	}
	text, err := json.MarshalIndent(map[string]any{
		"sets": names, "failed": failed, "bounded": bounded, "metrics": c.rows, "differences": c.differences,
	}, "", "  ")
	return append(safetext.JSON(text), '\n'), err
}

// Judge holds the comparison against its limits. It returns which are exceeded or unjudged, and the exit status.
func (c *Comparison) Judge() (errs []error, status int) {
	found := func(as int, hint, format string, args ...any) {
		errs = append(errs, &plan.Mistake{Text: "--fail-if" + fmt.Sprintf(format, args...), Hint: hint})
		status = result.Graver(status, as)
	}
	for i := 1; i < len(c.sets) && len(c.limits) > 0; i++ {
		if s := &c.sets[i]; len(s.Failed) > 0 {
			found(result.StatusFailed, "", ": %s: %d of the runs failed, whatever their figures: %s", s.Name, len(s.Failed),
				Failed(s.Failed[0]))
		}
	}
	for k := range c.limits {
		l := &c.limits[k]
		known := false
		for r := range c.rows {
			row := &c.rows[r]
			if row.Name != l.Metric.Name {
				continue
			}
			known = true
			for i := 1; i < len(c.sets); i++ {
				exceeded, err := l.Exceeded(row, i)
				hint := fmt.Sprintf("repeat the runs: %d of each are enough", Enough(len(c.rows)))
				if errors.Is(err, ErrBound) {
					hint = "run on a machine on which perfmq is not the limit"
				}
				switch {
				case err != nil:
					found(result.StatusUsage, hint, " %v%s", err, ofCell(row.Cell))
				case exceeded:
					found(result.StatusThreshold, "", " %s: %s%s changed by %s", l.Text, c.sets[i].Name, ofCell(row.Cell),
						row.Cells[i].String())
				}
			}
		}
		if !known {
			found(result.StatusUsage, "name a metric of these runs", " %s: no result has that figure", l.Text)
		}
	}
	return errs, status
}
