package rocketmq

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/broker/selector"
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// newFilter parses an expression: "*" or tags joined by "||", or SQL92. A filter of nil takes all. Tags are compared by
// their hashes, as brokers do; clients compare the texts.
func newFilter(kind, expression string) (store.Filter, error) {
	if kind == wire.KindSQL {
		return selector.Parse(expression)
	}
	var codes []int32
	for tag := range strings.SplitSeq(expression, "||") {
		switch tag = strings.TrimSpace(tag); tag {
		case "":
		case "*":
			return nil, nil
		default:
			codes = append(codes, wire.HashCode([]byte(tag)))
		}
	}
	if len(codes) == 0 {
		return nil, nil
	}
	return func(m *store.Message) bool {
		own, _ := m.Content.(*message)
		tags := wire.Property(own.properties, wire.PropTags)
		return len(tags) > 0 && slices.Contains(codes, wire.HashCode(tags))
	}, nil
}

// filterOf returns the filter of a pull: its own or its group's.
func (c *conn) filterOf(r *wire.Frame, g *group, t *topic, own bool) (f store.Filter, code int, remark string) {
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
