//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// failureTrials returns the starts with many messages, or all other failures.
func failureTrials(starts bool) (list []trial) {
	all := append(failures(), brokerFailures()...)
	for _, d := range deployments() {
		for i := range all {
			f := &all[i]
			if slices.Contains(d.failures, f.name) && f.expect.starts == starts {
				list = append(list, trial{
					name: d.name + "/" + f.name, cells: []string{f.title, d.name, "", f.promised},
					run: func(ctx context.Context, s *session) ([]row, error) { return s.try(ctx, &d, f) },
				})
			}
		}
	}
	return list
}

// try lets a deployment fail under load, and returns a row for each protocol.
func (s *session) try(ctx context.Context, d *deployment, f *failure) (rows []row, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(f.load.seconds+f.load.relief)*time.Second+calm+4*hangLimit+
		f.load.moving())
	defer cancel()
	c, err := d.launch(ctx, use{backlog: f.load.backlog, full: f.full})
	if err != nil {
		return nil, fmt.Errorf("start the brokers: %w", err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if f.proxied {
		defer func() {
			for _, p := range c.proxies {
				p.Close()
			}
		}()
		if err := c.throughProxies(); err != nil {
			return nil, err
		}
	}
	var loads []*load
	defer func() {
		for _, l := range loads {
			l.stop()
		}
	}()
	plan := f.load
	plan.backlog /= len(c.endpoints)
	for i := range c.endpoints {
		e := &c.endpoints[i]
		l, err := s.prepare(ctx, strings.Join([]string{d.name, f.name, e.protocol}, "-"), &plan, e)
		if err != nil {
			return nil, err
		}
		loads = append(loads, l)
	}
	for _, l := range loads { // together: all are in progress when the failure happens
		if err := l.begin(); err != nil {
			return nil, err
		}
	}
	var log harnessLog
	unfit := f.applyTo(ctx, c, loads, &log)
	if unfit != nil && !errors.Is(unfit, errTooBusy) {
		return nil, fmt.Errorf("%w\nthe harness: %s\nthe broker: %s", unfit, strings.Join(log.lines, "; "),
			c.primary.LogTail())
	}
	for _, l := range loads {
		r := row{Cells: make([]string, 3), State: notJudged, Verdict: fmt.Sprintf("not judged: %v", unfit)}
		if unfit == nil {
			if r, err = s.observe(ctx, f, c, l, &log); err != nil {
				return nil, err
			}
		}
		r.Cells = append([]string{f.title, c.title, l.protocol, f.promised}, r.Cells...)
		rows = append(rows, r)
		text := fmt.Sprintf("%s\n\nharness:\n%s\n\nbroker:\n%s\n\n%+v\n", l.tail(), strings.Join(log.lines, "\n"),
			c.primary.LogTail(), r)
		if err := os.WriteFile(filepath.Join(l.dir, "output.txt"), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// errTooBusy: the failure did not happen during all loads, as the machine was busy.
var errTooBusy = errors.New("the machine is too busy")

// applyTo lets the failure happen when all loads are in progress.
func (f *failure) applyTo(ctx context.Context, c *cluster, loads []*load, log *harnessLog) error {
	if f.apply == nil {
		return nil
	}
	for _, l := range loads {
		if err := l.inProgress(ctx); err != nil {
			return err
		}
	}
	for _, l := range loads {
		if _, err := os.Stat(l.asked()); err == nil {
			return fmt.Errorf("%w: the load over %s was over before the last one was in progress", errTooBusy,
				l.protocol)
		}
	}
	return f.apply(ctx, c, log)
}

// observe waits for the end of a load, asks the broker for its counts on the way, and judges.
func (s *session) observe(
	ctx context.Context, f *failure, c *cluster, l *load, log *harnessLog,
) (row, error) {
	o := &observation{
		expect: f.expect, live: l.live, kept: l.kept, first: log.first, last: log.last,
		left: -1, total: -1, allowed: s.allowed, due: int64(f.load.rate * f.load.seconds),
	}
	err := l.betweenSteps(ctx)
	if o.early = errors.Is(err, errEnded) && f.expect.refused; err != nil && !o.early {
		return row{}, err
	}
	err = nil
	count := func(ask func(context.Context, string) (int64, error), queue string) int64 {
		n, failed := ask(ctx, queue)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("ask the broker for its count: %w", failed))
		}
		return n
	}
	if o.stored = count(c.stored, l.kept); err != nil {
		return row{}, err
	}
	if err := l.goOn(); err != nil {
		return row{}, err
	}
	ending, cancel := context.WithTimeout(ctx, hangLimit+f.load.moving())
	defer cancel()
	if err := l.finish(ending, o); err != nil {
		return row{}, err
	}
	if c.lasting && f.load.live {
		o.total = count(c.stored, l.live)
	}
	if c.left != nil && !o.early {
		o.left = count(c.left, l.kept)
		if f.load.live {
			o.left += count(c.left, l.live)
		}
	}
	return judge(o), err
}
