// Package selector compiles message selectors: comparisons of a property with a value, joined by AND, a part of the
// syntax of Jakarta Messaging 3.1, section 3.8.1, enough for load tests:
//
//	color = 'red' AND size > 2.5 AND on <> TRUE
//
// Strings are also compared with a prefix: name LIKE 'prefix%'. A comparison of a missing property is false. Keywords
// are no properties, nor are JMS headers (names that begin with JMS, but not with JMSX or JMS_), except
// JMSCorrelationID, which requesters use to share a queue for replies: a filter of such a name would select nothing.
// Values of different types are not equal, with one exception: as the properties of STOMP and RocketMQ are strings, a
// numeric string is compared with numbers as a number.
package selector

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// maxText bounds a selector, in bytes.
const maxText = 1 << 16

// next matches the first comparison: property, operator, value, and AND unless it is the last.
var next = regexp.MustCompile(`^\s*([\pL_$][\pL\p{Nd}_$.]*)\s*(=|<>|<=|>=|<|>|(?i:LIKE)\b)\s*` +
	`('(?:[^']|'')*'|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:TRUE|FALSE))(?:\s+(?i:(AND))\s|\s*$)`)

var keyword = regexp.MustCompile(`(?i)^(?:NULL|TRUE|FALSE|NOT|AND|OR|BETWEEN|LIKE|IN|IS|ESCAPE)$`)

// comparison is a part of a selector.
type comparison struct {
	property string
	wanted   [3]bool // smaller, equal, larger
	value    any     // string, bool or float64
	prefix   bool    // value is one
}

// correlationID is the one header to select by.
const correlationID = "JMSCorrelationID"

// Parse compiles a selector. An empty text is no selector: nil and no error.
func Parse(text string) (store.Filter, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("invalid selector: it is longer than %d bytes", maxText)
	}
	var all []comparison
	for rest, more := text, true; more; {
		m := next.FindStringSubmatch(rest)
		if m == nil || keyword.MatchString(m[1]) {
			return nil, fmt.Errorf("invalid selector %.120q: this broker knows comparisons such as color = 'red', "+
				"joined by AND, and does not understand %.20q", text, strings.TrimSpace(rest))
		}
		c, err := compile(m[1], m[2], m[3])
		if err != nil {
			return nil, fmt.Errorf("invalid selector %.120q: %w", text, err)
		}
		all = append(all, c)
		rest, more = rest[len(m[0]):], m[4] != ""
	}
	return func(m *store.Message) bool {
		for i := range all {
			if !all[i].holds(m) {
				return false
			}
		}
		return true
	}, nil
}

// compile makes a comparison of its parts, as [next] finds them.
func compile(property, operator, value string) (comparison, error) {
	c := comparison{property: property}
	if header, ok := strings.CutPrefix(property, "JMS"); ok && !strings.HasPrefix(header, "X") &&
		!strings.HasPrefix(header, "_") && property != correlationID {
		return c, fmt.Errorf("%.40s is a header: only properties can be selected by", property)
	}
	switch value[0] {
	case '\'':
		c.value = strings.ReplaceAll(value[1:len(value)-1], "''", "'")
	case 't', 'T', 'f', 'F':
		c.value = strings.EqualFold(value, "TRUE")
	default:
		c.value, _ = strconv.ParseFloat(value, 64) // it has the form of a number
	}
	if text, _ := c.value.(string); strings.EqualFold(operator, "LIKE") {
		prefix, ok := strings.CutSuffix(text, "%")
		if c.prefix, c.value = true, prefix; !ok || strings.ContainsAny(prefix, "%_") {
			return c, errors.New("LIKE takes a prefix: name LIKE 'prefix%'")
		}
		operator = "="
	}
	if _, numeric := c.value.(float64); !numeric && operator != "=" && operator != "<>" {
		return c, errors.New("strings and truth values can be compared by = and <> only")
	}
	for i, sign := range []string{"<", "=", ">"} {
		c.wanted[i] = strings.Contains(operator, sign)
	}
	return c, nil
}

// holds reports whether the message has the property, with such a value.
func (c *comparison) holds(m *store.Message) bool {
	order, ok := 0, false
	var value any
	if c.property == correlationID {
		if id := m.Content.Addressing().CorrelationID; id != "" {
			value = id
		}
	} else {
		value = m.Content.Property(c.property)
	}
	switch want := c.value.(type) {
	case string:
		var s string
		s, ok = value.(string)
		if order = strings.Compare(s, want); c.prefix && strings.HasPrefix(s, want) {
			order = 0
		}
	case bool:
		var b bool
		if b, ok = value.(bool); b != want {
			order = 1
		}
	case float64:
		var n float64
		n, ok = number(value)
		order = cmp.Compare(n, want)
	}
	return ok && c.wanted[order+1]
}

// number returns a value as a number.
func number(value any) (n float64, ok bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case string:
		n, err := strconv.ParseFloat(v, 64)
		return n, err == nil
	}
	return 0, false
}
