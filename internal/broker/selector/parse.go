package selector

import (
	"strings"
)

// maxDepth bounds how deep conditions are nested.
const maxDepth = 200

// parser is a recursive-descent parser with one token of look-ahead.
type parser struct {
	lexer
	tok   token
	depth int
}

func parse(text string) (*node, error) {
	p := &parser{lexer: lexer{text: text}}
	if len(text) > maxText {
		return nil, p.fail(0, "longer than %d bytes", maxText)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != kindEnd {
		return nil, p.unexpected("AND, OR or the end")
	}
	return n, nil
}

func (p *parser) advance() (err error) {
	p.tok, err = p.next()
	return err
}

func (p *parser) unexpected(wanted string) error {
	if s := p.tok.text; p.tok.kind == kindSymbol && (s == "+" || s == "-") {
		return p.fail(p.tok.at, "arithmetic is not supported")
	}
	return p.fail(p.tok.at, "found %s where %s is expected", p.tok, wanted)
}

func (p *parser) is(keyword string) bool {
	return p.tok.kind == kindWord && strings.EqualFold(p.tok.text, keyword)
}

func (p *parser) isSymbol(s string) bool { return p.tok.kind == kindSymbol && p.tok.text == s }

// accept passes over a keyword if it is there.
func (p *parser) accept(keyword string) (bool, error) {
	if !p.is(keyword) {
		return false, nil
	}
	return true, p.advance()
}

// expect passes over a keyword or symbol that must be there.
func (p *parser) expect(what string) error {
	if !p.is(what) && !p.isSymbol(what) {
		return p.unexpected(what)
	}
	return p.advance()
}

func (p *parser) or() (*node, error) { return p.chain("OR", opOr, p.and) }

func (p *parser) and() (*node, error) { return p.chain("AND", opAnd, p.not) }

// chain reads conditions that the same keyword joins. The tree hangs to the left, so its depth is bounded as well.
func (p *parser) chain(keyword string, op operation, read func() (*node, error)) (*node, error) {
	left, err := read()
	for n := 0; err == nil && p.is(keyword); n++ {
		if n == maxDepth*10 {
			return nil, p.fail(p.tok.at, "more than %d conditions", maxDepth*10)
		}
		if err = p.advance(); err != nil {
			break
		}
		var right *node
		if right, err = read(); err == nil {
			left = &node{op: op, left: left, right: right}
		}
	}
	if err != nil {
		return nil, err
	}
	return left, nil
}

func (p *parser) not() (*node, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, p.fail(p.tok.at, "nested more than %d deep", maxDepth)
	}
	negated, err := p.accept("NOT")
	if err != nil {
		return nil, err
	}
	if !negated {
		return p.predicate()
	}
	n, err := p.not()
	if err != nil {
		return nil, err
	}
	return &node{op: opNot, left: n}, nil
}

