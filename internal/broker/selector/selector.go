// Package selector compiles message selectors: a part of the syntax of Jakarta Messaging 3.1, section 3.8.1, enough for
// load tests:
//
//	color = 'red' AND (size > 2.5 OR name LIKE 'a%') AND NOT kind = 'x'
//
// A test has a property of the message on its left and literals on its right. A missing property is unknown, and so is
// a test of it; AND, OR and NOT follow the truth tables of SQL. A filter selects a message if the whole expression is
// true. Keywords are no properties, nor are JMS headers (names that begin with JMS, but not with JMSX or JMS_): a
// filter of such a name would select nothing. Values of different types are not equal, with one exception: as the
// properties of STOMP and RocketMQ are strings, a numeric string is compared with numbers as a number.
package selector

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// The bounds of a selector.
const (
	maxText  = 1 << 16 // bytes
	maxDepth = 200     // of nested conditions
	// maxPattern bounds the pattern of a LIKE, in bytes: a compiled pattern takes a hundred times its memory, and a match
	// the product of both lengths in time.
	maxPattern = 1 << 10
)

// Parse compiles a selector. An empty text is no selector: nil and no error.
func Parse(text string) (store.Filter, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	p := parser{rest: text}
	if len(text) > maxText {
		p.fail("longer than %d bytes", maxText)
	}
	p.advance()
	wants := p.or()
	if p.kind != end {
		p.unexpected("AND, OR or the end")
	}
	if p.err != nil {
		return nil, fmt.Errorf("invalid selector %.120q: %w", text, p.err)
	}
	return func(m *store.Message) bool { return wants(m) == yes }, nil
}

// truth is a value of three-valued logic: AND is the least, OR the greatest of its operands.
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

// condition is a compiled part of a selector.
type condition func(*store.Message) truth

func negate(c condition) condition {
	return func(m *store.Message) truth { return yes - c(m) }
}

// The kinds of tokens, which are the groups of tokens but for the end.
const (
	end     = iota
	text    // a string in single quotes, which are doubled within it
	number  //
	name    // or a keyword
	special // an operator, a bracket, a comma
)

var tokens = regexp.MustCompile(`^(?:('(?:[^']|'')*')|([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|` +
	`([\pL_$][\pL\p{Nd}_$.]*)|(<>|<=|>=|[<>=(),]))`)

var keywords = regexp.MustCompile(`(?i)^(?:NULL|TRUE|FALSE|NOT|AND|OR|BETWEEN|LIKE|IN|IS|ESCAPE)$`)

// parser is a recursive-descent parser with one token of look-ahead. A mistake moves it to the end of the text, so that
// all methods return.
type parser struct {
	rest  string
	token string
	kind  int
	depth int
	err   error // the first mistake
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.rest, p.token, p.kind = "", "the end", end
}

func (p *parser) unexpected(wanted string) { p.fail("found %s where %s is expected", p.token, wanted) }

// advance reads the next token.
func (p *parser) advance() {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n\f")
	m := tokens.FindStringSubmatch(p.rest)
	if m == nil {
		if p.token, p.kind = "the end", end; p.rest != "" {
			p.fail("unexpected %.20q", p.rest)
		}
		return
	}
	p.token, p.rest = m[0], p.rest[len(m[0]):]
	for p.kind = text; m[p.kind] == ""; {
		p.kind++
	}
}

// accept skips an optional keyword or symbol.
func (p *parser) accept(what string) bool {
	found := (p.kind == name || p.kind == special) && strings.EqualFold(p.token, what)
	if found {
		p.advance()
	}
	return found
}

// expect skips a required keyword or symbol.
func (p *parser) expect(what string) {
	if !p.accept(what) {
		p.unexpected(what)
	}
}

func (p *parser) or() condition {
	left := p.and()
	for p.accept("OR") {
		first, second := left, p.and()
		left = func(m *store.Message) truth { return max(first(m), second(m)) }
	}
	return left
}

func (p *parser) and() condition {
	left := p.not()
	for p.accept("AND") {
		first, second := left, p.not()
		left = func(m *store.Message) truth { return min(first(m), second(m)) }
	}
	return left
}

