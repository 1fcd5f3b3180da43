//go:build unix

package main

import (
	"context"
)

// orderlyFailures are what an operator does to a healthy broker.
func orderlyFailures() []failure {
	usual := loadPlan{seconds: 32, live: true, rate: keptRate}
	return []failure{
		{
			name: "restart", title: "orderly stop and restart", load: usual, apply: stopAndStart,
			expect:   expectation{outage: true, several: true},
			promised: "confirmed persistent messages survive",
		},
		{
			name: "dismiss", title: "connections closed by the operator", load: usual, apply: dismissAll,
			expect:   expectation{outage: true, several: true},
			promised: "confirmed messages stay; clients may connect again at once",
		},
	}
}

func stopAndStart(ctx context.Context, c *cluster, l *harnessLog) error {
	stop, start := c.stop, c.start
	if stop == nil {
		stop = func(context.Context) error { return c.primary.Stop() }
		start = c.primary.Start
	}
	l.begin("stop")
	if err := stop(ctx); err != nil {
		return err
	}
	l.done("the broker has stopped")
	if err := start(ctx); err != nil {
		return err
	}
	l.note("started again")
	return nil
}

func dismissAll(ctx context.Context, c *cluster, l *harnessLog) error {
	l.begin("close all connections")
	err := c.dismiss(ctx)
	l.done("all connections have been closed")
	return err
}
