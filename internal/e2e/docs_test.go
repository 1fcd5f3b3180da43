//go:build unix

package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

// The test runs every command of README.md and docs/. Blocks in the pages:
//
//	```sh       commands, each of which must succeed
//	```console  commands after "$ ", each with its output, in which "..." stands for any lines
//	```text     not run
//
// A page is one shell from its first to its last block. Runs of sh blocks are shortened (see documented). Output is
// compared line by line without its numbers and the text in brackets; -update (make docs) writes the output of this
// machine into the pages.
var update = flag.Bool("update", false, "write the output of commands into README.md and docs/")

// documents are the pages with commands that need more than perfmq.
var documents = map[string]machine{
	"README.md":               fresh,
	"docs/recipes.md":         withArtemis,
	"docs/getting-started.md": withArtemis,
	"docs/reading-results.md": withArtemis,
	"docs/protocols.md":       withArtemis,
	"docs/migrate.md":         withArtemis,
	"docs/verification.md":    withArtemis,
	"docs/results.md":         tested,
	"docs/scenarios.md":       tested, // TestScenarioDocument
	"docs/library-driver.md":  tested, // TestPage of pkg/library
	"docs/own-protocol.md":    tested, // likewise
	"docs/several-hosts.md":   tested, // TestShardsOfAJob carries out its commands
}

// machine is the environment of the commands of a page.
type machine int

const (
	bare        machine = iota // perfmq alone
	fresh                      // a checkout, Go, a JDK and Maven, and nothing of perfmq
	withArtemis                // brokers on the default ports: Artemis, and an embedded broker for RocketMQ
	tested                     // by another test
)

func TestDocuments(t *testing.T) {
	t.Parallel()
	pages := musttest.Get(filepath.Glob("../../docs/*.md"))(t)
	records := musttest.Get(filepath.Glob("../../docs/lab/*.md"))(t)
	for _, page := range slices.Concat(pages, records, []string{"../../README.md"}) {
		name := musttest.Get(filepath.Rel("../..", page))(t)
		where := documents[name]
		if where == tested {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".md"), func(t *testing.T) {
			t.Parallel()
			text := musttest.Get(os.ReadFile(page))(t)
			p := readPage(t, name, string(text))
			if !slices.ContainsFunc(p.blocks, func(b *codeBlock) bool { return len(b.commands) > 0 }) {
				return
			}
			said := p.run(t, newShell(t, where, name))
			for _, b := range p.blocks {
				p.check(t, b, said)
			}
			if *update {
				require.NoError(t, os.WriteFile(page, []byte(p.text()), 0o644)) //nolint:gosec // a page of the project
			}
		})
	}
}

// page is a Markdown file.
type page struct {
	name   string
	lines  []string
	blocks []*codeBlock
}

// codeBlock is a code block with commands.
type codeBlock struct {
	first, last int // lines between the fences, from 0: lines[first:last]
	console     bool
	dryRun      bool // its broker is not one of this test's
	commands    []command
}

// command is one or several lines, and in a console block the expected output.
type command struct {
	line  int // of the page, from 1
	text  string
	wants []string
}

var dryRunMark = regexp.MustCompile(`^<!-- dry run: .* -->$`)

func readPage(t *testing.T, name, text string) *page {
	t.Helper()
	p := &page{name: name, lines: strings.Split(text, "\n")}
	for i := 0; i < len(p.lines); i++ {
		info, fence := strings.CutPrefix(p.lines[i], "```")
		if !fence {
			continue
		}
		b := &codeBlock{first: i + 1, console: info == "console", dryRun: i > 0 && dryRunMark.MatchString(p.lines[i-1])}
		for i++; p.lines[i] != "```"; i++ {
			require.Less(t, i+1, len(p.lines), "%s:%d: the block has no end", name, b.first)
		}
		b.last = i
		switch info {
		case "sh":
			b.commands = []command{{line: b.first + 1, text: strings.Join(p.lines[b.first:b.last], "\n")}}
		case "console":
			b.readConsole(t, p)
		default:
			require.Contains(t, []string{"text", "yaml", "json"}, info, "%s:%d: begin the block with ```sh, ```console or ```text", name, b.first)
			continue
		}
		p.blocks = append(p.blocks, b)
	}
	return p
}

func (b *codeBlock) readConsole(t *testing.T, p *page) {
	t.Helper()
	require.True(t, strings.HasPrefix(p.lines[b.first], "$ "), "%s:%d: a console block begins with a command", p.name, b.first+1)
	for i := b.first; i < b.last; i++ {
		if text, ok := strings.CutPrefix(p.lines[i], "$ "); ok {
			b.commands = append(b.commands, command{line: i + 1, text: text})
			continue
		}
		c := &b.commands[len(b.commands)-1]
		c.wants = append(c.wants, p.lines[i])
	}
}

