package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// hintStdout is for errors of writing to standard output.
const hintStdout = "look at where standard output goes"

// notWritten reports output that could not be written. That is no mistake of the command line: the status is another.
func (a *app) notWritten(err error) error {
	var m *plan.Mistake
	if !errors.As(err, &m) {
		m = &plan.Mistake{Text: err.Error(), Hint: hintStdout}
	}
	a.errors.print(m)
	a.status = result.StatusFailed
	return errReported
}

// fileNotWritten says that the file of a flag could not be written.
func fileNotWritten(flag string, err error) *plan.Mistake {
	return &plan.Mistake{Text: "write " + flag + ": " + bare(err).Error(), Hint: "name another place"}
}

// isWrite reports whether writing has failed, as of standard output.
func isWrite(err error) bool {
	var pe *fs.PathError
	return errors.As(err, &pe) && pe.Op == "write"
}

// errorPrinter writes errors for people: each as a line "error:" and, if there is something to do, a line "hint:". It
// is safe for concurrent use.
type errorPrinter struct {
	secrets *safetext.Secrets
	// overwrite: the terminal may show a line of a run that the errors replace.
	overwrite bool

	mu   sync.Mutex
	w    io.Writer
	seen map[string]bool
}

// maxShown is the maximum number of errors printed at once.
const maxShown = 100

// print writes the errors. Joined errors are written one by one, equal ones once.
func (ep *errorPrinter) print(errs ...error) {
	list := config.Parts(errs...)
	for i, err := range list {
		if i == maxShown {
			ep.write(fmt.Sprintf("and %d more", len(list)-i), "")
			return
		}
		var mistakes config.Mistakes
		if errors.As(err, &mistakes) {
			ep.lines(mistakes.Error())
			continue
		}
		hint := driver.HintOf(err)
		if m, ok := errors.AsType[*plan.Mistake](err); ok {
			hint = m.Hint
		}
		ep.write(err.Error(), hint)
	}
}

// lines prints a text of several lines and keeps leading spaces: a caret stands below its position.
func (ep *errorPrinter) lines(text string) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		words := strings.TrimLeft(strings.TrimSuffix(line, "\n"), " ")
		b.WriteString(line[:len(line)-len(strings.TrimLeft(line, " "))] + ep.secrets.Line(words) + "\n")
	}
	ep.put(b.String())
}

func (ep *errorPrinter) write(text, hint string) {
	text, hint = ep.secrets.Line(text), ep.secrets.Line(hint)
	ep.mu.Lock()
	seen := ep.seen[text]
	ep.seen[text] = true
	ep.mu.Unlock()
	if seen {
		return
	}
	lines := "error: " + text + "\n"
	if hint != "" {
		lines += "hint: " + hint + "\n"
	}
	ep.put(lines)
}

// say writes a line that is not an error.
func (ep *errorPrinter) say(text string) { ep.put(ep.secrets.Line(text) + "\n") }

func (ep *errorPrinter) put(lines string) {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if ep.overwrite {
		lines = "\r\x1b[K" + lines
	}
	_, _ = io.WriteString(ep.w, lines) // nobody to tell
}

// notFolders refuses files in place of folders of results.
func notFolders(paths []string) (errs []error) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			errs = append(errs, plan.Wrong("name the folder of --result DIR, such as "+filepath.Dir(path),
				"%s is a file: a result is a folder", path))
		}
	}
	return errs
}

// writeFile writes what a flag asks for into its file, as [inputfile.Replace] does, or to standard output. It makes the
// folder of the file.
func (a *app) writeFile(flag, path string, text []byte, mode fs.FileMode) error {
	if path == run.Standard {
		return a.write(text)
	}
	err := os.MkdirAll(filepath.Dir(path), 0o777) //nolint:gosec // as far as the process' mask lets it
	if err == nil {
		err = inputfile.Replace(path, text, mode)
	}
	if err != nil {
		return fileNotWritten(flag, err)
	}
	return nil
}

// writeJSON writes a value into the file of --json.
func (a *app) writeJSON(path string, v any) error {
	text, err := result.Encode(v, "  ")
	if err != nil {
		return err
	}
	return a.writeFile("--json", path, text, 0o600)
}

// bare returns "PATH: reason" without the name of the system call.
func bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", pe.Path, pe.Err)
	}
	return err
}

// learnSecrets returns the secrets in the arguments and the environment. It runs before anything is checked, because
// errors print arguments, and a password may be misplaced, for example in a URL given as destination. The name of a
// flag decides whether its value is secret, so that mistyped flags are covered, too.
func learnSecrets(args []string, environ config.Environment) *safetext.Secrets {
	s := &safetext.Secrets{}
	user := environ["PERFMQ_USER"]
	beside := environ["PERFMQ_PASSWORD"]+environ["PERFMQ_PASSWORD_FILE"] != "" // a password: the name may hold a colon
	for name, value := range flagTexts(args) {
		switch name {
		case "user":
			user = value
		case "password", "password-file":
			beside = true
		}
	}
	if name, password, ok := strings.Cut(user, ":"); ok && !beside { // USER:PASSWORD, as in curl
		s.Add(name, password)
	}
	note := func(name, value string) {
		if config.SecretName(name) {
			s.Add(user, value)
		} else {
			s.AddURL(value, strings.HasSuffix(strings.ToLower(name), "url"))
		}
	}
	for name, value := range environ {
		note(name, value)
	}
	for name, value := range flagTexts(args) {
		note(name, value)
	}
	return s
}

// flagTexts splits arguments into flags and values without knowledge of the flags: an argument after a flag counts both
// as its value and as an argument of its own, without a name.
func flagTexts(args []string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		before := ""
		for _, arg := range args {
			name, ok := strings.CutPrefix(arg, "--")
			name, value, attached := strings.Cut(name, "=")
			switch {
			case !ok && (!yield(before, arg) || !yield("", arg)), ok && attached && !yield(name, value):
				return
			case !ok || attached:
				name = ""
			}
			before = name
		}
	}
}

// completing returns the arguments of a request for completion without secrets, because cobra prints them in an error.
func completing(args []string, secrets *safetext.Secrets) []string {
	if len(args) == 0 || args[0] != cobra.ShellCompRequestCmd && args[0] != cobra.ShellCompNoDescRequestCmd {
		return args
	}
	list := make([]string, len(args))
	for i, arg := range args {
		list[i] = secrets.Field(arg)
	}
	return list
}
