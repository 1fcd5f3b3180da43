//go:build unix

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest/peerbench"
)

// Limits on the cost of thousands of connections.
const (
	scaleRate   = 10_000 // msg/s of all producers together
	scaleMemory = 32.0   // KiB of the tester's memory per connection, from 1,000 to 5,000 a side
	// scaleMembers are the consumers of one destination over RocketMQ, at most: the embedded broker's topics have up to
	// 1024 queues, and a consumer needs one.
	scaleMembers = 1000
	scaleCPU     = 1.5 // processor time per message with 1,000 connections a side, to that with one
)

// scale puts an equal load on the embedded broker, a process of its own, over more and more connections.
func (b *bench) scale(ctx context.Context) error {
	broker, err := peerbench.StartEmbedded(ctx, b.perfmq)
	if err != nil {
		return err
	}
	defer broker.Close()
	fmt.Printf("\n== Embedded broker as a process of its own: %d msg/s in all, N producers and N consumers, a "+
		"connection each\n", scaleRate)
	for _, protocol := range []string{"amqp", "stomp", "rocketmq"} {
		fmt.Printf("\n%s\n  %12s %14s %14s %14s %18s %18s\n", protocol, "connections", "received msg/s", "cpu us/message",
			"memory MiB",
			"send delay p50 us", "response p50 us")
		medians := map[int]peerbench.Outcome{}
		for _, n := range []int{1, 10, 100, 1000, 5000} {
			var runs []peerbench.Outcome
			for i := range b.repeat {
				o, err := b.scaleOnce(ctx, protocol, broker.URLs[protocol], n, i)
				if err != nil {
					return fmt.Errorf("%s with %d connections a side: %w", protocol, n, err)
				}
				runs = append(runs, o)
			}
			var m peerbench.Outcome
			m.Received = peerbench.Median(runs, func(o peerbench.Outcome) float64 { return o.Received })
			m.Memory = peerbench.Median(runs, func(o peerbench.Outcome) float64 { return o.Memory })
			m.Messages, m.CPU = 1, time.Duration(1000*peerbench.Median(runs, peerbench.Outcome.CPUPerMessage))
			medians[n] = m
			fmt.Printf("  %12d %14.0f %14.1f %14.1f %18.0f %18.0f\n", 2*n, m.Received, m.CPUPerMessage(), m.MiB(),
				peerbench.Median(runs, func(o peerbench.Outcome) float64 { return o.Delay.P50 }), peerbench.Median(runs, response))
		}
		slope := (medians[5000].Memory - medians[1000].Memory) / 1024 / 8000
		fmt.Printf("  memory per connection: %.1f KiB (aim at most %g: %s); cpu of 1000 / 1 a side: %s; rate with 1000 a "+
			"side: %s\n",
			slope, scaleMemory, met(slope <= scaleMemory),
			verdict(medians[1000].CPUPerMessage()/medians[1].CPUPerMessage(), scaleCPU, false),
			verdict(medians[1000].Received/scaleRate, 0.99, true))
	}
	return nil
}

func met(yes bool) string {
	if yes {
		return "met"
	}
	return "MISSED"
}

func (b *bench) scaleOnce(ctx context.Context, protocol, address string, n, run int) (peerbench.Outcome, error) {
	file := filepath.Join(b.dir, fmt.Sprintf("scale-%s-%d-%d.json", protocol, n, run))
	limit := time.Duration(b.duration)*time.Second + 3*time.Minute
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	each := n // of a destination
	if protocol == "rocketmq" {
		each = min(n, scaleMembers)
	}
	args := []string{
		protocol, "client", "--url", address, "--producers", strconv.Itoa(each), "--consumers", strconv.Itoa(each),
		"--rate", strconv.Itoa(scaleRate), "--duration", strconv.Itoa(b.duration), "--warmup", strconv.Itoa(b.warmup),
		"--max-pending", "100", "--connect-timeout", "60s", "--json", file, "--silent",
	}
	if protocol == "rocketmq" {
		args = append(args, "-o", "queues="+strconv.Itoa(max(each, 8)))
	}
	for i := range n / each {
		args = append(args, fmt.Sprintf("queue://SCALE-%s-%d-%d-%d", protocol, n, run, i))
	}
	cmd := peerbench.Perfmq(ctx, b.perfmq, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return peerbench.Outcome{}, fmt.Errorf("%w\n%s", err, out)
	}
	return peerbench.ReadOutcome(file, cmd.ProcessState)
}
