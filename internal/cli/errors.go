package cli

import (
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// The exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitThreshold   = 3 // kept for thresholds; nothing sets it yet
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
		{exitThreshold, "kept for thresholds, of which there are none yet"},
		{exitConnect, "could not connect or log in"},
		{exitInterrupted, "interrupted by SIGINT or SIGTERM, or its output was closed; else it was a success"},
	}
}

// startStatus is the exit status for an error that kept a run from beginning.
func startStatus(err error, stop <-chan struct{}) int {
	var de *driver.Error
	select {
	case <-stop:
		if !errors.As(err, &de) {
			return exitInterrupted // while connecting; nothing failed but for that
		}
	default:
	}
	switch driver.ClassOf(err) {
	case driver.ClassConnect, driver.ClassAuth, driver.ClassTLS, driver.ClassTimeout,
		// before anything was sent: a broker, or what is before it, that does not want us or speaks something else
		driver.ClassConnectionLost, driver.ClassProtocol:
		return exitConnect
	default:
		return exitFailed
	}
}

// errorPrinter writes errors for people: each as a line "error:" and, if there is something to do, a line "hint:". It is
// safe for concurrent use.
type errorPrinter struct {
	urls []string // whose passwords must not be printed; set before others use the printer

	mu   sync.Mutex
	w    io.Writer
	seen map[string]bool
}

func newErrorPrinter(w io.Writer) *errorPrinter { return &errorPrinter{w: w, seen: map[string]bool{}} }

// print writes err, or each of the errors that it joins, but none twice.
func (ep *errorPrinter) print(err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		if isJoin(err, joined.Unwrap()) {
			for _, e := range joined.Unwrap() {
				ep.print(e)
			}
			return
		}
	}
	hint := driver.HintOf(err)
	var m *plan.Mistake
	if errors.As(err, &m) {
		hint = m.Hint
	}
	ep.write(err.Error(), hint)
}

// isJoin tells errors.Join, whose text is that of its parts, from fmt.Errorf with several %w.
func isJoin(err error, parts []error) bool {
	texts := make([]string, len(parts))
	for i, e := range parts {
		texts[i] = e.Error()
	}
	return err.Error() == strings.Join(texts, "\n")
}

func (ep *errorPrinter) write(text, hint string) {
	text, hint = ep.clean(text), ep.clean(hint)
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
	ep.mu.Lock()
	defer ep.mu.Unlock()
	_, _ = io.WriteString(ep.w, ep.clean(text)+"\n")
}

// clean makes one line of a text and takes the passwords out of it.
func (ep *errorPrinter) clean(text string) string {
	for _, url := range ep.urls {
		text = plan.RedactText(text, url)
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
