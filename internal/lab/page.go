//go:build unix

package main

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
)

// pageHead and startsHead say what the tables are, and what is not in them.
var (
	//go:embed head.md
	pageHead string
	//go:embed starts.md
	startsHead string
)

// page returns the rows as Markdown, those of starts or of failures; so many trials went on at a time.
func page(rows []row, starts bool, atOnce int) string {
	head := pageHead
	if starts {
		head = startsHead
	}
	trials := "one trial"
	if atOnce > 1 {
		trials = fmt.Sprintf("up to %d trials", atOnce)
	}
	head, explained := cutHead(head)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nBrokers and perfmq ran on one machine with %d processors, %s at a time%s\n\n", head,
		runtime.NumCPU(), trials, madeBy(rows))
	fmt.Fprintf(&b, "%s\n%s\n## Outcomes\n\n", matrix(rows), explained)
	b.WriteString("| failure | deployment | protocol | promised | observed | our count | broker's count | verdict |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for i := range rows {
		r := &rows[i]
		tableRow(&b, r.Failure, r.Deployment, r.Protocol, r.Promised, r.Observed, r.Ours, r.Brokers, r.Verdict)
	}
	return b.String()
}

// cutHead returns the title of a page with its first paragraph, and the rest.
func cutHead(text string) (head, rest string) {
	parts := strings.SplitN(text, "\n\n", 3)
	return strings.Join(parts[:2], "\n\n"), parts[2]
}

// tableRow writes a row of a table.
func tableRow(b *strings.Builder, cells ...string) {
	for i := range cells {
		cells[i] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(cells[i])
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// origin is where a row comes from.
type origin struct {
	In       string // the deployment, as -only names it
	Began    time.Time
	Version  string // of perfmq
	Revision string
	Busy     float64 // share of the processors in use just before the brokers started
}

// originNow measures how busy the machine is, for a second, before a trial.
func originNow(ctx context.Context, in string) (origin, error) {
	o := origin{In: in, Began: time.Now()}
	percent, err := cpu.PercentWithContext(ctx, time.Second, false)
	if err != nil || len(percent) == 0 {
		return o, fmt.Errorf("ask the system how busy the machine is: %w", err)
	}
	o.Busy = percent[0] / 100
	return o, nil
}

// circumstances says by which perfmq and on which machine a page is made, and when.
func (s *session) circumstances(ctx context.Context) (string, error) {
	text, err := s.command(ctx, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask perfmq for its version: %w", err)
	}
	program, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	o, err := originNow(ctx, "")
	return fmt.Sprintf("Made on %s by %s. Brokers and perfmq ran on one machine with %d processors, of which %.0f%% were "+
		"in use before.", o.Began.UTC().Format(time.DateOnly), program, runtime.NumCPU(), 100*o.Busy), err
}

// madeBy says when the rows were made, by which perfmq, how busy the machine was before, and how many were not judged.
func madeBy(rows []row) string {
	if len(rows) == 0 {
		return ": no trial."
	}
	var days, programs []string
	var busy []float64
	unjudged := 0
	for i := range rows {
		r := &rows[i]
		days = append(days, r.Began.UTC().Format(time.DateOnly))
		if r.State == notJudged {
			unjudged++
		}
		if r.State != notCarriedOut {
			busy = append(busy, r.Busy)
			programs = append(programs, strings.TrimSuffix(r.Version+" "+r.Revision, " "))
		}
	}
	slices.Sort(days)
	slices.Sort(programs)
	when := "on " + days[0]
	if last := days[len(days)-1]; last != days[0] {
		when = "from " + days[0] + " to " + last
	}
	text := ", " + when + "."
	if len(busy) > 0 {
		text = fmt.Sprintf(", %s, by perfmq %s.\nBefore the trials, %.0f%% to %.0f%% of the processors were in use.", when,
			strings.Join(slices.Compact(programs), ", "), 100*slices.Min(busy), 100*slices.Max(busy))
	}
	if unjudged > 0 {
		text += fmt.Sprintf(" %d of %d rows are not judged: the machine was too busy.", unjudged, len(rows))
	}
	return text
}

// matrix is a table of the verdicts: failures by deployments.
func matrix(rows []row) string {
	var failures, deployments []string
	cells := map[[2]string][]*row{}
	for i := range rows {
		r := &rows[i]
		if !slices.Contains(failures, r.Failure) {
			failures = append(failures, r.Failure)
		}
		if !slices.Contains(deployments, r.In) {
			deployments = append(deployments, r.In)
		}
		at := [2]string{r.Failure, r.In}
		cells[at] = append(cells[at], r)
	}
	var b strings.Builder
	tableRow(&b, append([]string{"failure"}, deployments...)...)
	b.WriteString("|" + strings.Repeat(" --- |", len(deployments)+1) + "\n")
	for _, f := range failures {
		line := []string{f}
		for _, d := range deployments {
			line = append(line, verdicts(cells[[2]string{f, d}]))
		}
		tableRow(&b, line...)
	}
	return b.String()
}

// verdicts returns the verdicts of a deployment and a failure: one word, unless the protocols differ.
func verdicts(rows []*row) string {
	var words []string
	same := true
	for _, r := range rows {
		words = append(words, strings.TrimSpace(r.Protocol+" "+string(r.State)))
		same = same && r.State == rows[0].State
	}
	if len(rows) > 0 && same {
		return string(rows[0].State)
	}
	return strings.Join(words, ", ")
}
