package selector

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// maxDepth bounds the nesting of conditions.
const maxDepth = 200

// parser is a recursive-descent parser with one token of look-ahead. A mistake moves it to the end of the text, so that
// all methods return.
type parser struct {
	lexer
	depth int
}

func parse(text string) (condition, error) {
	p := &parser{lexer: lexer{text: text}}
	if len(text) > maxText {
		p.fail(0, "longer than %d bytes", maxText)
	}
	p.advance()
	c := p.or()
	if p.tok.kind != kindEnd {
		p.unexpected("AND, OR or the end")
	}
	return c, p.err
}

func (p *parser) unexpected(wanted string) {
	if s := p.tok.text; s == "+" || s == "-" {
		p.fail(p.tok.at, "arithmetic is not supported")
	}
	p.fail(p.tok.at, "found %s where %s is expected", p.tok.text, wanted)
}

// is reports whether the next token is a keyword or symbol.
func (p *parser) is(what string) bool {
	return p.tok.kind != kindLiteral && strings.EqualFold(p.tok.text, what)
}

// accept skips an optional keyword or symbol.
func (p *parser) accept(what string) bool {
	found := p.is(what)
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

func (p *parser) or() condition { return p.chain("OR", yes, p.and) }

func (p *parser) and() condition { return p.chain("AND", no, p.not) }

// chain parses conditions joined by a keyword; a decisive one ends their evaluation.
func (p *parser) chain(keyword string, decisive truth, read func() condition) condition {
	list := []condition{read()}
	for p.accept(keyword) {
		list = append(list, read())
	}
	if len(list) == 1 {
		return list[0]
	}
	return func(m *store.Message) truth {
		result := decisive.not()
		for _, c := range list {
			switch c(m) {
			case decisive:
				return decisive
			case unknown:
				result = unknown
			}
		}
		return result
	}
}

func (p *parser) not() condition {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		p.fail(p.tok.at, "nested more than %d deep", maxDepth)
	}
	if p.accept("NOT") {
		return negate(p.not())
	}
	return p.predicate()
}

func negate(c condition) condition {
	return func(m *store.Message) truth { return c(m).not() }
}

// predicate parses a comparison, a test, a boolean or an expression in brackets.
func (p *parser) predicate() (c condition) {
	if p.accept("(") {
		c = p.or()
		p.expect(")")
		return c
	}
	at := p.tok
	a := p.operand()
	if p.tok.kind == kindSymbol && strings.ContainsAny(p.tok.text, "<=>") {
		return p.comparison(a)
	}
	if p.accept("IS") {
		negated := p.accept("NOT")
		p.expect("NULL")
		return func(m *store.Message) truth { return truthOf((a.value(m) == nil) != negated) }
	}
	negated := p.accept("NOT")
	switch {
	case p.accept("IN"):
		c = p.in(a)
	case p.accept("LIKE"):
		c = p.like(a)
	case p.accept("BETWEEN"):
		c = p.between(a)
	case negated:
		p.unexpected("IN, LIKE or BETWEEN")
	default:
		if _, ok := a.literal.(bool); !ok && a.name == "" {
			p.fail(at.at, "%s is neither true nor false", at.text)
		}
		return func(m *store.Message) truth { return compare(comparison{1: true}, a.value(m), true) }
	}
	if negated {
		return negate(c)
	}
	return c
}

func (p *parser) comparison(a operand) condition {
	at, c := p.tok.at, comparisonOf(p.tok.text)
	p.advance()
	b := p.operand()
	if c.ordered() && (a.unordered() || b.unordered()) {
		p.fail(at, "strings and truth values can be compared by = and <> only")
	}
	return func(m *store.Message) truth { return compare(c, a.value(m), b.value(m)) }
}

