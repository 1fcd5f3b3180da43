package scenario

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/perfmq/perfmq/internal/safetext"
)

// source is the text of a file, by lines, and its secrets.
type source struct {
	path    string
	text    []byte // without byte order mark
	lines   []string
	lengths []int    // of the lines, in characters
	hidden  []span   // of each line: the value of a secret key
	values  []string // those secrets, as far as one can tell
	found   []string // the secrets of the tree
	keys    *table
	secrets safetext.Secrets
}

// span is a range of characters of a line, without the last.
type span struct{ from, to int }

// newSource takes a file into lines, or says why it is no text.
func newSource(path string, text []byte, keys *table) (*source, []Mistake) {
	s := &source{path: path, keys: keys}
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
	for i := range s.lines {
		s.lines[i] = strings.TrimSuffix(s.lines[i], "\r")
		s.lengths = append(s.lengths, utf8.RuneCountInString(s.lines[i]))
	}
	s.hidden = s.hideValues()
	guesses := &learner{seen: map[string]bool{}}
	for _, text := range s.values {
		guesses.add(text)
	}
	if mistakes := s.hide(guesses); len(mistakes) > 0 {
		return s, mistakes
	}
	var mistakes []Mistake
	for i, line := range s.lines {
		column, hint, text := unreadable(line)
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
	switch last := len(s.lines); {
	case last == 0 || line < 1:
		return Pos{s.path, 1, 1}
	case line > last:
		return Pos{s.path, last, s.lengths[last-1] + 1}
	}
	return Pos{s.path, line, max(1, min(column, s.lengths[line-1]+1))}
}

// line returns a line by its number.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	return s.lines[n-1]
}

const (
	// maxShown is how much of a line is shown, in characters.
	maxShown = 120
	// maxRedacted is how much of a line on either side of a mistake is searched for secrets, in characters: more than
	// is shown by the longest secret, since part of one would not be found.
	maxRedacted = maxShown + maxSecret
)

// finish adds the line to a mistake, and hides secrets and control characters.
func (s *source) finish(m Mistake) Mistake {
	m.Text, m.Hint = s.secrets.Line(m.Text), s.secrets.Line(m.Hint)
	if m.Pos.Line < 1 || m.Pos.Line > len(s.lines) {
		return m
	}
	line, at := []rune(s.line(m.Pos.Line)), m.Pos.Column-1
	if s.hidden == nil {
		return m
	}
	if h := s.hidden[m.Pos.Line-1]; h.to > h.from {
		switch {
		case at >= h.to:
			at += len(safetext.Hidden) - (h.to - h.from)
		case at > h.from:
			at = h.from
		}
		line = append(append(append([]rune{}, line[:h.from]...), []rune(safetext.Hidden)...), line[h.to:]...)
	}
	at = min(at, len(line))
	from, to := max(0, at-maxRedacted), min(len(line), at+maxRedacted)
	before, line := string(line[from:at]), line[from:to]
	shown := []rune(s.secrets.Field(string(line)))
	if redacted := s.secrets.Field(before); redacted != before || string(shown) != string(line) {
		at = from + common(shown, []rune(redacted))
	}
	m.Line, m.caret = window(shown, at-from)
	return m
}

// common returns how many characters two texts begin with in common.
func common(a, b []rune) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// cells is how many columns of a terminal a character takes.
func cells(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// window cuts the part around a place out of a line. Caret is the place in the part, in columns of a terminal.
func window(line []rune, at int) (shown string, caret int) {
	at = min(at, len(line))
	from, to := 0, len(line)
	if to > maxShown {
		from = max(0, min(at-maxShown/2, to-maxShown))
		to = from + maxShown
	}
	part := make([]rune, 0, to-from)
	for i, r := range line[from:to] {
		switch {
		case r == '\t':
			r = ' '
		case !unicode.IsPrint(r):
			r = unicode.ReplacementChar
		}
		part = append(part, r)
		if from+i < at {
			caret += cells(r)
		}
	}
	shown = strings.TrimRight(string(part), " ")
	if from > 0 {
		shown, caret = "..."+shown, caret+len("...")
	}
	if to < len(line) {
		shown += "..."
	}
	return shown, caret
}
