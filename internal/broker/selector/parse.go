package selector

import (
	"strings"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// maxDepth bounds how deep conditions are nested.
const maxDepth = 200

// parser is a recursive-descent parser with one token of look-ahead.
type parser struct {
	lexer
	depth int
}

func parse(text string) (condition, error) {
	p := &parser{lexer: lexer{text: text}}
	if len(text) > maxText {
		return nil, p.fail(0, "longer than %d bytes", maxText)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	c, err := p.or()
	if err == nil && p.tok.kind != kindEnd {
		err = p.unexpected("AND, OR or the end")
	}
	return c, err
}

func (p *parser) unexpected(wanted string) error {
	if s := p.tok.text; s == "+" || s == "-" {
		return p.fail(p.tok.at, "arithmetic is not supported")
	}
	return p.fail(p.tok.at, "found %s where %s is expected", p.tok.text, wanted)
}

// is tells whether the next token is that keyword or symbol.
func (p *parser) is(what string) bool {
	return p.tok.kind != kindLiteral && strings.EqualFold(p.tok.text, what)
}

// accept passes over a keyword or symbol if it is there.
func (p *parser) accept(what string) (bool, error) {
	if !p.is(what) {
		return false, nil
	}
	return true, p.advance()
}

// expect passes over a keyword or symbol that must be there.
func (p *parser) expect(what string) error {
	if !p.is(what) {
		return p.unexpected(what)
	}
	return p.advance()
}

func (p *parser) or() (condition, error) { return p.chain("OR", yes, p.and) }

func (p *parser) and() (condition, error) { return p.chain("AND", no, p.not) }

// chain reads conditions that the same keyword joins: the first one that is decisive ends them.
func (p *parser) chain(keyword string, decisive truth, read func() (condition, error)) (condition, error) {
	first, err := read()
	if err != nil || !p.is(keyword) {
		return first, err
	}
	list := []condition{first}
	for p.is(keyword) {
		if err := p.advance(); err != nil {
			return nil, err
		}
		c, err := read()
		if err != nil {
			return nil, err
		}
		list = append(list, c)
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
	}, nil
}

func (p *parser) not() (condition, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, p.fail(p.tok.at, "nested more than %d deep", maxDepth)
	}
	negated, err := p.accept("NOT")
	switch {
	case err != nil:
		return nil, err
	case !negated:
		return p.predicate()
	}
	c, err := p.not()
	return negate(c), err
}

func negate(c condition) condition {
	return func(m *store.Message) truth { return c(m).not() }
}

// predicate reads an expression that is true or false of a message.
func (p *parser) predicate() (condition, error) {
	if p.is("(") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		c, err := p.or()
		if err != nil {
			return nil, err
		}
		return c, p.expect(")")
	}
	at := p.tok
	a, err := p.operand()
	if err != nil {
		return nil, err
	}
	if c, ok := comparisonOf(p.tok.text); ok && p.tok.kind == kindSymbol {
		return p.comparison(a, c)
	}
	if yes, err := p.accept("IS"); yes || err != nil {
		return p.null(a, err)
	}
	negated, err := p.accept("NOT")
	if err != nil {
		return nil, err
	}
	var read func(operand) (condition, error)
	switch {
	case p.is("IN"):
		read = p.in
	case p.is("LIKE"):
		read = p.like
	case p.is("BETWEEN"):
		read = p.between
	case negated:
		return nil, p.unexpected("IN, LIKE or BETWEEN")
	default:
		if _, ok := a.literal.(bool); !ok && a.name == "" {
			return nil, p.fail(at.at, "%s is neither true nor false", at.text)
		}
		return func(m *store.Message) truth { return compare(comparison{1: true}, a.value(m), true) }, nil
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	c, err := read(a)
	if negated {
		c = negate(c)
	}
	return c, err
}

func (p *parser) comparison(a operand, c comparison) (condition, error) {
	at := p.tok.at
	if err := p.advance(); err != nil {
		return nil, err
	}
	b, err := p.operand()
	if err != nil {
		return nil, err
	}
	if c.ordered() && (a.unordered() || b.unordered()) {
		return nil, p.fail(at, "strings and truth values can be compared by = and <> only")
	}
	return func(m *store.Message) truth { return compare(c, a.value(m), b.value(m)) }, nil
}

func (p *parser) null(a operand, err error) (condition, error) {
	if err != nil {
		return nil, err
	}
	negated, err := p.accept("NOT")
	if err != nil {
		return nil, err
	}
	return func(m *store.Message) truth { return truthOf((a.value(m) == nil) != negated) }, p.expect("NULL")
}

// operand reads a name or a literal.
func (p *parser) operand() (operand, error) {
	t := p.tok
	switch {
	case t.kind == kindLiteral:
		return operand{literal: t.literal}, p.advance()
	case p.is("-"), p.is("+"):
		return p.signed(t.text == "-")
	case p.is("TRUE"), p.is("FALSE"):
		return operand{literal: p.is("TRUE")}, p.advance()
	case t.kind != kindWord:
		return operand{}, p.unexpected("a name or a value")
	}
	switch strings.ToUpper(t.text) {
	case "AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "ESCAPE":
		return operand{}, p.unexpected("a name or a value")
	}
	switch t.text {
	case "JMSDestination", "JMSReplyTo", "JMSRedelivered", "JMSExpiration":
		return operand{}, p.fail(t.at, "%s cannot be used in selectors", t.text)
	}
	return operand{name: t.text}, p.advance()
}

func (p *parser) signed(negative bool) (operand, error) {
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	o := operand{literal: p.tok.literal}
	switch v := o.literal.(type) {
	case int64:
		if negative {
			o.literal = -v
		}
	case float64:
		if negative {
			o.literal = -v
		}
	default:
		return o, p.unexpected("a number")
	}
	return o, p.advance()
}

func (p *parser) in(a operand) (condition, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var list []any
	for {
		o, err := p.operand()
		if err != nil {
			return nil, err
		}
		if o.name != "" {
			return nil, p.fail(p.tok.at, "IN takes strings and numbers")
		}
		list = append(list, o.literal)
		if !p.is(",") {
			break
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
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
	}, p.expect(")")
}

func (p *parser) like(a operand) (condition, error) {
	text, at, err := p.text("a pattern in single quotes")
	if err != nil {
		return nil, err
	}
	escape := ""
	if p.is("ESCAPE") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		var where int
		if escape, where, err = p.text("a character in single quotes"); err != nil {
			return nil, err
		}
		if len([]rune(escape)) != 1 {
			return nil, p.fail(where, "ESCAPE takes one character")
		}
	}
	pattern, ok := newPattern(text, escape)
	if !ok {
		return nil, p.fail(at, "the pattern ends with the character that escapes")
	}
	return func(m *store.Message) truth {
		switch v := a.value(m).(type) {
		case nil:
			return unknown
		case string:
			return truthOf(pattern.matches(v))
		}
		return no
	}, nil
}

// text reads a string literal.
func (p *parser) text(what string) (s string, at int, err error) {
	q, ok := p.tok.literal.(quoted)
	if !ok {
		return "", 0, p.unexpected(what)
	}
	at = p.tok.at
	return string(q), at, p.advance()
}

func (p *parser) between(a operand) (condition, error) {
	at := p.tok.at
	low, err := p.operand()
	if err != nil {
		return nil, err
	}
	if err := p.expect("AND"); err != nil {
		return nil, err
	}
	high, err := p.operand()
	if err != nil {
		return nil, err
	}
	if a.unordered() || low.unordered() || high.unordered() {
		return nil, p.fail(at, "BETWEEN takes numbers")
	}
	least, most := comparison{1: true, 2: true}, comparison{0: true, 1: true}
	return func(m *store.Message) truth {
		v := a.value(m)
		return min(compare(least, v, low.value(m)), compare(most, v, high.value(m)))
	}, nil
}