const mark = "\x1e" // before the output of a command

// script is the whole page for bash.
func (p *page) script(sh *shell) string {
	var s strings.Builder
	// As for a person at a terminal: jobs have numbers. The end of the shell is the end of its jobs.
	s.WriteString("set -m\ntrap 'set +e; kill $(jobs -p) 2>/dev/null; wait' EXIT\n")
	for _, b := range p.blocks {
		fmt.Fprintf(&s, "export %s=%t %s=%t\n", envShort, !b.console && sh.where != fresh, envDryRun, b.dryRun)
		s.WriteString(map[bool]string{true: "set +e\n", false: "set -e\n"}[b.console])
		for _, c := range b.commands {
			text := sh.onItsPorts(c.text)
			if strings.Contains(text, "--find-max") { // undecided on a machine that others fill
				text += " || test $? = 5"
			}
			fmt.Fprintf(&s, "printf '\\n%s%d\\n'\n%s\n", mark, c.line, text)
			if strings.HasPrefix(c.text, "perfmq broker") && strings.HasSuffix(c.text, "&") {
				fmt.Fprintf(&s, "until (: <%s) 2>/dev/null; do sleep 0.1; done\n", strings.Replace("/dev/tcp/"+sh.control, ":", "/", 1))
			}
			if strings.Contains(c.text, "--metrics :") && strings.HasSuffix(c.text, "&") { // a person types slowly
				s.WriteString(sh.onItsPorts("until curl -s 127.0.0.1:9400/metrics | grep -qE '_sent_total [1-9]'; do sleep 0.1; done\n"))
			}
		}
	}
	fmt.Fprintf(&s, "printf '\\n%send\\n'\n", mark)
	return s.String()
}

// run carries the page out and returns the output of each command, by its line.
func (p *page) run(t *testing.T, sh *shell) map[string][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*limit) // the README compiles, and fetches a broker
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", p.script(sh))
	cmd.Dir, cmd.Env = sh.dir, sh.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // its trap ends the jobs
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	text := sh.onDefaultPorts(out.String())
	said := map[string][]string{}
	for _, part := range strings.Split(text, "\n"+mark)[1:] {
		line, rest, _ := strings.Cut(part, "\n")
		said[line] = strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
	}
	require.NoError(t, err, "%s: the commands fail:\n%s", p.name, text)
	require.Contains(t, said, "end", "%s: the shell ended before the page:\n%s", p.name, text)
	return said
}

// check compares the output of a console block, or replaces it.
func (p *page) check(t *testing.T, b *codeBlock, said map[string][]string) {
	t.Helper()
	if !b.console {
		return
	}
	for i := range b.commands {
		c := &b.commands[i]
		got := said[fmt.Sprint(c.line)]
		fresh, err := align(c.wants, got)
		if err != nil {
			t.Errorf("%s:%d: %s\n%v; if the page is out of date, run make docs. The output is\n%s",
				p.name, c.line, c.text, err, strings.Join(got, "\n"))
			continue
		}
		c.wants = fresh
	}
}

// text is the page with the outputs of its commands.
func (p *page) text() string {
	lines := slices.Clone(p.lines)
	for _, b := range slices.Backward(p.blocks) {
		if !b.console {
			continue
		}
		var body []string
		for _, c := range b.commands {
			body = append(append(body, "$ "+c.text), c.wants...)
		}
		lines = slices.Replace(lines, b.first, b.last, body...)
	}
	return strings.Join(lines, "\n")
}

var (
	volatileLine = regexp.MustCompile(
		`^(--- (warning|tester paused|tester clock step|finding|credit waits|socket waits|total unsent)|note: |\[\d+\]|$)`)
	bracketsEnd = regexp.MustCompile(` \(.*\)$`)
	numbers     = regexp.MustCompile(`\d[\d.,:]*`)
	blanks      = regexp.MustCompile(` +`)
)

// shape returns the part of a line of output that is compared.
func shape(line string) string {
	if strings.HasPrefix(line, "--- limit:") {
		return "--- limit:"
	}
	line = strings.ReplaceAll(line, " - us", " 0 us") // a machine that stalls sends nothing that was due after the warm-up
	line = bracketsEnd.ReplaceAllString(line, "")
	line = strings.ReplaceAll(numbers.ReplaceAllString(line, "N"), " - ", " ")
	return blanks.ReplaceAllString(strings.Join(strings.Fields(line), " "), " ")
}

