package cli

import (
	"fmt"
	"io"

	"github.com/perfmq/perfmq/internal/run"
)

// progress prints how a sweep or a search proceeds.
type progress struct {
	*app
	to io.Writer // for the outcome
}

func (p *progress) Say(line string)     { p.errors.say(line) }
func (p *progress) Print(line string)   { _, _ = fmt.Fprintln(p.to, p.secrets.Line(line)) }
func (p *progress) Fail(err error)      { p.errors.print(err) }
func (p *progress) Ended(e *run.Ending) { p.printEnding(*e) }
