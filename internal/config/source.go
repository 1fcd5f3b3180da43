package config

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/safetext"
)

// MaxSize limits a scenario file, in bytes.
const MaxSize = 1 << 20

// Pos is a place in a file. Line and Column count from 1; Column counts characters.
type Pos struct {
	File   string
	Line   int
	Column int
}

// Mistake is something that a file cannot be used with. It holds no secret and nothing that steers a terminal.
type Mistake struct {
	Pos  Pos
	Text string
	Hint string // the suggestion, "" if there is none
	Line string // the line; empty until the secrets of the file are known

	marked bool // a caret below the line shows the place
}

// Mistakes are all mistakes of a file.
type Mistakes []Mistake

const (
	// maxPrinted limits the output for one file.
	maxPrinted = 30
	// maxMistakes limits the work on a file that has nothing but mistakes. Further ones are not counted.
	maxMistakes = 200
)

// Error returns the mistakes, each with its position, its line and a suggestion.
func (m Mistakes) Error() string {
	var b strings.Builder
	for i := range m {
		if i == maxPrinted {
			fmt.Fprintf(&b, "and %d more\n", len(m)-i)
			break
		}
		b.WriteString(m[i].String())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// String returns the mistake in up to four lines, each with its end.
func (m *Mistake) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: %s\n", safetext.Line(m.Pos.File), m.Pos.Line, m.Pos.Column, m.Text)
	if m.Line != "" {
		fmt.Fprintf(&b, "%5d | %s\n", m.Pos.Line, m.Line)
	}
	if m.marked {
		fmt.Fprintf(&b, "%5s | %*s\n", "", m.Pos.Column, "^")
	}
	if m.Hint != "" {
		fmt.Fprintf(&b, "  hint: %s\n", m.Hint)
	}
	return b.String()
}

// source is the text of a file, by lines, and its secrets.
type source struct {
	path    string
	text    []byte // without byte order mark
	lines   []string
	lengths []int // of the lines, in characters
	secrets safetext.Secrets
	found   []string // the secrets of the tree
	learned bool     // secrets has all of them: lines may be shown
}

// newSource takes a file into lines, or says why it is no text.
func newSource(path string, text []byte) (*source, []Mistake) {
	s := &source{path: path}
	if len(text) > MaxSize {
		return s, []Mistake{s.mistake(1, 1, "split it into several scenarios", "the file is larger than %d bytes", MaxSize)}
	}
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return s, []Mistake{s.mistake(1, 1, "save the file as UTF-8", "the file is UTF-16, not UTF-8")}
	}
	s.text = bytes.TrimPrefix(text, []byte("\ufeff"))
	s.lines = strings.Split(string(s.text), "\n")
	if last := len(s.lines) - 1; last > 0 && s.lines[last] == "" {
		s.lines = s.lines[:last]
	}
	var mistakes []Mistake
	for i := range s.lines {
		s.lines[i] = strings.TrimSuffix(s.lines[i], "\r")
		s.lengths = append(s.lengths, utf8.RuneCountInString(s.lines[i]))
		column, hint, text := unreadable(s.lines[i])
		if column > 0 && len(mistakes) < maxMistakes {
			mistakes = append(mistakes, s.mistake(i+1, column, hint, "%s", text))
		}
	}
	return s, mistakes
}

// unreadable finds a character that YAML or a terminal could take for something else. Column is 0 if there is none.
func unreadable(line string) (column int, hint, text string) {
	for i, r := range line {
		switch {
		case r == utf8.RuneError && strings.HasPrefix(line[i:], "\ufffd"):
		case r == utf8.RuneError:
			return utf8.RuneCountInString(line[:i]) + 1, "save the file as UTF-8", fmt.Sprintf("the byte 0x%02x is not UTF-8",
				line[i])
		case r == '\t':
		case unicode.IsControl(r), r == '\u2028', r == '\u2029', r == '\ufeff':
			return utf8.RuneCountInString(line[:i]) + 1, "remove it; a text in double quotes may have escapes such as \\n",
				fmt.Sprintf("the character %U is not allowed", r)
		}
	}
	return 0, "", ""
}

func (s *source) mistake(line, column int, hint, format string, args ...any) Mistake {
	return Mistake{Pos: s.pos(line, column), Text: fmt.Sprintf(format, args...), Hint: hint}
}

