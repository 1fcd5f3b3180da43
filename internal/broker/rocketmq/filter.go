package rocketmq

import (
	"strings"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/broker/selector"
	"github.com/perfmq/perfmq/internal/broker/store"
)

// filter chooses messages; nil takes all.
type filter struct {
	codes []int32      // hashes of tags
	sql   store.Filter // instead of codes
}

// filterKey names a filter that came with a pull.
type filterKey struct{ kind, expression string }

// sqlKind is the kind of an SQL92 expression; all others are expressions of tags.
const sqlKind = "SQL92"

// newFilter reads an expression: "*" or tags joined by "||", or SQL92.
func newFilter(kind, expression string) (*filter, error) {
	if kind == sqlKind {
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
			f.codes = append(f.codes, javaHash([]byte(tag)))
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
	tags := property(m.properties, propTags)
	if len(tags) == 0 {
		return false
	}
	hash := javaHash(tags)
	for _, code := range f.codes {
		if code == hash {
			return true
		}
	}
	return false
}

// javaHash is String.hashCode.
func javaHash(s []byte) int32 {
	var h int32
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		s = s[n:]
		if r > 0xffff {
			r -= 0x10000
			h = 31*h + 0xd800 + r>>10
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + r
	}
	return h
}

// filterOf finds the filter of a pull: the one that it brings along, or that of its group.
func (c *conn) filterOf(r *request, g *group, t *topic, along bool) (f *filter, code int, remark string) {
	if along {
		key := filterKey{string(r.get("expressionType")), string(r.get("subscription"))}
		f, known := c.filters[key]
		if !known {
			var err error
			if f, err = newFilter(key.kind, key.expression); err != nil {
				return nil, codeParseFailed, "parse the consumer's subscription failed: " + err.Error()
			}
			const most = 64
			if len(c.filters) >= most {
				clear(c.filters)
			}
			c.filters[key] = f
		}
		return f, codeSuccess, ""
	}
	sub := g.subscription(t.name)
	switch {
	case sub == nil:
		return nil, codeNoSubscription, "the consumer's subscription not exist"
	case sub.version < r.number("subVersion", 0):
		return nil, codeOldFilter, "the consumer's subscription not latest"
	case sub.err != nil:
		return nil, codeParseFailed, "parse the consumer's subscription failed: " + sub.err.Error()
	}
	return sub.filter, codeSuccess, ""
}
