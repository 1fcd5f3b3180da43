package rocketmq

import (
	"context"
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

// delayByLevel sees to -o delay on brokers before 5, which ignore it: they know delays by their levels only. A delay
// that is one of them becomes that level; others are refused.
func (p *producer) delayByLevel(ctx context.Context, r *route, spec *driver.ProducerSpec) error {
	for _, b := range r.brokers {
		if b.write == 0 {
			continue
		}
		c, err := p.client.connect(ctx, b.addr)
		if err != nil {
			return err
		}
		answer, err := p.client.call(ctx, c, wire.ReqGetBrokerConfig, nil, nil)
		if err != nil {
			return wrap("ask for the delay levels", err)
		}
		if !c.old() {
			continue
		}
		if answer.Code != wire.ResSuccess {
			return driver.Errorf(driver.ClassUnsupported, p.op, "use -o delay-level=1 to 18",
				"RocketMQ before 5 delays by levels, and which it has it does not tell: %w", refusal(answer))
		}
		level, known := levelOf(string(answer.Body), p.opts.Delay)
		if level == 0 {
			return driver.Errorf(driver.ClassUnsupported, p.op, "use one of "+known+", or -o delay-level=1 to 18",
				"RocketMQ before 5 delays by levels, of which %s is none", p.opts.Delay)
		}
		opts := *p.opts
		opts.Delay, opts.DelayLevel = 0, level
		p.opts = &opts
		return p.prepare(spec) // all brokers know levels
	}
	return nil
}

// delayOfLevel returns the delay of -o delay-level, if all brokers say that it is the same with them; else 0, as it is
// not known.
func (p *producer) delayOfLevel(ctx context.Context, r *route) (delay time.Duration) {
	for _, b := range r.brokers {
		if b.write == 0 {
			continue
		}
		c, err := p.client.connect(ctx, b.addr)
		if err != nil {
			return 0
		}
		answer, err := p.client.call(ctx, c, wire.ReqGetBrokerConfig, nil, nil)
		if err != nil || answer.Code != wire.ResSuccess {
			return 0
		}
		d := levelIn(string(answer.Body), p.opts.DelayLevel)
		if d <= 0 || delay > 0 && d != delay {
			return 0
		}
		delay = d
	}
	return delay
}

// levelIn returns the delay of a level, from 1, among the messageDelayLevel of a broker's configuration; 0 if there is
// none.
func levelIn(config string, level int) time.Duration {
	for line := range strings.Lines(config) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if levels := strings.Fields(value); key == "messageDelayLevel" && level <= len(levels) {
			return max(0, delayOf(levels[level-1]))
		}
	}
	return 0
}

// levelOf finds the delay among the messageDelayLevel of a broker's configuration, such as "1s 5s 10s 30s 1m 2m 1h
// 1d", and returns its number from 1, or 0 and the levels there are.
func levelOf(config string, delay time.Duration) (level int, known string) {
	for line := range strings.Lines(config) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key != "messageDelayLevel" {
			continue
		}
		for i, text := range strings.Fields(value) {
			if delayOf(text) == delay {
				return i + 1, value
			}
		}
		known = value
	}
	return 0, known
}

// delayOf reads a delay as brokers write it; it returns -1 if that is none.
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