// operand parses a name or a literal.
func (p *parser) operand() (o operand) {
	t := p.tok
	switch {
	case t.kind == kindLiteral:
		o.literal = t.literal
	case p.accept("-"):
		switch v := p.tok.literal.(type) {
		case int64:
			o.literal = -v
		case float64:
			o.literal = -v
		default:
			p.unexpected("a number")
		}
	case p.accept("+"):
		if o.literal = p.tok.literal; !numberOf(o.literal).ok {
			p.unexpected("a number")
		}
	case p.is("TRUE"), p.is("FALSE"):
		o.literal = p.is("TRUE")
	case t.kind != kindWord, slices.Contains(keywords(), strings.ToUpper(t.text)):
		p.unexpected("a name or a value")
	default:
		if o.name = t.text; slices.Contains(reserved(), o.name) {
			p.fail(t.at, "%s cannot be used in selectors", o.name)
		}
	}
	p.advance()
	return o
}

func keywords() []string {
	return []string{"AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "ESCAPE"}
}

func reserved() []string {
	return []string{"JMSDestination", "JMSReplyTo", "JMSRedelivered", "JMSExpiration"}
}

func (p *parser) in(a operand) condition {
	p.expect("(")
	var list []any
	for more := true; more; more = p.accept(",") {
		o := p.operand()
		if o.name != "" {
			p.fail(p.tok.at, "IN takes strings and numbers")
		}
		list = append(list, o.literal)
	}
	p.expect(")")
	return func(m *store.Message) truth {
		v := a.value(m)
		if v == nil {
			return unknown
		}
		for _, literal := range list {
			if compare(comparison{1: true}, v, literal) == yes {
				return yes
			}
		}
		return no
	}
}

func (p *parser) like(a operand) condition {
	at := p.tok.at
	text, escape := p.text("a pattern in single quotes"), ""
	if p.accept("ESCAPE") {
		where := p.tok.at
		if escape = p.text("a character in single quotes"); utf8.RuneCountInString(escape) != 1 {
			p.fail(where, "ESCAPE takes one character")
		}
	}
	like, err := pattern(text, escape)
	if err != nil {
		p.fail(at, "%v", err)
	}
	return func(m *store.Message) truth {
		switch v := a.value(m).(type) {
		case nil:
			return unknown
		case string:
			return truthOf(like.MatchString(v))
		}
		return no
	}
}

// maxPattern bounds the pattern of a LIKE, in bytes: a compiled pattern takes a hundred times its memory, and a match
// the product of both lengths in time.
const maxPattern = 1 << 10

// pattern compiles the pattern of a LIKE; escape is the character before a literal _ or %, or empty.
func pattern(text, escape string) (*regexp.Regexp, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", maxPattern)
	}
	expression := []byte(`(?s)^`)
	escaped := false
	for _, r := range text {
		switch {
		case !escaped && string(r) == escape:
			escaped = true
			continue
		case !escaped && r == '_':
			expression = append(expression, '.')
		case !escaped && r == '%':
			expression = append(expression, ".*"...)
		default:
			expression = append(expression, regexp.QuoteMeta(string(r))...)
		}
		escaped = false
	}
	if escaped {
		return nil, errors.New("the pattern ends with the character that escapes")
	}
	return regexp.Compile(string(append(expression, '$')))
}

// text parses a string literal.
func (p *parser) text(what string) string {
	q, ok := p.tok.literal.(quoted)
	if !ok {
		p.unexpected(what)
	}
	p.advance()
	return string(q)
}

func (p *parser) between(a operand) condition {
	at := p.tok.at
	low := p.operand()
	p.expect("AND")
	high := p.operand()
	if a.unordered() || low.unordered() || high.unordered() {
		p.fail(at, "BETWEEN takes numbers")
	}
	least, most := comparison{1: true, 2: true}, comparison{0: true, 1: true}
	return func(m *store.Message) truth {
		v := a.value(m)
		return min(compare(least, v, low.value(m)), compare(most, v, high.value(m)))
	}
}
