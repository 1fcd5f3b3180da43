//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"

	"github.com/perfmq/perfmq/internal/sweep/record"
)

// circumstances are those in which the scenarios were run.
type circumstances struct {
	day, program, scale string
	only                string  // the pattern that selected the scenarios; empty for all
	busy                float64 // percent of the processors in use before the first broker started
}

// circumstancesOf measures for a second how busy the machine is.
func circumstancesOf(ctx context.Context, s *session, only string) (circumstances, error) {
	c := circumstances{day: time.Now().UTC().Format(time.DateOnly), scale: s.scale, only: only}
	text, err := exec.CommandContext(ctx, s.perfmq, "--version").Output() //nolint:gosec // ours
	if err != nil {
		return c, fmt.Errorf("ask perfmq for its version: %w", err)
	}
	c.program, _, _ = strings.Cut(strings.TrimSpace(string(text)), "\n")
	percent, err := cpu.PercentWithContext(ctx, time.Second, false)
	if err != nil || len(percent) == 0 {
		return c, fmt.Errorf("ask the system how busy the machine is: %w", err)
	}
	c.busy = percent[0]
	return c, nil
}

// page returns the outcomes as Markdown. It fails if a scenario did not come to its end.
func page(outcomes []outcome, made circumstances) (string, error) {
	var unfinished []error
	for i := range outcomes {
		if o := &outcomes[i]; !o.finished() {
			unfinished = append(unfinished, fmt.Errorf("no page: %s on %s: %s", o.scenario, o.broker, o.verdict()))
		}
	}
	if len(unfinished) > 0 {
		return "", errors.Join(unfinished...)
	}
	var b strings.Builder
	b.WriteString("# Shipped scenarios on real brokers\n\n" +
		"`make acceptance` carries out the scenarios inside the binary at full size, each on its broker, and writes this " +
		"page. *Broker's count* compares the\n" +
		"counters of the broker with those of perfmq, for each destination: messages added and messages acknowledged.\n\n")
	fmt.Fprintf(&b, "Made on %s by %s. Broker and perfmq ran on one machine with %d processors, of which %.0f%% were in "+
		"use before; scale %s.\n\n", made.day, made.program, runtime.NumCPU(), made.busy, made.scale)
	if made.only != "" {
		fmt.Fprintf(&b, "Only scenarios whose names match `%s` were run.\n\n", made.only)
	}
	b.WriteString("| scenario | broker | took | sent | received | verdict | thresholds passed | broker's count |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for i := range outcomes {
		o := &outcomes[i]
		sent, received := o.total()
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %s | %s | %s |\n", o.scenario, o.broker, o.took.Round(time.Second), sent,
			received,
			o.verdict(), o.thresholds(), o.counts())
	}
	return b.String(), nil
}

// failures returns the scenarios that did not succeed, with the end of their output. A threshold on a rate and a search
// are about the machine, too: they are in the page, and no failure.
func failures(outcomes []outcome) error {
	var errs []error
	for i := range outcomes {
		o := &outcomes[i]
		sent, _ := o.total()
		machine := o.status == 3 || o.found != nil && o.found.Kind() == record.Undecided
		if !o.finished() || o.status != 0 && !machine || sent == 0 || strings.Contains(o.counts(), "DIFFER") {
			errs = append(errs, fmt.Errorf("%s on %s: %s\n%s", o.scenario, o.broker, o.verdict(), o.output))
		}
	}
	return errors.Join(errs...)
}