// align returns the lines of the output that stand where a page has its lines, "..." included. With *update, it takes
// lines that are new between two others; otherwise they are an error. Warnings and other lines that depend on the
// machine are left out.
func align(page, got []string) ([]string, error) {
	got = slices.DeleteFunc(slices.Clone(got), func(l string) bool { return volatileLine.MatchString(l) && l != "" })
	for len(got) > 0 && got[len(got)-1] == "" {
		got = got[:len(got)-1]
	}
	var out []string
	at, skip := 0, false
	for _, want := range page {
		if want == "..." {
			out, skip = append(out, want), true
			continue
		}
		if volatileLine.MatchString(want) && want != "" {
			continue
		}
		i := slices.IndexFunc(got[at:], func(l string) bool { return shape(l) == shape(want) })
		switch {
		case i < 0 && *update && !skip:
			continue // a line that is no longer printed
		case i < 0:
			return nil, fmt.Errorf("no line %q", want)
		case i > 0 && !skip && !*update:
			return nil, fmt.Errorf("an unexpected line %q", got[at])
		case i > 0 && !skip:
			out = append(out, got[at:at+i]...)
		}
		out = append(out, got[at+i])
		at, skip = at+i+1, false
	}
	if rest := got[at:]; len(rest) > 0 && !skip && len(page) > 0 {
		if !*update {
			return nil, fmt.Errorf("an unexpected line %q", rest[0])
		}
		out = append(out, rest...)
	}
	return out, nil
}

// freeAddresses returns addresses on loopback that were free a moment ago. Their ports are below the range from which
// the kernel serves outgoing connections, which must not take one before perfmq listens.
func freeAddresses(t *testing.T, n int) (list []string) {
	t.Helper()
	for tries := 0; len(list) < n; tries++ {
		require.Less(t, tries, 1000, "no free ports")
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(10000)))
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }() // all stay open until the end, so that they differ
		list = append(list, l.Addr().String())
	}
	return list
}

// TestArchitecture: ARCHITECTURE.md and CONTRIBUTING.md name all packages, and no files that do not exist.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	var both []byte
	for _, name := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md"} {
		text := musttest.Get(os.ReadFile(filepath.Join("../..", name)))(t)
		for _, path := range regexp.MustCompile("`(?:\\./)?((?:cmd|docs|internal|pkg|scenarios|scripts)/[A-Za-z0-9_./-]+)").FindAllSubmatch(text, -1) {
			if !bytes.HasSuffix(path[1], []byte("/NAME")) && !bytes.HasSuffix(path[1], []byte("/...")) {
				_, err := os.Stat(filepath.Join("../..", string(path[1])))
				require.NoError(t, err, name)
			}
		}
		both = append(both, text...)
	}
	for _, pattern := range []string{"../../internal/*", "../../pkg/*"} {
		dirs := musttest.Get(filepath.Glob(pattern))(t)
		for _, dir := range dirs {
			require.Contains(t, string(both), strings.TrimPrefix(dir, "../../"), "a package that ARCHITECTURE.md does not name")
		}
	}
}

// TestLinks: each link of a page to a file of ours, and to a heading in one, has its end.
func TestLinks(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s:#]*)(?:#([^)\s]*))?\)`)
	fence := regexp.MustCompile("(?ms)^```.*?^```")
	heading := regexp.MustCompile(`(?m)^#+ +(.*)$`)
	other := regexp.MustCompile(`[^\pL\pN_ -]`)
	pages := map[string]string{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "dist", "testdata"}, d.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			text, err := os.ReadFile(path)
			pages[path] = fence.ReplaceAllString(string(text), "")
			return err
		}
		return nil
	}))
	links := 0
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			end := page
			if m[1] != "" {
				end = filepath.Join(filepath.Dir(page), m[1])
				if _, err := os.Stat(end); !assert.NoError(t, err, "%s: %s", page, m[0]) {
					continue
				}
			}
			var anchors []string
			for _, h := range heading.FindAllStringSubmatch(pages[end], -1) {
				anchors = append(anchors, strings.ReplaceAll(other.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
			}
			if m[2] != "" {
				assert.Contains(t, anchors, m[2], "%s: %s", page, m[0])
			}
			links++
		}
	}
	require.Greater(t, links, 100)
}

