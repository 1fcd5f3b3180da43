// Package selector compiles JMS message selectors (Jakarta Messaging 3.1, section 3.8.1), without arithmetic:
//
//	color = 'red' AND (size BETWEEN 2 AND 5 OR name LIKE 'a%') AND NOT weight IS NULL
//
// A name is a property of the message, or JMSPriority, JMSCorrelationID, JMSMessageID, JMSType, JMSTimestamp,
// JMSDeliveryMode or JMSXGroupID. A missing property is unknown, and so are comparisons with it; AND, OR and NOT follow
// the truth tables of SQL. A filter selects a message if the whole expression is true. Values of different types are
// not equal, with one exception: as the properties of STOMP and RocketMQ are strings, a numeric string is compared with
// numbers as a number.
package selector

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// Parse compiles a selector. An empty text is no selector: nil and no error.
func Parse(text string) (store.Filter, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	wants, err := parse(text)
	if err != nil {
		return nil, err
	}
	return func(m *store.Message) bool { return wants(m) == yes }, nil
}

// truth is a value of three-valued logic.
type truth uint8

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

func (t truth) not() truth { return yes - t }

// condition is a compiled part of a selector.
type condition func(*store.Message) truth

// quoted is a string literal, never compared as a number.
type quoted string

// operand is a name, or a literal if the name is empty.
type operand struct {
	name    string
	literal any
}

// unordered reports a literal without an order: a string or a boolean.
func (o *operand) unordered() bool {
	switch o.literal.(type) {
	case quoted, bool:
		return true
	}
	return false
}

// value returns a quoted, string, bool, int64, float64, or nil for unknown.
func (o *operand) value(m *store.Message) any {
	text := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	header := func() store.Header { return m.Content.Header() }
	switch o.name {
	case "":
		return o.literal
	case "JMSPriority":
		return int64(m.Priority)
	case "JMSDeliveryMode":
		if m.Durable {
			return "PERSISTENT"
		}
		return "NON_PERSISTENT"
	case "JMSCorrelationID":
		return text(header().CorrelationID)
	case "JMSMessageID":
		return text(header().MessageID)
	case "JMSType":
		return text(header().Subject)
	case "JMSTimestamp":
		if created := header().Created; created != 0 {
			return created
		}
		return nil
	case "JMSXGroupID":
		return text(m.Group)
	}
	return m.Content.Property(o.name)
}

// comparison is the result of a comparison for each order of two values: smaller, equal, larger.
type comparison [3]bool

// comparisonOf parses =, <>, <, <=, > or >=.
func comparisonOf(s string) comparison {
	return comparison{strings.Contains(s, "<"), strings.Contains(s, "="), strings.Contains(s, ">")}
}

func (c comparison) ordered() bool { return c[0] != c[2] }

// equality is the comparison of values without an order.
func (c comparison) equality(equal bool) truth {
	return truthOf(!c.ordered() && equal == c[1])
}

func compare(c comparison, a, b any) truth {
	if a == nil || b == nil {
		return unknown
	}
	if x, ok := a.(bool); ok {
		if y, ok := b.(bool); ok {
			return c.equality(x == y)
		}
		return no
	}
	x, xText := textOf(a)
	y, yText := textOf(b)
	if xText && yText {
		return c.equality(x == y)
	}
	order, ok := compareNumbers(a, b)
	return truthOf(ok && c[order+1])
}

func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case quoted:
		return string(v), true
	}
	return "", false
}

// compareNumbers returns -1, 0 or 1; ok is false unless both are numbers.
func compareNumbers(a, b any) (order int, ok bool) {
	x, y := numberOf(a), numberOf(b)
	switch {
	case !x.ok || !y.ok || x.float != x.float || y.float != y.float:
		return 0, false
	case x.whole && y.whole:
		return cmp.Compare(x.int, y.int), true
	}
	return cmp.Compare(x.float, y.float), true
}

// number is an integer if whole is set; float is always set.
type number struct {
	ok, whole bool
	int       int64
	float     float64
}

// numberOf returns a value as a number. A text must be decimal: no hexadecimal, no Infinity, no underscores.
func numberOf(v any) number {
	switch v := v.(type) {
	case int64:
		return number{ok: true, whole: true, int: v, float: float64(v)}
	case float64:
		return number{ok: true, float: v}
	case string:
		if v == "" || strings.Trim(v, "+-.0123456789eE") != "" {
			break
		}
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return numberOf(n)
		}
		f, err := strconv.ParseFloat(v, 64)
		return number{ok: err == nil, float: f}
	}
	return number{}
}