// predicate reads an expression that is true or false of a message.
func (p *parser) predicate() (*node, error) {
	if p.isSymbol("(") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		return n, p.expect(")")
	}
	at := p.tok
	a, err := p.operand()
	if err != nil {
		return nil, err
	}
	n := &node{a: a}
	if p.tok.kind == kindSymbol {
		if c, ok := comparisonOf(p.tok.text); ok {
			return n, p.comparison(n, c)
		}
	}
	if yes, err := p.accept("IS"); yes || err != nil {
		return n, p.null(n, at, err)
	}
	if n.negated, err = p.accept("NOT"); err != nil {
		return nil, err
	}
	switch {
	case p.is("IN"):
		err = p.in(n, at)
	case p.is("LIKE"):
		err = p.like(n, at)
	case p.is("BETWEEN"):
		err = p.between(n)
	case n.negated:
		err = p.unexpected("IN, LIKE or BETWEEN")
	default:
		n.op = opValue
		if _, ok := a.literal.(bool); !ok && a.name == "" {
			err = p.fail(at.at, "%s is neither true nor false", at)
		}
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

func comparisonOf(s string) (comparison, bool) {
	switch s {
	case "=":
		return equal, true
	case "<>":
		return unequal, true
	case "<":
		return less, true
	case "<=":
		return lessOrEqual, true
	case ">":
		return greater, true
	case ">=":
		return greaterOrEqual, true
	}
	return 0, false
}

func (p *parser) comparison(n *node, c comparison) (err error) {
	at := p.tok
	if err := p.advance(); err != nil {
		return err
	}
	n.op, n.cmp = opCompare, c
	if n.b, err = p.operand(); err != nil {
		return err
	}
	for _, o := range []operand{n.a, n.b} {
		switch o.literal.(type) {
		case string, bool:
			if c.ordered() {
				return p.fail(at.at, "strings and truth values can be compared by = and <> only")
			}
		}
	}
	return nil
}

func (p *parser) null(n *node, of token, err error) error {
	if err != nil {
		return err
	}
	n.op = opNull
	if n.a.name == "" {
		return p.fail(of.at, "%s is not the name of a property", of)
	}
	if n.negated, err = p.accept("NOT"); err != nil {
		return err
	}
	return p.expect("NULL")
}

// operand reads a name or a literal.
func (p *parser) operand() (operand, error) {
	t := p.tok
	switch {
	case t.kind == kindLiteral:
		return operand{literal: t.literal}, p.advance()
	case t.kind == kindQuoted:
		return operand{name: t.text}, p.advance()
	case p.isSymbol("-"), p.isSymbol("+"):
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
			if v == 1<<63 { // the smallest int64
				o.literal = int64(-1 << 63)
			}
		}
	default:
		return o, p.unexpected("a number")
	}
	return o, p.advance()
}

func (p *parser) in(n *node, of token) error {
	n.op = opIn
	if n.a.name == "" {
		return p.fail(of.at, "%s is not the name of a property", of)
	}
	if err := p.advance(); err != nil {
		return err
	}
	if err := p.expect("("); err != nil {
		return err
	}
	for {
		t := p.tok
		o, err := p.operand()
		if err != nil {
			return err
		}
		if o.name != "" {
			return p.fail(t.at, "%s is not a value: IN takes strings and numbers", t)
		}
		n.list = append(n.list, o)
		if !p.isSymbol(",") {
			return p.expect(")")
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
}

func (p *parser) like(n *node, of token) (err error) {
	n.op = opLike
	if n.a.name == "" {
		return p.fail(of.at, "%s is not the name of a property", of)
	}
	if err := p.advance(); err != nil {
		return err
	}
	text, at, err := p.text("a pattern in single quotes")
	if err != nil {
		return err
	}
	escape := ""
	if yes, err := p.accept("ESCAPE"); err != nil {
		return err
	} else if yes {
		var where int
		if escape, where, err = p.text("a character in single quotes"); err != nil {
			return err
		}
		if len([]rune(escape)) != 1 {
			return p.fail(where, "ESCAPE takes one character")
		}
	}
	pattern, ok := newPattern(text, escape)
	if !ok {
		return p.fail(at, "the pattern ends with the character that escapes")
	}
	n.pattern = pattern
	return nil
}

// text reads a string literal.
func (p *parser) text(what string) (s string, at int, err error) {
	s, ok := p.tok.literal.(string)
	if !ok {
		return "", 0, p.unexpected(what)
	}
	at = p.tok.at
	return s, at, p.advance()
}

func (p *parser) between(n *node) (err error) {
	n.op = opBetween
	if err := p.advance(); err != nil {
		return err
	}
	at := p.tok
	if n.b, err = p.operand(); err != nil {
		return err
	}
	if err := p.expect("AND"); err != nil {
		return err
	}
	if n.c, err = p.operand(); err != nil {
		return err
	}
	for _, o := range []operand{n.a, n.b, n.c} {
		switch o.literal.(type) {
		case string, bool:
			return p.fail(at.at, "BETWEEN takes numbers")
		}
	}
	return nil
}
