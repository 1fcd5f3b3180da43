//go:build unix

package main

import (
	"embed"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// heads holds the text above the table of each record: title, first paragraph, explanations.
//
//go:embed heads/*.md
var heads embed.FS

// head returns the title of a record with its first paragraph, and the rest of the text.
func head(name string) (first, rest string) {
	text, err := heads.ReadFile("heads/" + name + ".md")
	if err != nil {
		panic(err) // a command without its file
	}
	parts := append(strings.SplitN(strings.TrimSpace(string(text)), "\n\n", 3), "")
	return parts[0] + "\n\n" + parts[1], strings.TrimSpace(parts[2])
}

// page returns a record as Markdown.
func (c *command) page(s *session, rows []row) string {
	var b strings.Builder
	first, rest := head(c.name)
	trials := "one trial"
	if s.atOnce > 1 {
		trials = fmt.Sprintf("up to %d trials", s.atOnce)
	}
	fmt.Fprintf(&b, "%s\n\nBrokers and perfmq ran on one machine with %d processors, %s at a time%s\n", first,
		runtime.NumCPU(), trials, circumstances(rows))
	if only := s.only.String(); only != "" {
		fmt.Fprintf(&b, "Only the trials that match `%s` were carried out.\n", only)
	}
	b.WriteString("\n")
	if c.matrix {
		b.WriteString(matrix(rows) + "\n")
	}
	if rest != "" {
		b.WriteString(rest + "\n\n")
	}
	if c.matrix {
		b.WriteString("## Outcomes\n\n")
	}
	header := append(slices.Clip(c.columns), "verdict")
	tableHead(&b, header...)
	for i := range rows {
		r := &rows[i]
		cells := slices.Clone(r.Cells)
		for len(cells) < len(c.columns) { // it was not carried out
			cells = append(cells, "")
		}
		tableRow(&b, append(cells, r.Verdict)...)
	}
	return b.String()
}

// tableHead writes the head of a table.
func tableHead(b *strings.Builder, columns ...string) {
	tableRow(b, columns...)
	b.WriteString("|" + strings.Repeat(" --- |", len(columns)) + "\n")
}

// tableRow writes a row of a table.
func tableRow(b *strings.Builder, cells ...string) {
	for i := range cells {
		cells[i] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(cells[i])
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// circumstances returns the days of the rows, their perfmq, the load of the machine, and the number of rows that are
// not judged.
func circumstances(rows []row) string {
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
			busy, programs = append(busy, r.Busy), append(programs, r.Program)
		}
	}
	slices.Sort(days)
	slices.Sort(programs)
	text := ", on " + days[0]
	if last := days[len(days)-1]; last != days[0] {
		text = ", from " + days[0] + " to " + last
	}
	if len(busy) > 0 {
		text += fmt.Sprintf(", by perfmq %s.\nBefore the trials, %.0f%% to %.0f%% of the processors were in use",
			strings.Join(slices.Compact(programs), ", "), 100*slices.Min(busy), 100*slices.Max(busy))
	}
	text += "."
	if unjudged > 0 {
		text += fmt.Sprintf(" %d of %d rows are not judged: the machine was too busy.", unjudged, len(rows))
	}
	return text
}

// matrix returns a table of the verdicts: failures by deployments.
func matrix(rows []row) string {
	var failures, deployments []string
	cells := map[[2]string][]*row{}
	for i := range rows {
		r := &rows[i]
		deployment, _, _ := strings.Cut(r.Trial, "/")
		if !slices.Contains(failures, r.Cells[0]) {
			failures = append(failures, r.Cells[0])
		}
		if !slices.Contains(deployments, deployment) {
			deployments = append(deployments, deployment)
		}
		at := [2]string{r.Cells[0], deployment}
		cells[at] = append(cells[at], r)
	}
	var b strings.Builder
	tableHead(&b, append([]string{"failure"}, deployments...)...)
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
		word := string(r.State)
		if len(r.Cells) > 2 {
			word = r.Cells[2] + " " + word
		}
		words = append(words, word)
		same = same && r.State == rows[0].State
	}
	if len(rows) > 0 && same {
		return string(rows[0].State)
	}
	return strings.Join(words, ", ")
}