func (p *parser) not() (c condition) {
	p.depth++
	defer func() { p.depth-- }()
	switch {
	case p.depth > maxDepth:
		p.fail("nested more than %d deep", maxDepth)
	case p.accept("NOT"):
		return negate(p.not())
	case p.accept("("):
		c = p.or()
		p.expect(")")
		return c
	}
	return p.test()
}

// test parses the test of a property.
func (p *parser) test() condition {
	key := p.token
	header, ok := strings.CutPrefix(key, "JMS")
	switch {
	case p.kind != name || keywords.MatchString(key):
		p.unexpected("a property")
	case ok && !strings.HasPrefix(header, "X") && !strings.HasPrefix(header, "_"):
		p.fail("%.40s is a header: only properties can be selected by", key)
	}
	p.advance()
	negated := p.accept("NOT")
	var test func(value any) bool
	switch {
	case p.accept("LIKE"):
		test = p.like()
	case negated:
		p.unexpected("LIKE")
	default:
		test = p.comparison()
	}
	c := func(m *store.Message) truth {
		value := m.Content.Property(key)
		if value == nil {
			return unknown
		}
		return truthOf(test(value))
	}
	if negated {
		return negate(c)
	}
	return c
}

// literal parses a string, a number, TRUE or FALSE.
func (p *parser) literal() (v any) {
	switch {
	case p.kind == text:
		v = strings.ReplaceAll(p.token[1:len(p.token)-1], "''", "'")
	case p.kind == number:
		v, _ = strconv.ParseFloat(p.token, 64) // the token has the form of a number
	case p.kind == name && (strings.EqualFold(p.token, "TRUE") || strings.EqualFold(p.token, "FALSE")):
		v = strings.EqualFold(p.token, "TRUE")
	default:
		p.unexpected("a value")
	}
	p.advance()
	return v
}

// compare returns the order of a property and a literal, -1, 0 or 1; ok is false for types that do not compare.
func compare(value, literal any) (order int, ok bool) {
	switch want := literal.(type) {
	case string:
		s, ok := value.(string)
		return strings.Compare(s, want), ok
	case bool:
		b, ok := value.(bool)
		return cmp.Compare(truthOf(b), truthOf(want)), ok
	case float64:
		switch v := value.(type) {
		case int64:
			return cmp.Compare(float64(v), want), true
		case float64:
			return cmp.Compare(v, want), true
		case string:
			n, err := strconv.ParseFloat(v, 64)
			return cmp.Compare(n, want), err == nil
		}
	}
	return 0, false
}

func (p *parser) comparison() func(any) bool {
	operator := p.token
	if p.kind != special || !strings.ContainsAny(operator, "<=>") {
		p.unexpected("a comparison or LIKE")
	}
	p.advance()
	literal := p.literal()
	if _, numeric := literal.(float64); !numeric && operator != "=" && operator != "<>" {
		p.fail("strings and truth values can be compared by = and <> only")
	}
	var wanted [3]bool // smaller, equal, larger
	for i, sign := range []string{"<", "=", ">"} {
		wanted[i] = strings.Contains(operator, sign)
	}
	return func(value any) bool {
		order, ok := compare(value, literal)
		return ok && wanted[order+1]
	}
}

// like parses a pattern: _ stands for one character, % for any number of them.
func (p *parser) like() func(any) bool {
	pattern, ok := p.literal().(string)
	switch {
	case !ok:
		p.fail("LIKE takes a pattern in single quotes")
	case len(pattern) > maxPattern:
		p.fail("the pattern is longer than %d bytes", maxPattern)
		pattern = ""
	}
	expression := strings.NewReplacer("_", ".", "%", ".*").Replace(regexp.QuoteMeta(pattern))
	like, err := regexp.Compile("(?s)^" + expression + "$")
	if err != nil {
		p.fail("the pattern cannot be read: %w", err)
	}
	return func(value any) bool {
		s, ok := value.(string)
		return ok && like.MatchString(s)
	}
}
