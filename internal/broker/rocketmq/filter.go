package rocketmq

import (
	"strings"

	"github.com/perfmq/perfmq/internal/broker/selector"
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// filter chooses messages; nil takes all.
type filter struct {
	codes []int32      // hashes of tags
	sql   store.Filter // instead of codes
}

// filterKey names a filter that came with a pull.
type filterKey struct{ kind, expression string }

// newFilter reads an expression: "*" or tags joined by "||", or SQL92.
func newFilter(kind, expression string) (*filter, error) {
	if kind == wire.KindSQL {
		f, err := selector.Parse(expression)
		if err != nil {
			return nil, err
		}
		if f == nil {
			return nil, nil //nolint:nilnil // takes all
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

// takes tells whether a message passes. Tags are compared by their hashes, as brokers do; clients look again.
func (f *filter) takes(m *message) bool {
	if f.sql != nil {
		return f.sql(&m.Message)
	}
	tags := wire.Property(m.properties, wire.PropTags)
	if len(tags) == 0 {
		return false
	}
	hash := wire.HashCode(tags)
	for _, code := range f.codes {
		if code == hash {
			return true
		}
	}
	return false
}

// filterOf finds the filter of a pull: the one that it brings along, or that of its group.
func (c *conn) filterOf(r *wire.Frame, g *group, t *topic, along bool) (f *filter, code int, remark string) {
	if along {
		key := filterKey{string(r.Get("expressionType")), string(r.Get("subscription"))}
		f, known := c.filters[key]
		if !known {
			var err error
			if f, err = newFilter(key.kind, key.expression); err != nil {
				return nil, wire.ResSubscriptionParseFailed, "parse the consumer's subscription failed: " + err.Error()
			}
			const most = 64
			if len(c.filters) >= most {
				clear(c.filters)
			}
			c.filters[key] = f
		}
		return f, wire.ResSuccess, ""
	}
	sub := g.subscription(t.name)
	switch {
	case sub == nil:
		return nil, wire.ResSubscriptionNotExist, "the consumer's subscription not exist"
	case sub.version < r.NumberOr("subVersion", 0):
		return nil, wire.ResSubscriptionNotLatest, "the consumer's subscription not latest"
	case sub.err != nil:
		return nil, wire.ResSubscriptionParseFailed, "parse the consumer's subscription failed: " + sub.err.Error()
	}
	return sub.filter, wire.ResSuccess, ""
}
