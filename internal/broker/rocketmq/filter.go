package rocketmq

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/broker/selector"
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// filter selects messages; nil selects all.
type filter struct {
	codes []int32      // hashes of tags
	sql   store.Filter // instead of codes
}

// newFilter parses an expression: "*" or tags joined by "||", or SQL92.
func newFilter(kind, expression string) (*filter, error) {
	if kind == wire.KindSQL {
		f, err := selector.Parse(expression)
		if f == nil {
			return nil, err // without an error it selects all
		}
		return &filter{sql: f}, nil
	}
	var f filter
	for tag := range strings.SplitSeq(expression, "||") {
		switch tag = strings.TrimSpace(tag); tag {
		case "":
		case "*":
			return nil, nil //nolint:nilnil // takes all
		default:
			f.codes = append(f.codes, wire.HashCode([]byte(tag)))
		}
	}
	if len(f.codes) == 0 {
		return nil, nil //nolint:nilnil // takes all
	}
	return &f, nil
}

// takes reports whether the filter selects a message. Tags are compared by their hashes, as brokers do; clients compare
// the texts.
func (f *filter) takes(m *message) bool {
	if f.sql != nil {
		return f.sql(&m.Message)
	}
	tags := wire.Property(m.properties, wire.PropTags)
	if len(tags) == 0 {
		return false
	}
	return slices.Contains(f.codes, wire.HashCode(tags))
}

// filterOf returns the filter of a pull: its own or its group's.
func (c *conn) filterOf(r *wire.Frame, g *group, t *topic, own bool) (f *filter, code int, remark string) {
	sub := g.subscription(t.name)
	if own {
		kind, expression := r.Get("expressionType"), r.Get("subscription")
		if sub = c.pullSub; sub.kind != string(kind) || sub.expression != string(expression) {
			sub = newSubscription(string(kind), string(expression), 0)
			c.pullSub = sub
		}
	}
	switch {
	case sub == nil:
		return nil, wire.ResSubscriptionNotExist, "the consumer's subscription not exist"
	case !own && sub.version < r.NumberOr("subVersion", 0):
		return nil, wire.ResSubscriptionNotLatest, "the consumer's subscription not latest"
	case sub.err != nil:
		return nil, wire.ResSubscriptionParseFailed, "parse the consumer's subscription failed: " + sub.err.Error()
	}
	return sub.filter, wire.ResSuccess, ""
}
