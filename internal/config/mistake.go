package config

import (
	"fmt"
	"strings"

	"github.com/perfmq/perfmq/internal/safetext"
)

// Pos is a place in a file. Line and Column count from 1; Column counts characters.
type Pos struct {
	File         string
	Line, Column int
}

// Mistake is a reason why a file cannot be used. It holds no secret and nothing that steers a terminal.
type Mistake struct {
	Pos  Pos
	Text string
	Hint string // the suggestion, "" if there is none
}

// Mistakes are all mistakes of a file, by their places.
type Mistakes []Mistake

// maxMistakes limits the work on a file that has nothing but mistakes. Further ones are not looked for.
const maxMistakes = 30

// Error returns the mistakes, each with its position and a suggestion.
func (m Mistakes) Error() string {
	var b strings.Builder
	for i := range m {
		if i == maxMistakes {
			b.WriteString("and more\n")
			break
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s\n", safetext.Line(m[i].Pos.File), m[i].Pos.Line, m[i].Pos.Column, m[i].Text)
		if m[i].Hint != "" {
			fmt.Fprintf(&b, "  hint: %s\n", m[i].Hint)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
