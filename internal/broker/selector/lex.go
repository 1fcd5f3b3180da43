package selector

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is a mistake in a selector.
type Error struct {
	Text   string // the selector
	Offset int    // of the byte where the mistake is
	Reason string
}

// Error implements error. The column counts from 1.
func (e *Error) Error() string {
	text := e.Text
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "..."
	}
	return fmt.Sprintf("invalid selector %q: column %d: %s", text, utf8.RuneCountInString(e.Text[:e.Offset])+1, e.Reason)
}

const (
	maxQuoted = 120
	maxText   = 1 << 16
)

// kind is the kind of a token.
type kind uint8

const (
	kindEnd     kind = iota
	kindWord         // a name, or a keyword
	kindQuoted       // a name in double quotes
	kindLiteral      // a string or a number
	kindSymbol       // an operator, a bracket, a comma
)

// token is a piece of the text.
type token struct {
	kind    kind
	at      int    // offset
	text    string // as written; of a quoted name the part between the quotes
	literal any
}

func (t token) String() string {
	if t.kind == kindEnd {
		return "the end"
	}
	return strconv.Quote(t.text)
}

// lexer cuts the text into tokens.
type lexer struct {
	text string
	pos  int
}

func (l *lexer) fail(at int, format string, args ...any) error {
	return &Error{Text: l.text, Offset: min(at, len(l.text)), Reason: fmt.Sprintf(format, args...)}
}

func (l *lexer) next() (token, error) {
	for l.pos < len(l.text) && strings.IndexByte(" \t\r\n\f", l.text[l.pos]) >= 0 {
		l.pos++
	}
	t := token{at: l.pos}
	if l.pos == len(l.text) {
		return t, nil
	}
	rest := l.text[l.pos:]
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case r == '\'' || r == '"':
		return l.quoted(byte(r))
	case isDigit(rest[0]), rest[0] == '.' && len(rest) > 1 && isDigit(rest[1]):
		return l.number()
	case startsName(r) && (r != utf8.RuneError || size > 1):
		t.kind = kindWord
		end := strings.IndexFunc(rest, func(r rune) bool { return !continuesName(r) })
		if end < 0 {
			end = len(rest)
		}
		t.text = rest[:end]
	default:
		t.kind = kindSymbol
		t.text = rest[:size]
		for _, s := range []string{"<>", "<=", ">="} {
			if strings.HasPrefix(rest, s) {
				t.text = s
			}
		}
		if !strings.Contains("<>=(),+-", t.text) && len(t.text) == 1 || len(t.text) > 2 {
			return t, l.fail(l.pos, "unexpected %q", t.text)
		}
	}
	l.pos += len(t.text)
	return t, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func startsName(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }

func continuesName(r rune) bool { return startsName(r) || r == '.' || unicode.IsDigit(r) }

// quoted reads up to the quote that ends it; a quote within is written twice.
func (l *lexer) quoted(quote byte) (token, error) {
	t := token{kind: kindQuoted, at: l.pos}
	what := "the name"
	if quote == '\'' {
		t.kind, what = kindLiteral, "the string"
	}
	var b strings.Builder
	for pos := l.pos + 1; pos < len(l.text); pos++ {
		c := l.text[pos]
		if c != quote {
			b.WriteByte(c)
			continue
		}
		if pos+1 < len(l.text) && l.text[pos+1] == quote {
			b.WriteByte(c)
			pos++
			continue
		}
		l.pos = pos + 1
		t.text = b.String()
		if quote == '\'' {
			t.literal = t.text
		} else if t.text == "" {
			return t, l.fail(t.at, "the name is empty")
		}
		return t, nil
	}
	return t, l.fail(t.at, "%s that begins here has no end", what)
}

// number reads 7, 7., .5, 7.5E3 and the like; Java's L, F and D may follow.
func (l *lexer) number() (token, error) {
	t := token{kind: kindLiteral, at: l.pos}
	end := l.pos
	for end < len(l.text) {
		c := l.text[end]
		exponent := (c == '+' || c == '-') && end > l.pos && (l.text[end-1] == 'e' || l.text[end-1] == 'E')
		if !isDigit(c) && c != '.' && c != 'e' && c != 'E' && !exponent {
			break
		}
		end++
	}
	t.text = l.text[l.pos:end]
	if t.literal = number(t.text); t.literal == nil {
		return t, l.fail(t.at, "%q is not a number", t.text)
	}
	if end < len(l.text) {
		switch l.text[end] {
		case 'l', 'L':
			end++
		case 'f', 'F', 'd', 'D':
			t.literal, _ = float(t.literal)
			end++
		}
	}
	if r, _ := utf8.DecodeRuneInString(l.text[end:]); end < len(l.text) && continuesName(r) {
		return t, l.fail(t.at, "%q is not a number", l.text[t.at:end]+string(r))
	}
	l.pos = end
	return t, nil
}
