//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"golang.org/x/sync/errgroup"
)

// trial is a load on fresh brokers that makes one row of a record, or some.
type trial struct {
	name  string   // in -only
	cells []string // the first ones of its row if it cannot be carried out; nil: its name
	run   func(context.Context, *session) ([]row, error)
}

// row is a line of a record.
type row struct {
	Cells    []string // those before the verdict
	Verdict  string
	State    state
	Mistakes []string `json:",omitempty"` // of perfmq
	origin
}

// origin says where a row comes from.
type origin struct {
	Trial   string
	Began   time.Time
	Program string  // perfmq's version
	Busy    float64 // share of the processors in use just before the trial
}

// state is the verdict of a row in a word.
type state string

const (
	promiseKept   state = "kept"
	promiseBroken state = "broken"
	perfmqWrong   state = "**wrong**"
	notJudged     state = "not judged"
	notCarriedOut state = "not carried out"
)

// record carries out the trials of a command, and writes their rows.
func (s *session) record(ctx context.Context, c *command) error {
	trials, err := c.trials(s)
	if err != nil {
		return err
	}
	rows, err := s.all(ctx, trials)
	if ctx.Err() != nil { // without a record: it would not have all rows
		return errors.Join(ctx.Err(), err)
	}
	return errors.Join(err, write(s.out, c.page(s, rows)), mistakes(rows))
}

// all carries out the wanted trials, and returns their rows in the order of the trials.
func (s *session) all(ctx context.Context, trials []trial) ([]row, error) {
	got, errs := make([][]row, len(trials)), make([]error, len(trials))
	var g errgroup.Group
	g.SetLimit(s.atOnce)
	for i := range trials {
		if s.only.MatchString(trials[i].name) {
			g.Go(func() error {
				got[i], errs[i] = s.printed(ctx, &trials[i])
				return nil // the others are worth trying
			})
		}
	}
	_ = g.Wait() // no trial returns an error
	return slices.Concat(got...), errors.Join(errs...)
}

// printed carries a trial out, and prints its rows. A trial that failed has a row, too.
func (s *session) printed(ctx context.Context, t *trial) ([]row, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	rows, err := s.once(ctx, t)
	if err != nil {
		err = fmt.Errorf("%s: %w", t.name, err)
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		cells := t.cells
		if cells == nil {
			cells = []string{t.name}
		}
		rows = append(rows, row{
			Cells: cells, State: notCarriedOut, Verdict: "**not carried out**",
			origin: origin{Trial: t.name, Began: time.Now()},
		})
	}
	for _, r := range rows {
		fmt.Fprintf(os.Stderr, "%s: %s\n  %s\n", t.name, r.Verdict, strings.Join(r.Cells, "\n  "))
	}
	return rows, err
}

// once returns the rows of a trial. One that has rows in the folder of the results is not repeated.
func (s *session) once(ctx context.Context, t *trial) (rows []row, err error) {
	file := filepath.Join(s.dir, strings.NewReplacer("/", "-", " ", "-").Replace(t.name)+".json")
	text, err := os.ReadFile(file) //nolint:gosec // the user named the folder
	if err == nil {
		return rows, json.Unmarshal(text, &rows)
	}
	program, err := s.command(ctx, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask perfmq for its version: %w", err)
	}
	from := origin{Trial: t.name}
	from.Program, _, _ = strings.Cut(strings.TrimPrefix(string(program), "perfmq "), "\n")
	rows, err = judged(ctx, func() ([]row, error) {
		from.Began = time.Now()
		percent, err := cpu.PercentWithContext(ctx, time.Second, false)
		if err != nil || len(percent) == 0 {
			return nil, fmt.Errorf("ask the system how busy the machine is: %w", err)
		}
		from.Busy = percent[0] / 100
		rows, err := t.run(ctx, s)
		for i := range rows {
			rows[i].origin = from
		}
		return rows, err
	})
	if err != nil {
		return nil, err
	}
	if text, err = json.MarshalIndent(rows, "", "  "); err != nil {
		return nil, err
	}
	return rows, os.WriteFile(file, text, 0o600)
}

// judged carries a trial out, and once more if a row of it is not judged. Rows that were judged at first stay.
func judged(ctx context.Context, try func() ([]row, error)) ([]row, error) {
	rows, err := try()
	if err != nil || !slices.ContainsFunc(rows, func(r row) bool { return r.State == notJudged }) {
		return rows, err
	}
	again, err := try()
	if err != nil || len(again) != len(rows) {
		return rows, ctx.Err()
	}
	for i := range rows {
		if rows[i].State == notJudged {
			rows[i] = again[i]
		}
	}
	return rows, nil
}

// mistakes returns the rows in which perfmq was wrong as an error.
func mistakes(rows []row) error {
	var errs []error
	for i := range rows {
		if r := &rows[i]; len(r.Mistakes) > 0 {
			errs = append(errs, fmt.Errorf("%s: %s", r.Trial, strings.Join(r.Mistakes, "; ")))
		}
	}
	return errors.Join(errs...)
}
