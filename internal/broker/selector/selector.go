// Package selector reads the message selectors of JMS (Jakarta Messaging 3.1, section 3.8.1) as far as the embedded
// broker has them, and makes filters of them:
//
//	color = 'red' AND (size BETWEEN 2 AND 5 OR name LIKE 'a%') AND NOT "my-prop" IS NULL
//
// There are = <> < <= > >=, AND, OR, NOT, parentheses, IS [NOT] NULL, [NOT] IN, [NOT] LIKE with ESCAPE, and [NOT]
// BETWEEN. There is no arithmetic. A name is a Java identifier, which here may have dots in it, or any text in double
// quotes; it is a property of the message, or JMSPriority, JMSCorrelationID, JMSMessageID, JMSType, JMSTimestamp,
// JMSDeliveryMode ('PERSISTENT', 'NON_PERSISTENT') or JMSXGroupID.
//
// # Logic
//
// A property that is not there is unknown, and so is what is compared with it; AND, OR and NOT follow the tables of
// SQL. A filter wants a message if the whole is true. Values of different types are not equal, and comparing them is
// false, with one exception.
//
// # Properties that are text
//
// The properties of STOMP are all strings. A string that is compared with a number (or with TRUE or FALSE) is
// converted if it reads as one: n > 5 is true of "7", and n = 7 of "7.0". This goes beyond JMS, and beyond Artemis,
// where it is false. A number that is compared with a string literal is not converted: n = '7' is false of the number
// 7.
package selector

