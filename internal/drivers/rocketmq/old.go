package rocketmq

import (
	"context"
	"fmt"
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

// fitDelay adapts the delay of messages to the brokers that have got a heartbeat. Brokers before 5 delay by levels
// alone: a time equal to a level becomes that level, others are refused.
func (p *producer) fitDelay(ctx context.Context, conns []*conn, spec *driver.ProducerSpec) error {
	old := slices.IndexFunc(conns, (*conn).old)
	if spec.Delay == 0 || old < 0 {
		return nil
	}
	levels, err := conns[old].delayLevels(ctx)
	if err != nil {
		return err
	}
	if p.level = slices.Index(levels, spec.Delay) + 1; p.level == 0 {
		return driver.Errorf(driver.ClassUnsupported, p.op, fmt.Sprintf("use one of %v", levels),
			"RocketMQ before 5 delays by levels, of which %s is none", spec.Delay)
	}
	return p.prepare(spec)
}

// delayLevels returns the messageDelayLevel of a broker's configuration, such as 1s 5s 10s 30s 1m 2m 1h 1d. The first
// is level 1; a level that is not understood is 0.
func (c *conn) delayLevels(ctx context.Context) (levels []time.Duration, err error) {
	answer, err := c.must(ctx, "ask for delays", wire.ReqGetBrokerConfig, nil, nil)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(answer.Body)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key == "messageDelayLevel" {
			for _, text := range strings.Fields(value) {
				levels = append(levels, delayOf(text))
			}
		}
	}
	return levels, nil
}

// delayOf parses a delay in the brokers' form; it returns 0 if the text is not a delay.
func delayOf(text string) time.Duration {
	unit := time.Duration(1)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		text, unit = days+"h", 24
	}
	const most = 10_000 * time.Hour
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		return 0
	}
	return d * unit
}
