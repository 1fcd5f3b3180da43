package cli

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/pkg/driver"
)

// The exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitThreshold   = 3
	exitConnect     = 4
	exitInterrupted = 130
)

// exitStatus is one line of the table in the help.
type exitStatus struct {
	status  int
	meaning string
}

func exitStatuses() []exitStatus {
	return []exitStatus{
		{exitOK, "all that was sent was accepted and received"},
		{exitFailed, "the run failed"},
		{exitUsage, "usage or configuration; nothing was sent"},
		{exitThreshold, "a --threshold was not kept; else it was a success"},
		{exitConnect, "could not connect, log in or begin; nothing was sent"},
		{exitInterrupted, "interrupted by SIGINT, SIGTERM or SIGHUP, or its output was closed; else it was a success"},
	}
}

// startStatus is the exit status for an error that kept a run from beginning: never that of a run that failed.
func startStatus(err error, interrupted bool) int {
	var de *driver.Error
	if interrupted && !errors.As(err, &de) {
		return exitInterrupted // while connecting; nothing failed but for that
	}
	if errors.Is(err, engine.ErrReporters) {
		return exitUsage
	}
	switch driver.ClassOf(err) {
	case driver.ClassNotFound, driver.ClassUnsupported, driver.ClassTooLarge:
		// the broker is there, and what was asked of it is not
		return exitUsage
	default: // a broker, or what is before it, that cannot be reached, does not want us or speaks something else
		return exitConnect
	}
}

// errorPrinter writes errors for people: each as a line "error:" and, if there is something to do, a line "hint:". It
// is safe for concurrent use.
type errorPrinter struct {
	secrets *safetext.Secrets

	mu   sync.Mutex
	w    io.Writer
	seen map[string]bool
}

func newErrorPrinter(w io.Writer, secrets *safetext.Secrets) *errorPrinter {
	return &errorPrinter{secrets: secrets, w: w, seen: map[string]bool{}}
}

// maxShown is how many errors of one kind are shown.
const maxShown = 100

// print writes the errors, each of those that one joins by itself, but none twice.
func (ep *errorPrinter) print(errs ...error) {
	list := parts(errs)
	for i, err := range list {
		if i == maxShown {
			ep.write(fmt.Sprintf("and %d more", len(list)-i), "")
			return
		}
		var mistakes scenario.Mistakes
		if errors.As(err, &mistakes) {
			ep.lines(mistakes.Error())
			continue
		}
		hint := driver.HintOf(err)
		var m *plan.Mistake
		if errors.As(err, &m) {
			hint = m.Hint
		}
		ep.write(err.Error(), hint)
	}
}

// lines prints a text of several lines, with the spaces that they begin with: a caret stands below what it points to.
func (ep *errorPrinter) lines(text string) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		words := strings.TrimLeft(strings.TrimSuffix(line, "\n"), " ")
		b.WriteString(line[:len(line)-len(strings.TrimLeft(line, " "))] + ep.secrets.Line(words) + "\n")
	}
	ep.mu.Lock()
	defer ep.mu.Unlock()
	_, _ = io.WriteString(ep.w, b.String()) // nobody to tell
}

// parts returns errors without nil and without joins.
func parts(errs []error) (list []error) {
	for _, err := range errs {
		joined, ok := err.(interface{ Unwrap() []error })
		switch {
		case err == nil:
		case ok && isJoin(err):
			list = append(list, parts(joined.Unwrap())...)
		default:
			list = append(list, err)
		}
	}
	return list
}

// isJoin tells an error of errors.Join, which has no text of its own, from one of fmt.Errorf with several %w.
func isJoin(err error) bool {
	return reflect.TypeOf(err) == reflect.TypeOf(errors.Join(io.EOF))
}

func (ep *errorPrinter) write(text, hint string) {
	text, hint = ep.secrets.Line(text), ep.secrets.Line(hint)
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if ep.seen[text] {
		return
	}
	ep.seen[text] = true
	lines := "error: " + text + "\n"
	if hint != "" {
		lines += "hint: " + hint + "\n"
	}
	_, _ = io.WriteString(ep.w, lines) // nobody to tell
}

// say writes a line that is no error.
func (ep *errorPrinter) say(text string) {
	line := ep.secrets.Line(text) + "\n"
	ep.mu.Lock()
	defer ep.mu.Unlock()
	_, _ = io.WriteString(ep.w, line) // nobody to tell
}
