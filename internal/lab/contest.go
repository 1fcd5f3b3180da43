//go:build unix

package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// contest compares columns: tools, brokers or loads.
type contest struct {
	title   string
	columns []column
	aims    []aim
	warm    bool // the first run of each column is not measured: Java compiles meanwhile
	pairs   bool // the ratios of successive runs are printed, too
}

// column is one side of a contest.
type column struct {
	name string
	run  func(context.Context) (measured, error)
	runs []measured
}

// metric is a row of all tables, but for tables in which all its values are zero.
type metric struct {
	name  string
	value func(*measured) float64
}

// Metrics that have aims.
const (
	receivedRate = "received msg/s"
	toolCPU      = "cpu us/message"
	bothCPU      = "cpu with the broker's"
	memory       = "peak memory MiB"
)

func metrics() []metric {
	return []metric{
		{"completed msg/s", func(m *measured) float64 { return m.completed }},
		{receivedRate, func(m *measured) float64 { return m.received }},
		{toolCPU, func(m *measured) float64 { return m.perMessage(m.cpu) }},
		{"broker's cpu us/message", func(m *measured) float64 { return m.perMessage(m.broker) }},
		{bothCPU, func(m *measured) float64 { return m.perMessage(m.cpu + m.broker) }},
		{memory, func(m *measured) float64 { return m.memory / (1 << 20) }},
		{"send ack p50 us", func(m *measured) float64 { return m.ack.P50 }},
		{"send ack p99 us", func(m *measured) float64 { return m.ack.P99 }},
		{"transfer p50 us", func(m *measured) float64 { return m.transfer.P50 }},
		{"transfer p99 us", func(m *measured) float64 { return m.transfer.P99 }},
		{"send delay p50 us", func(m *measured) float64 { return m.wait.P50 }},
		{"send delay p99 us", func(m *measured) float64 { return m.wait.P99 }},
		{"response p50 us", func(m *measured) float64 { return m.response.P50 }},
	}
}

// value returns the value of a metric.
func (m *measured) value(of string) float64 {
	i := slices.IndexFunc(metrics(), func(m metric) bool { return m.name == of })
	return metrics()[i].value(m)
}

// aim is a requirement on the medians.
type aim struct {
	name    string
	value   func(median func(column, of string) float64) float64
	limit   float64
	atLeast bool
}

// ratioAim requires a ratio of the medians of two columns.
func ratioAim(of, one, other string, limit float64, atLeast bool) aim {
	return aim{
		fmt.Sprintf("%s, %s / %s", of, one, other),
		func(median func(column, of string) float64) float64 { return median(one, of) / median(other, of) }, limit, atLeast,
	}
}

// middle returns the median of a metric, the upper one of two.
func (c *column) middle(of string) float64 {
	values := make([]float64, len(c.runs))
	for i := range c.runs {
		values[i] = c.runs[i].value(of)
	}
	slices.SortFunc(values, cmp.Compare[float64])
	return values[len(values)/2]
}

// hold runs the columns in turn, forwards and backwards, and returns the table of medians.
func (c *contest) hold(ctx context.Context, repeat int) (string, error) {
	order := make([]int, len(c.columns))
	for i := range order {
		order[i] = i
	}
	rounds := repeat
	if c.warm {
		rounds++
	}
	for round := range rounds {
		for _, i := range order {
			column := &c.columns[i]
			m, err := column.run(ctx)
			if err != nil {
				fmt.Fprintf(os.Stderr, "note: a run of %s failed: %v\n", column.name, err)
			}
			if (err != nil || m.health.Crowded()) && ctx.Err() == nil { // once more
				m, err = column.run(ctx)
			}
			if err != nil {
				return "", fmt.Errorf("%s: %s: %w", c.title, column.name, err)
			}
			if round >= rounds-repeat {
				column.runs = append(column.runs, m)
			}
		}
		slices.Reverse(order)
	}
	return c.text(), nil
}

// text returns the table of medians, with ratios of the first column to each other one, and the aims.
func (c *contest) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", c.title)
	head := []string{""}
	for i := range c.columns {
		head = append(head, c.columns[i].name)
	}
	for _, other := range head[min(2, len(head)):] {
		head = append(head, "/ "+other)
	}
	tableRow(&b, head...)
	b.WriteString("| --- |" + strings.Repeat(" ---: |", len(head)-1) + "\n")
	for _, of := range metrics() {
		values, cells := make([]float64, len(c.columns)), []string{of.name}
		for i := range c.columns {
			values[i] = c.columns[i].middle(of.name)
			cells = append(cells, number(values[i], 1))
		}
		for _, v := range values[1:] {
			cells = append(cells, number(values[0]/v, 2))
		}
		if slices.Max(values) > 0 {
			tableRow(&b, cells...)
		}
	}
	b.WriteString("\n")
	if c.pairs {
		for _, of := range []string{receivedRate, bothCPU} {
			fmt.Fprintf(&b, "- %s by pair: %s\n", of, ratios(c.columns, of))
		}
	}
	disturbed := c.disturbed()
	for _, a := range c.aims {
		fmt.Fprintf(&b, "- %s: %s\n", a.name, a.verdict(c, disturbed))
	}
	if disturbed != "" {
		fmt.Fprintf(&b, "- %s\n", disturbed)
	}
	return b.String() + "\n"
}

// disturbed returns why the contest is not judged: other programs used the processors during a run and its repetition.
func (c *contest) disturbed() string {
	for i := range c.columns {
		for j := range c.columns[i].runs {
			if h := &c.columns[i].runs[j].health; h.Crowded() {
				return "not judged: in a run of " + c.columns[i].name + ", " + busyText(h)
			}
		}
	}
	return ""
}

// verdict returns the value of an aim, and whether it is met.
func (a *aim) verdict(c *contest, disturbed string) string {
	v := a.value(func(name, of string) float64 {
		i := slices.IndexFunc(c.columns, func(c column) bool { return c.name == name })
		return c.columns[i].middle(of)
	})
	sign, word := "at most", "MISSED"
	if a.atLeast {
		sign = "at least"
	}
	switch {
	case disturbed != "":
		word = "not judged"
	case a.atLeast && v >= a.limit, !a.atLeast && v <= a.limit:
		word = "met"
	}
	return fmt.Sprintf("%s (aim %s %g: %s)", number(v, 2), sign, a.limit, word)
}

// ratios returns the ratios of each run of the first column to the run of the second beside it.
func ratios(columns []column, of string) string {
	list := make([]float64, len(columns[0].runs))
	for i := range list {
		list[i] = columns[0].runs[i].value(of) / columns[1].runs[i].value(of)
	}
	slices.Sort(list)
	text := make([]string, len(list))
	for i, r := range list {
		text[i] = number(r, 3)
	}
	return fmt.Sprintf("median %s (%s)", text[len(text)/2], strings.Join(text, " "))
}

func number(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
