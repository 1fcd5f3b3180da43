package selector

import (
	"fmt"
	"strings"
	"unicode"
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

// advance reads the next token.
func (l *lexer) advance() {
	rest := strings.TrimLeft(l.text[l.end:], " \t\r\n\f")
	t := token{at: len(l.text) - len(rest)}
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case rest == "":
		t.text = "the end"
	case r == '\'':
		if size = quotedSize(rest); size == 0 {
			l.fail(t.at, "the string that begins here has no end")
			return
		}
		t.kind, t.literal = kindLiteral, quoted(strings.ReplaceAll(rest[1:size-1], "''", "'"))
	case isDigit(r), r == '.' && len(rest) > 1 && isDigit(rune(rest[1])):
		size = numberSize(rest)
		t.kind, t.literal = kindLiteral, literalNumber(rest[:size])
		if t.literal == nil {
			l.fail(t.at, "%q is not a number", rest[:size])
			return
		}
	case startsName(r):
		t.kind = kindWord
		if size = strings.IndexFunc(rest, func(r rune) bool { return !continuesName(r) }); size < 0 {
			size = len(rest)
		}
	case strings.ContainsRune("<>=(),+-", r):
		t.kind = kindSymbol
		if two := rest[:min(2, len(rest))]; two == "<>" || two == "<=" || two == ">=" {
			size = 2
		}
	default:
		l.fail(t.at, "unexpected %q", rest[:size])
		return
	}
	if t.kind != kindEnd {
		t.text = rest[:size]
	}
	l.tok, l.end = t, t.at+size
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func startsName(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }

func continuesName(r rune) bool { return startsName(r) || r == '.' || unicode.IsDigit(r) }

// quotedSize returns the length of the string literal at the beginning of s, 0 if it has no end. A quote within it is
// doubled.
func quotedSize(s string) int {
	for i := 1; i < len(s); i++ {
		if s[i] != '\'' {
			continue
		}
		if !strings.HasPrefix(s[i+1:], "'") {
			return i + 1
		}
		i++
	}
	return 0
}

// numberSize returns the length of a possible number: 7, 7., .5, 7.5E-3, 7L.
func numberSize(s string) int {
	for i, r := range s {
		exponent := (r == '+' || r == '-') && strings.ContainsRune("eE", rune(s[i-1]))
		if !continuesName(r) && !exponent {
			return i
		}
	}
	return len(s)
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
