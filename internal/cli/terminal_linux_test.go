package cli

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/result"
)

// openTerminal returns a terminal of 80 columns, and the texts that are written to it after it is closed.
func openTerminal(t *testing.T) (terminal *os.File, shown func() string) {
	t.Helper()
	master := musttest.Get(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))(t)
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number := musttest.Get(unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN))(t)
	terminal = musttest.Get(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	require.NoError(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	text := make(chan string)
	go func() {
		all, _ := io.ReadAll(master) // ends with EIO when the terminal is closed
		_ = master.Close()
		text <- strings.ReplaceAll(string(all), "\r\n", "\n")
	}()
	return terminal, func() string {
		require.NoError(t, terminal.Close())
		return <-text
	}
}

// onTerminal runs perfmq on a terminal.
func onTerminal(t *testing.T, environ []string, args ...string) (status int, text string) {
	t.Helper()
	terminal, shown := openTerminal(t)
	status = Main(Env{
		Args: args, Environ: environ, Stdout: terminal, Stderr: terminal, Factories: testFactories(), Version: run.Version{Number: "v0.0.0"},
	})
	return status, shown()
}

var escapes = regexp.MustCompile(`\x1b\[[0-9;]*[mK]`)

// seen returns the lines that are left on a terminal.
func seen(text string) (lines []string) {
	for line := range strings.Lines(text) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\r")
		lines = append(lines, escapes.ReplaceAllString(parts[len(parts)-1], ""))
	}
	return lines
}

// TestTerminal: on a terminal the short format is the default, in 80 columns, with colors and characters that the
// environment allows.
func TestTerminal(t *testing.T) {
	t.Parallel()
	load := []string{"mem", "client", "--rate", "200", "--duration", "2500ms", "--threshold", "received == 0", "-o", "latency=2ms", "queue://A"}
	for name, c := range map[string]struct {
		environ        []string
		color, unicode bool
	}{
		"colors":   {[]string{"LANG=de_DE.UTF-8"}, true, true},
		"NO_COLOR": {[]string{"LANG=de_DE.UTF-8", "NO_COLOR=1", "LC_ALL=C"}, false, false},
		"dumb":     {[]string{"LC_ALL=en_US.utf8", "LANG=C", "TERM=dumb"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, text := onTerminal(t, c.environ, load...)
			require.Equal(t, result.StatusThreshold, status, text)
			require.Equal(t, c.color, strings.Contains(text, "\x1b[1;41;97m  THRESHOLD FAILED  \x1b[0m"), "%q", text)
			require.True(t, c.unicode || utf8.RuneCountInString(text) == len(text), "ASCII")
			require.Equal(t, name != "dumb", regexp.MustCompile(`\d%  [12]\.`).MatchString(text), "the line of the last second")
			require.Equal(t, name != "dumb", strings.Contains(text, "\x1b"))
			lines := seen(text)
			require.Equal(t, "load on queue://A at mem://local", lines[0])
			require.Equal(t, "THRESHOLD FAILED", strings.TrimSpace(lines[1]), "the line of the last second is gone")
			for _, line := range lines {
				assert.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
			}
			for part := range strings.SplitSeq(text, "\r") { // the line that is overwritten
				assert.LessOrEqual(t, utf8.RuneCountInString(strings.SplitN(escapes.ReplaceAllString(part, ""), "\n", 2)[0]), 80)
			}
		})
	}
	status, text := onTerminal(t, nil, append(load, "--format", "artemis")...)
	require.Equal(t, result.StatusThreshold, status)
	require.Contains(t, text, "--- result:     threshold failed\n")
	require.NotContains(t, call(nil, load...).stdout, "THRESHOLD FAILED", "no terminal")
}

// TestTerminalSteps: each step has a line when it has ended.
func TestTerminalSteps(t *testing.T) {
	t.Parallel()
	file := write(t, "steps.yaml", `
name: steps
broker: {url: "mem://terminal-steps"}
groups:
  senders: {role: producer, destination: queue://A, rate: 100}
  readers: {role: consumer, destination: queue://A}
steps:
  - {name: one, duration: 300ms}
  - {name: two, duration: 300ms, thresholds: [received > 1000]}
`)
	status, text := onTerminal(t, []string{"LANG=C.UTF-8", "TERM=dumb"}, "run", file)
	require.Equal(t, result.StatusThreshold, status)
	lines := seen(text)
	require.Regexp(t, `^step 1 of 2 one: [\d.]+ s, completed [\d.]+/s, received [\d.]+/s`, lines[1]) // perhaps 0 on a busy machine
	require.Regexp(t, `(?m)^step 2 of 2 two: [\d.]+ s, completed `, strings.Join(lines, "\n"))
	require.Contains(t, text, "FAILED received > 1000")
	require.Equal(t, 1, strings.Count(text, "step 1 of 2"))
}
