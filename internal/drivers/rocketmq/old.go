package rocketmq

import (
	"context"
	"slices"
	"strings"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// old reports whether the server, by its last answer, is RocketMQ before 5.
func (c *conn) old() bool {
	v := c.version.Load()
	return v > 0 && v < wire.Version5
}

// fitDelay adapts the delay of messages to the brokers that have got a heartbeat.
func (p *producer) fitDelay(ctx context.Context, conns []*conn, spec *driver.ProducerSpec) error {
	if i := slices.IndexFunc(conns, (*conn).old); p.opts.Delay > 0 && i >= 0 {
		if err := p.delayByLevel(ctx, conns[i]); err != nil {
			return err
		}
		return p.prepare(spec)
	}
	if p.opts.DelayLevel > 0 {
		if p.delay = p.delayOfLevel(ctx, conns); p.delay > 0 {
			return p.prepare(spec)
		}
	}
	return nil
}

// delayByLevel adapts -o delay to a broker before 5, which supports only delay levels and ignores the delay. A delay
// equal to a level becomes that level, which all brokers support; others are refused.
func (p *producer) delayByLevel(ctx context.Context, c *conn) error {
	answer, err := c.call(ctx, wire.ReqGetBrokerConfig, nil, nil)
	if err != nil {
		return wrap("ask for the delay levels", err)
	}
	if answer.Code != wire.ResSuccess {
		return driver.Errorf(driver.ClassUnsupported, p.op, "use -o delay-level=1 to 18",
			"RocketMQ before 5 delays by levels, and does not report its levels: %w", refusal(answer))
	}
	levels := delayLevels(string(answer.Body))
	i := slices.IndexFunc(levels, func(text string) bool { return delayOf(text) == p.opts.Delay })
	if i < 0 {
		return driver.Errorf(driver.ClassUnsupported, p.op,
			"use one of "+strings.Join(levels, " ")+", or -o delay-level=1 to 18",
			"RocketMQ before 5 delays by levels, of which %s is none", p.opts.Delay)
	}
	opts := *p.opts
	opts.Delay, opts.DelayLevel = 0, i+1
	p.opts = &opts
	return nil
}

// delayOfLevel returns the delay of -o delay-level if all brokers report the same one; otherwise 0, which means
// unknown.
func (p *producer) delayOfLevel(ctx context.Context, conns []*conn) (delay time.Duration) {
	for _, c := range conns {
		answer, err := c.call(ctx, wire.ReqGetBrokerConfig, nil, nil)
		if err != nil || answer.Code != wire.ResSuccess {
			return 0
		}
		levels := delayLevels(string(answer.Body))
		if p.opts.DelayLevel > len(levels) {
			return 0
		}
		d := delayOf(levels[p.opts.DelayLevel-1])
		if d <= 0 || delay > 0 && d != delay {
			return 0
		}
		delay = d
	}
	return delay
}

// delayLevels returns the messageDelayLevel of a broker's configuration, such as 1s 5s 10s 30s 1m 2m 1h 1d. The first
// is level 1.
func delayLevels(config string) []string {
	for line := range strings.Lines(config) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key == "messageDelayLevel" {
			return strings.Fields(value)
		}
	}
	return nil
}

// delayOf parses a delay in the brokers' form; it returns -1 if the text is not a delay.
func delayOf(text string) time.Duration {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	n, ok := int64(0), false
	if text != "" {
		n, ok = wire.ParseInt([]byte(text[:len(text)-1]))
	}
	if !ok || n < 0 || n > 1e6 || units[text[len(text)-1]] == 0 {
		return -1
	}
	return time.Duration(n) * units[text[len(text)-1]]
}
