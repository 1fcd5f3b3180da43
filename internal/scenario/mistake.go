package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/safetext"
)

// Mistake is something that a file cannot be used with. It holds no secret and nothing that steers a terminal.
type Mistake struct {
	Pos  Pos
	Text string
	Hint string // the suggestion, "" if there is none
	Line string // the line, or the part around the mistake

	caret int // columns of a terminal before the mistake
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
	if strings.TrimSpace(m.Line) != "" {
		fmt.Fprintf(&b, "%5d | %s\n", m.Pos.Line, m.Line)
		fmt.Fprintf(&b, "%5s | %*s\n", "", m.caret+1, "^")
	}
	if m.Hint != "" {
		fmt.Fprintf(&b, "  hint: %s\n", m.Hint)
	}
	return b.String()
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