// pos returns a position within the file, also for an end that a parser sees behind it.
func (s *source) pos(line, column int) Pos {
	last := len(s.lines)
	if last == 0 || line < 1 {
		return Pos{s.path, 1, 1}
	}
	end := s.lengths[min(line, last)-1] + 1
	if line > last {
		return Pos{s.path, last, end}
	}
	return Pos{s.path, line, max(1, min(column, end))}
}

// line returns a line by its number.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	return s.lines[n-1]
}

// all sorts and finishes mistakes. Equal ones at one place, such as those of an anchor with two aliases, become one.
func (s *source) all(list []Mistake) Mistakes {
	slices.SortStableFunc(list, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	list = slices.CompactFunc(list, func(a, b Mistake) bool { return a.Pos == b.Pos && a.Text == b.Text })
	for i := range list {
		list[i] = s.finish(list[i])
	}
	return list
}

// maxShown is the length of a line, in characters, up to which it is shown.
const maxShown = 200

// finish adds the line to a mistake, and hides secrets and control characters.
func (s *source) finish(m Mistake) Mistake {
	m.Text, m.Hint = s.secrets.Line(m.Text), s.secrets.Line(m.Hint)
	line := strings.TrimRight(s.line(m.Pos.Line), " \t")
	if !s.learned || m.Line != "" || utf8.RuneCountInString(line) > maxShown {
		return m
	}
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	m.Line = strings.ReplaceAll(line[:indent], "\t", " ") + s.secrets.Line(line[indent:])
	m.marked = line != "" && m.Line[indent:] == line[indent:] // else the column is another one
	return m
}

const (
	maxSecrets = 50   // in a file; to find them in a text takes as long as there are many
	maxSecret  = 1024 // bytes of one
)

// learner collects the secrets of a tree.
type learner struct {
	keys *keys
	vars map[string]*variable
	seen map[string]bool
	long bool
}

// learn makes secrets of the values of secret keys, of the variables in them, and of the passwords in URLs. It returns
// a mistake if these are too many to be kept out of messages.
func (s *source) learn(root *node, keys *keys, vars map[string]*variable) []Mistake {
	l := &learner{keys: keys, vars: vars, seen: map[string]bool{}}
	for _, v := range vars {
		for _, text := range []string{v.value, v.fallback} {
			if keys.isSecret(v.name) {
				v.secret = true
				l.add(text)
			} else {
				l.url(text)
			}
		}
	}
	l.walk(root, false)
	if len(l.seen) > maxSecrets || l.long {
		return []Mistake{s.mistake(1, 1, "use password-file",
			"the file has more than %d passwords, or one of more than %d bytes", maxSecrets, maxSecret)}
	}
	for text := range l.seen {
		s.found = append(s.found, text)
		s.secrets.Add("", text)
		s.secrets.AddURL(text, false)
	}
	s.learned = true
	return nil
}

func (l *learner) walk(n *node, secret bool) {
	switch {
	case n.kind != scalar || n.null:
	case secret:
		for _, text := range append(strings.Split(n.raw, "\n"), n.text, n.raw) {
			l.add(text)
			l.add(strings.ReplaceAll(text, "'", "''")) // as it is written in quotes
		}
		for _, name := range n.uses {
			if v := l.vars[name]; v != nil {
				v.secret = true
				l.add(v.value)
				l.add(v.fallback)
			}
		}
	default:
		l.url(n.text)
	}
	for _, item := range n.items {
		l.walk(item, secret)
	}
	for _, p := range n.pairs {
		if p.key.text == "user" {
			if _, password, ok := strings.Cut(p.value.text, ":"); ok { // name:password
				l.add(password)
			}
		}
		l.walk(p.value, secret || l.keys.isSecret(p.key.text))
	}
}

func (l *learner) add(text string) {
	text = strings.TrimSpace(text)
	l.long = l.long || len(text) > maxSecret
	if text != "" && len(l.seen) <= maxSecrets {
		l.seen[text] = true
	}
}

// url takes the password of a URL.
func (l *learner) url(text string) {
	_, rest, _ := strings.Cut(text, "://")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if _, password, ok := strings.Cut(rest[:at], ":"); ok {
			l.add(password)
		}
	}
}
