//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/tcpproxy"
)

// try carries a trial out, and returns a row for each protocol.
func (s *session) try(ctx context.Context, t *trial) (rows []row, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(t.failure.load.seconds+t.failure.load.relief)*time.Second+
		calm+2*hangLimit+t.failure.load.moving())
	defer cancel()
	from, err := originNow(ctx, t.deployment.name)
	if err != nil {
		return nil, err
	}
	c, err := t.deployment.launch(ctx, t.failure)
	if err != nil {
		return nil, fmt.Errorf("start the brokers: %w", err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if t.failure.proxied {
		if t.failure.expect.slow {
			c.slow = &tcpproxy.Line{Delay: slowDelay, Loss: lossDelay, LossOneIn: 100}
		}
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
	plan := t.failure.load
	plan.backlog /= len(c.endpoints)
	for i := range c.endpoints {
		l, err := s.prepare(ctx, t, &plan, &c.endpoints[i])
		if err != nil {
			return nil, err
		}
		loads = append(loads, l)
		c.kept, c.live = append(c.kept, l.kept), append(c.live, l.live)
	}
	for _, l := range loads { // together: each is to be under way when the failure happens
		if err := l.begin(); err != nil {
			return nil, err
		}
	}
	var log harnessLog
	err = applyTo(ctx, t.failure, c, loads, &log)
	if errors.Is(err, errTooBusy) {
		for _, l := range loads {
			rows = append(rows, row{
				Deployment: c.title, Failure: t.failure.title, Promised: t.failure.promised, Protocol: l.protocol, origin: from,
				State: notJudged, Verdict: "not judged: " + err.Error(),
			})
		}
		return rows, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w\nthe harness: %s\nthe broker: %s", err, strings.Join(log.lines, "; "), c.primary.LogTail())
	}
	for i, l := range loads {
		o, err := s.observe(ctx, t, c, l, &log)
		if err != nil {
			return nil, err
		}
		if log.took != nil {
			o.took = log.took[i]
		}
		r := judge(o)
		r.Deployment, r.Failure, r.Promised, r.Protocol = c.title, t.failure.title, t.failure.promised, l.protocol
		r.origin = from
		r.Version, r.Revision = o.result.Versions.Perfmq, o.result.Versions.Revision
		rows = append(rows, r)
		text := fmt.Sprintf("%s\n\nharness:\n%s\n\nbroker:\n%s\n\n%+v\n", l.output.String(), strings.Join(log.lines, "\n"),
			c.primary.LogTail(), r)
		if err := os.WriteFile(filepath.Join(l.dir, "output.txt"), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// errTooBusy: the failure did not happen during all loads, as the machine was busy.
var errTooBusy = errors.New("the machine is too busy")

// applyTo lets the failure happen when all loads are under way.
func applyTo(ctx context.Context, f *failure, c *cluster, loads []*load, log *harnessLog) error {
	if f.apply == nil {
		return nil
	}
	for _, l := range loads {
		if err := l.underWay(ctx); err != nil {
			return err
		}
	}
	for _, l := range loads {
		if _, err := os.Stat(l.asked()); err == nil {
			return fmt.Errorf("%w: the load over %s was over before the last one was under way", errTooBusy, l.protocol)
		}
	}
	return f.apply(ctx, c, log)
}

// observe waits for the end of a load, and asks the broker for its counts on the way.
func (s *session) observe(ctx context.Context, t *trial, c *cluster, l *load, log *harnessLog) (*observation, error) {
	o := &observation{
		expect: t.failure.expect, live: l.live, kept: l.kept, first: log.first, last: log.last, over: log.over,
		copied: log.copied,
		left:   -1, total: -1, allowed: s.allowed,
		due: int64(t.failure.load.rate * t.failure.load.seconds),
	}
	err := l.betweenSteps(ctx)
	if o.early = errors.Is(err, errEnded) && t.failure.expect.refused; err != nil && !o.early {
		return nil, err
	}
	if o.stored, err = c.stored(ctx, l.kept); err != nil {
		return nil, fmt.Errorf("ask the broker for its count: %w", err)
	}
	if err := l.goOn(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, hangLimit+t.failure.load.moving())
	defer cancel()
	if err := l.finish(ctx, o); err != nil {
		return nil, err
	}
	if c.closed != nil {
		if o.closed, err = c.closed(l.protocol); err != nil {
			return nil, fmt.Errorf("read the broker's log: %w", err)
		}
	}
	if c.lasting && t.failure.load.live {
		if o.total, err = c.stored(ctx, l.live); err != nil {
			return nil, fmt.Errorf("ask the broker for its count: %w", err)
		}
	}
	for _, queue := range []string{l.live, l.kept} {
		if c.left == nil || o.early || queue == l.live && !t.failure.load.live {
			continue
		}
		n, err := c.left(ctx, queue)
		if err != nil {
			return nil, fmt.Errorf("ask the broker for its count: %w", err)
		}
		o.left = max(o.left, 0) + n
	}
	return o, nil
}
