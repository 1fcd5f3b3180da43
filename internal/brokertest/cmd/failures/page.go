//go:build unix

package main

import (
	_ "embed"
	"fmt"
	"runtime"
	"strings"
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
	var b strings.Builder
	if starts {
		b.WriteString(startsHead)
	} else {
		b.WriteString(pageHead)
	}
	trials := "one trial"
	if atOnce > 1 {
		trials = fmt.Sprintf("up to %d trials", atOnce)
	}
	fmt.Fprintf(&b, "\n## Outcomes\n\nBrokers and tester ran on one machine with %d processors, %s at a time.\n\n",
		runtime.NumCPU(), trials)
	b.WriteString("| failure | deployment | protocol | promised | observed | our count | broker's count | verdict |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for i := range rows {
		r := &rows[i]
		cells := []string{r.Failure, r.Deployment, r.Protocol, r.Promised, r.Observed, r.Ours, r.Brokers, r.Verdict}
		for k := range cells {
			cells[k] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(cells[k])
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}
