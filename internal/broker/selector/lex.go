package selector

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	maxQuoted = 120
	maxText   = 1 << 16
)

type kind uint8

const (
	kindEnd     kind = iota
	kindWord         // a name or a keyword
	kindLiteral      // a string or a number
	kindSymbol       // an operator, a bracket, a comma
)

type token struct {
	kind    kind
	at      int // offset
	text    string
	literal any
}

// lexer cuts the text into tokens.
type lexer struct {
	text string
	tok  token // the next token
	end  int   // its end
	err  error // the first mistake
}

// fail records the first mistake. The column counts from 1.
func (l *lexer) fail(at int, format string, args ...any) {
	if l.err != nil {
		return
	}
	text := l.text
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "..."
	}
	column := utf8.RuneCountInString(l.text[:at]) + 1
	l.err = fmt.Errorf("invalid selector %q: column %d: %s", text, column, fmt.Sprintf(format, args...))
	l.tok, l.end = token{at: len(l.text), text: "the end"}, len(l.text)
}

// tokens matches one token after spaces: a string, whose quotes are doubled within it, a number, a name or a symbol.
var tokens = regexp.MustCompile(`^[ \t\r\n\f]*(?:('(?:[^']|'')*')|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[lLfFdD]?)|` +
	`([\pL_$][\pL\p{Nd}_$.]*)|(<>|<=|>=|[<>=(),+-]))`)

// advance reads the next token.
func (l *lexer) advance() {
	rest := l.text[l.end:]
	m := tokens.FindStringSubmatchIndex(rest)
	if m == nil {
		rest = strings.TrimLeft(rest, " \t\r\n\f")
		l.tok, l.end = token{at: len(l.text) - len(rest), text: "the end"}, len(l.text)
		if _, size := utf8.DecodeRuneInString(rest); size > 0 {
			l.fail(l.tok.at, "unexpected %q", rest[:size])
		}
		return
	}
	group := 1
	for m[2*group] < 0 {
		group++
	}
	t := token{at: l.end + m[2*group], text: rest[m[2*group]:m[1]], kind: kindLiteral}
	switch group {
	case 1:
		t.literal = quoted(strings.ReplaceAll(t.text[1:len(t.text)-1], "''", "'"))
	case 2:
		if t.literal = literalNumber(t.text); t.literal == nil {
			l.fail(t.at, "%q is not a number", t.text)
			return
		}
	case 3:
		t.kind = kindWord
	default:
		t.kind = kindSymbol
	}
	l.tok, l.end = t, l.end+m[1]
}

// literalNumber parses a number in Java's syntax, or returns nil.
func literalNumber(s string) any {
	n := numberOf(strings.TrimRight(s, "lLfFdD"))
	switch {
	case !n.ok:
		return nil
	case n.whole:
		return n.int
	}
	return n.float
}
