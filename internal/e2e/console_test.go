//go:build unix

package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// console is the output of a run, parsed by the reference's format to the character.
type console struct {
	url    string
	blocks []block
	// result and totals come from the summary; extra are the lines after the familiar ones, by name.
	result string
	totals map[string]uint64
	extra  map[string][]string
}

type block struct {
	warmup bool
	rates  map[string]uint64
}

// grammar describes the permitted lines of a role.
type grammar struct {
	producing, consuming, rated, showLatency bool
	peer                                     bool // artemis perf, which leaves spaces at line ends and has no lines of ours
}

// number matches a number, padded with spaces to width.
func number(width int) string {
	var alternatives []string
	for digits := 1; digits < width; digits++ {
		alternatives = append(alternatives, fmt.Sprintf(` {%d}\d{%d}`, width-digits, digits))
	}
	return "(" + strings.Join(append(alternatives, fmt.Sprintf(`\d{%d,}`, width)), "|") + ")"
}

// latencyLine matches a distribution after a label padded to width: two decimals behind six digits, always a point; or
// a hyphen in the place of each number, if there were no values.
func latencyLine(label string, width int) *regexp.Regexp {
	value := `(?:` + number(6) + `\.\d\d| {8}-) us`
	var b strings.Builder
	fmt.Fprintf(&b, `^%-*s mean: %s`, width, label, value)
	for _, p := range []string{"50.00", "90.00", "99.00", "99.90", "99.99"} {
		b.WriteString(" - " + strings.Replace(p, ".", `\.`, 1) + "%: " + value)
	}
	b.WriteString(` - max:    ` + value + `$`)
	return regexp.MustCompile(b.String())
}

// reader takes lines of the output one by one.
type reader struct {
	t     *testing.T
	lines []string
	at    int
}

func (r *reader) more() bool { return r.at < len(r.lines) }

func (r *reader) peek() string {
	if !r.more() {
		return ""
	}
	return r.lines[r.at]
}

func (r *reader) line(pattern *regexp.Regexp) []string {
	r.t.Helper()
	require.Regexp(r.t, pattern, r.peek(), "line %d of the output", r.at+1)
	r.at++
	return pattern.FindStringSubmatch(r.lines[r.at-1])
}

func (r *reader) text(want string) {
	r.t.Helper()
	r.line(regexp.MustCompile("^" + regexp.QuoteMeta(want) + "$"))
}

func (r *reader) rate(label string) uint64 {
	r.t.Helper()
	m := r.line(regexp.MustCompile(fmt.Sprintf(`^%-14s %s msg/sec$`, label, number(8))))
	return parseUint(r.t, m[1])
}

func (r *reader) total(label string) uint64 {
	r.t.Helper()
	m := r.line(regexp.MustCompile(fmt.Sprintf(`^%-20s%s$`, label, number(12))))
	return parseUint(r.t, m[1])
}

func parseUint(t *testing.T, text string) uint64 {
	t.Helper()
	n := musttest.Get(strconv.ParseUint(strings.TrimSpace(text), 10, 64))(t)
	return n
}

// readConsole fails the test where the output is not of the reference's format.
func readConsole(t *testing.T, text string, g grammar) console {
	t.Helper()
	require.True(t, strings.HasSuffix(text, "\n"), "the last line ends")
	r := &reader{t: t, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	for i, line := range r.lines {
		if g.peer {
			r.lines[i] = strings.TrimRight(line, " ")
		}
		require.Equal(t, strings.TrimRight(r.lines[i], " \t\r"), r.lines[i], "no space at the end of line %d", i+1)
	}
	c := console{}
	c.url = r.line(regexp.MustCompile(`^Connection brokerURL = (\S+)$`))[1]
	for {
		r.text("")
		if r.peek() == "--- SUMMARY" {
			break
		}
		c.blocks = append(c.blocks, r.block(g))
	}
	r.at++
	r.summary(g, &c)
	return c
}

func (r *reader) block(g grammar) block {
	r.t.Helper()
	b := block{rates: map[string]uint64{}}
	b.warmup = r.line(regexp.MustCompile(`^--- warmup (true|false)$`))[1] == "true"
	if g.producing {
		for _, name := range []string{"sent", "blocked", "completed"} {
			b.rates[name] = r.rate("--- " + name + ":")
		}
	}
	if g.consuming {
		b.rates["received"] = r.rate("--- received:")
		if strings.HasPrefix(r.peek(), "--- foreign:") { // of whatever second they came in
			b.rates["foreign"] = r.rate("--- foreign:")
		}
	}
	if g.showLatency {
		if g.producing && g.rated {
			r.line(latencyLine("--- send delay time:", 20))
		}
		if g.producing {
			r.line(latencyLine("--- send ack time:", 20))
		}
		if g.consuming {
			r.line(latencyLine("--- transfer time:", 20))
		}
	}
	if strings.HasPrefix(r.peek(), "--- outage:") { // in the second in which there was one
		r.line(regexp.MustCompile(`^--- outage:    \d+\.\d s, (\d+ workers? not connected|all workers connected again, no message yet)$`))
	}
	return b
}

func (r *reader) summary(g grammar, c *console) {
	r.t.Helper()
	c.result = r.line(regexp.MustCompile(`^--- result:( {14}success| {17}fail| {5}threshold failed| (?:success|fail|threshold failed) after (?:1 outage of|\d+ outages, the longest) [\dhms.]+( m?s)?: .*\d+ in doubt.*| .* \(not all have an end\): .*)$`))[1]
	c.result = strings.TrimSpace(c.result)
	c.totals = map[string]uint64{}
	if g.producing {
		for _, name := range []string{"sent", "blocked", "completed"} {
			c.totals[name] = r.total("--- total " + name + ":")
		}
	}
	if g.consuming {
		c.totals["received"] = r.total("--- total received:")
	}
	if g.producing && g.rated {
		r.line(latencyLine("--- aggregated delay send time:", 31))
	}
	if g.producing {
		r.line(latencyLine("--- aggregated send time:", 31))
	}
	if g.consuming {
		r.line(latencyLine("--- aggregated transfer time:", 31))
	}
	c.extra = map[string][]string{}
	if g.peer {
		require.False(r.t, r.more(), "lines after the summary: %q", r.lines[r.at:])
		return
	}
	if g.producing && g.rated {
		r.line(latencyLine("--- aggregated response time:", 31))
	}
	for r.more() {
		m := r.line(regexp.MustCompile(`^--- ([a-z][a-z0-9' -]*|verified (?:queue|topic)://.+): +(\S.*)$`))
		c.extra[m[1]] = append(c.extra[m[1]], m[2])
	}
}

// number returns a number of the lines that only perfmq has; 0 if the line is not there.
func (c *console) number(t *testing.T, name string) uint64 {
	t.Helper()
	texts := c.extra[name]
	if len(texts) == 0 {
		return 0
	}
	require.Len(t, texts, 1, name)
	first, _, _ := strings.Cut(texts[0], " ")
	return parseUint(t, first)
}