import (
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// Properties is an optional interface of a [store.Content], so that a filter need not have all headers made for one.
type Properties interface {
	// Property is as [store.Header.Lookup].
	Property(key string) any
}

// Parse returns the filter that text describes, or an [*Error]. Of an empty text, which is no selector, it returns nil
// and no error.
func Parse(text string) (store.Filter, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	return func(m *store.Message) bool {
		e := env{m: m}
		return root.test(&e) == yes
	}, nil
}

// truth is a value of three-valued logic. The order makes AND the smaller and OR the larger of two.
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

// env is a message as the filter reads it.
type env struct {
	m      *store.Message
	header store.Header
	made   bool
}

func (e *env) all() *store.Header {
	if !e.made {
		e.header, e.made = e.m.Content.Header(), true
	}
	return &e.header
}

func textOrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// lookup returns the value of a name: string, bool, int64, float64, or nil if it is unknown.
func (e *env) lookup(name string) any {
	switch name {
	case "JMSPriority":
		return int64(e.m.Priority)
	case "JMSDeliveryMode":
		if e.m.Durable {
			return "PERSISTENT"
		}
		return "NON_PERSISTENT"
	case "JMSCorrelationID":
		return textOrNil(e.all().CorrelationID)
	case "JMSMessageID":
		return textOrNil(e.all().MessageID)
	case "JMSType":
		return textOrNil(e.all().Subject)
	case "JMSTimestamp":
		if created := e.all().Created; created != 0 {
			return created
		}
		return nil
	case "JMSXGroupID":
		return textOrNil(e.m.Group)
	}
	if p, ok := e.m.Content.(Properties); ok {
		return p.Property(name)
	}
	return e.all().Lookup(name)
}

// operation is the operation of a node.
type operation uint8

const (
	opAnd operation = iota
	opOr
	opNot
	opValue // a value as a condition
	opCompare
	opNull
	opIn
	opLike
	opBetween
)

// node is a condition.
type node struct {
	op          operation
	negated     bool // IS NOT NULL, NOT IN, NOT LIKE, NOT BETWEEN
	left, right *node
	cmp         comparison
	a, b, c     operand
	list        []operand
	pattern     pattern
}

// operand is a name, or a literal if the name is empty.
type operand struct {
	name    string
	literal any
}

func (o *operand) value(e *env) any {
	if o.name != "" {
		return e.lookup(o.name)
	}
	return o.literal
}

func (n *node) test(e *env) truth {
	var t truth
	switch n.op {
	case opAnd:
		if t = n.left.test(e); t != no {
			t = min(t, n.right.test(e))
		}
		return t
	case opOr:
		if t = n.left.test(e); t != yes {
			t = max(t, n.right.test(e))
		}
		return t
	case opNot:
		return n.left.test(e).not()
	case opValue:
		return condition(n.a.value(e))
	case opCompare:
		return compare(n.cmp, n.a.value(e), n.b.value(e), n.a.name != "", n.b.name != "")
	case opNull:
		t = truthOf(n.a.value(e) == nil)
	case opIn:
		t = n.in(n.a.value(e))
	case opLike:
		switch v := n.a.value(e).(type) {
		case nil:
			return unknown
		case string:
			t = truthOf(n.pattern.matches(v))
		}
	case opBetween:
		v := n.a.value(e)
		t = min(compare(greaterOrEqual, v, n.b.value(e), true, true), compare(lessOrEqual, v, n.c.value(e), true, true))
	}
	if n.negated {
		return t.not()
	}
	return t
}

func (n *node) in(v any) truth {
	if v == nil {
		return unknown
	}
	for i := range n.list {
		if compare(equal, v, n.list[i].literal, true, false) == yes {
			return yes
		}
	}
	return no
}

// condition is the truth of a value that stands alone.
func condition(v any) truth {
	switch v := v.(type) {
	case nil:
		return unknown
	case bool:
		return truthOf(v)
	case string:
		return truthOf(strings.EqualFold(v, "true"))
	}
	return no
}

// comparison is a comparison operator.
type comparison uint8

const (
	equal comparison = iota
	unequal
	less
	lessOrEqual
	greater
	greaterOrEqual
)

// holds tells whether the comparison is true of two values of which the first is smaller (-1), equal (0) or larger (1).
func (c comparison) holds(order int) bool {
	switch c {
	case equal:
		return order == 0
	case unequal:
		return order != 0
	case less:
		return order < 0
	case lessOrEqual:
		return order <= 0
	case greater:
		return order > 0
	default:
		return order >= 0
	}
}

func (c comparison) ordered() bool { return c >= less }

// compare compares two values. Those that are read from the message may be converted.
func compare(c comparison, a, b any, aRead, bRead bool) truth {
	if a == nil || b == nil {
		return unknown
	}
	x, aText := a.(string)
	y, bText := b.(string)
	switch {
	case aText && bText:
		return compareText(c, x, y)
	case aText && aRead:
		a = convert(x, b)
	case bText && bRead:
		b = convert(y, a)
	}
	if x, ok := a.(bool); ok {
		y, ok := b.(bool)
		return truthOf(ok && !c.ordered() && (x == y) == (c == equal))
	}
	order, ok := compareNumbers(a, b)
	return truthOf(ok && c.holds(order))
}

func compareText(c comparison, x, y string) truth {
	if !c.ordered() {
		return truthOf((x == y) == (c == equal))
	}
	order, ok := compareNumbers(number(x), number(y)) // two properties that are text
	return truthOf(ok && c.holds(order))
}

// convert reads s as a value of the type of like, or returns nil.
func convert(s string, like any) any {
	if _, ok := like.(bool); !ok {
		return number(s)
	}
	switch {
	case strings.EqualFold(s, "true"):
		return true
	case strings.EqualFold(s, "false"):
		return false
	}
	return nil
}

// number reads a decimal number, as int64 if it is one, or returns nil.
func number(s string) any {
	if s == "" || strings.Trim(s, "+-.0123456789eE") != "" { // no hexadecimal, no Infinity, no underscores
		return nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f
	}
	return nil
}

// compareNumbers returns -1, 0 or 1; ok is false unless both are numbers.
func compareNumbers(a, b any) (order int, ok bool) {
	x, xok := a.(int64)
	y, yok := b.(int64)
	if xok && yok {
		switch {
		case x < y:
			return -1, true
		case x > y:
			return 1, true
		}
		return 0, true
	}
	f, fok := float(a)
	g, gok := float(b)
	switch {
	case !fok || !gok || f != f || g != g:
		return 0, false
	case f < g:
		return -1, true
	case f > g:
		return 1, true
	}
	return 0, true
}

func float(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