// TestCapabilities: docs/lab/capabilities.md names existing tests, each after its package, and existing targets.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	text := musttest.Get(os.ReadFile("../../docs/lab/capabilities.md"))(t)
	makefile := musttest.Get(os.ReadFile("../../Makefile"))(t)
	shown := 0
	for row := range strings.Lines(string(text)) {
		var tests string // of the last package of the row
		for _, m := range regexp.MustCompile("`((?:internal|pkg|deploy)/[a-z0-9/]+)`|`make ([a-z-]+)`|\\bTest[A-Za-z0-9]+").FindAllStringSubmatch(row, -1) {
			switch {
			case m[1] != "":
				tests = testsOf(t, m[1])
				continue
			case m[2] != "":
				assert.True(t, strings.Contains(string(makefile), "\n"+m[2]+":"), m[2])
			case m[0] != "TestCapabilities":
				assert.True(t, strings.Contains(tests, "func "+m[0]+"("), "%s: %s", m[0], row)
			}
			shown++
		}
	}
	require.Greater(t, shown, 100)
}

// testsOf returns the test code of a package.
func testsOf(t *testing.T, folder string) string {
	t.Helper()
	files := musttest.Get(filepath.Glob(filepath.Join("../..", folder, "*_test.go")))(t)
	var b strings.Builder
	for _, file := range files {
		text := musttest.Get(os.ReadFile(file))(t)
		b.Write(text)
	}
	return b.String()
}

// TestPandas runs the Python examples of docs/results.md, one after the other in one process as in a notebook, on two
// results. They print the result's average rate.
func TestPandas(t *testing.T) {
	t.Parallel()
	text := musttest.Get(os.ReadFile("../../docs/results.md"))(t)
	blocks := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.GreaterOrEqual(t, len(blocks), 3)
	script := "import warnings\nwarnings.simplefilter('error')\n" // pandas warns about deprecated features
	for _, block := range blocks {
		script += block[1]
	}
	work := t.TempDir()
	for _, dir := range []string{"run", "second"} {
		r := run(t, limit, "amqp", "client", "--embedded", "--rate", "300", "--max-pending", "100", "--duration", "4", "--warmup", "1",
			"--result", filepath.Join(work, dir), "queue://TEST")
		require.Equal(t, statusOK, r.status)
	}
	cmd := exec.Command(pythonWith(t, "pandas"), "-c", script)
	cmd.Dir = work
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
	got := musttest.Get(runresult.Read(filepath.Join(work, "run")))(t)
	mean := regexp.MustCompile(`(?m)^completed/s +(\S+)$`).FindSubmatch(out)
	require.NotNil(t, mean, "%s", out)
	printed := musttest.Get(strconv.ParseFloat(string(mean[1]), 64))(t)
	require.InEpsilon(t, *got.Figures.Completed, printed, 0.01)
	require.NotContains(t, strings.ToLower(string(out)), "nan")
}

// pythonWith returns a Python that has a module: Debian's own, which has its packages, or the first one in the PATH.
func pythonWith(t *testing.T, module string) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import "+module).Run() == nil {
			return python
		}
	}
	require.FailNow(t, "this test needs Python's "+module+": apt-get install python3-"+module)
	return ""
}

// TestImage carries out the Dockerfile's first stage in a folder, except for the base image: the files of COPY suffice
// to build the binary, and the image holds it and the CA certificates. In another folder the same binary comes of it,
// and it is not too large. make release-snapshot checks all that for whole releases.
func TestImage(t *testing.T) {
	t.Parallel()
	const maxSize = 22_000_000
	text := musttest.Get(os.ReadFile("../../Dockerfile"))(t)
	stage, final, ok := strings.Cut(string(text), "\nFROM scratch\n")
	require.True(t, ok)
	var programs [2][]byte
	for i := range programs {
		work, build := t.TempDir(), ""
		for line := range strings.Lines(stage) {
			words := strings.Fields(line)
			switch {
			case len(words) > 2 && words[0] == "COPY":
				for _, from := range words[1 : len(words)-1] {
					out, err := exec.Command("cp", "-R", filepath.Join("../..", from), filepath.Join(work, from)).CombinedOutput()
					require.NoError(t, err, "%s", out)
				}
			case strings.Contains(line, "go build"):
				build = strings.TrimPrefix(strings.TrimSpace(line), "RUN ")
			}
		}
		cmd := exec.Command("sh", "-c", strings.Replace(build, " /out/ ./cmd/...", " ./image/ ./cmd/...", 1))
		cmd.Dir = work
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", build, out)
		programs[i] = musttest.Get(os.ReadFile(filepath.Join(work, "image", "perfmq")))(t)
	}
	require.True(t, bytes.Equal(programs[0], programs[1]), "two builds differ")
	require.LessOrEqual(t, len(programs[0]), maxSize)
	require.Equal(t, 2, strings.Count(final, "COPY --from=build"), "the image holds the programs and the certificates")
}
