package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// browser is a tab of a headless Chromium. It records all errors and requests.
type browser struct {
	context.Context
	mu         sync.Mutex
	complaints []string
	requests   []string
}

// newBrowser starts a Chromium with a profile of its own. The test fails without one: apt-get install chromium.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	brokertest.Needs(t, "Chromium")
	path, err := exec.LookPath("chromium")
	require.NoError(t, err, "the pages are tested in a browser (Debian: apt-get install chromium)")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx,
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
	)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser before its profile is removed
		cancel()
	})
	b := &browser{Context: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.listen))
	send(t, b, network.Enable, network.EnableParams{})
	send(t, b, log.Enable, cdp.Empty{})
	send(t, b, runtime.Enable, cdp.Empty{})
	b.window(t, 1280, 900)
	return b
}

func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *log.EventEntryAdded:
		if strings.HasPrefix(e.Entry.Text, "Canvas2D: Multiple readback") { // caused by the test
			return
		}
		b.complaints = append(b.complaints, e.Entry.Text+" "+e.Entry.URL)
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		b.complaints = append(b.complaints, fmt.Sprint(e.Type, e.Args))
	case *cdppage.EventJavascriptDialogOpening:
		b.complaints = append(b.complaints, "dialog: "+e.Message)
	}
}

func send[P, R any](t *testing.T, b *browser, command cdp.Command[P, R], params P) R {
	t.Helper()
	answer := musttest.Get(chromedp.Call(b, command, params))(t)
	return answer
}

func (b *browser) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	require.NoError(t, chromedp.Do(b, actions...))
}

// eval returns the value of an expression, or of a promise.
func eval[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	value, err := chromedp.Run(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(t, err, expression)
	return value
}

// call evaluates an expression for its effect.
func (b *browser) call(t *testing.T, expression string) {
	t.Helper()
	eval[bool](t, b, "(() => {"+expression+"; return true; })()")
}

// until waits until an expression is true.
func (b *browser) until(t *testing.T, expression string) {
	t.Helper()
	_, err := chromedp.Run(b, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(5*time.Minute)))
	require.NoError(t, err, expression)
}

// quiet checks that the page caused no errors and requested nothing but itself.
func (b *browser) quiet(t *testing.T, url string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(t, b.complaints)
	assert.NotEmpty(t, b.requests)
	for _, r := range b.requests {
		assert.True(t, strings.HasPrefix(r, url), r)
	}
}

// window sets the size of the window; a narrow one emulates a phone.
func (b *browser) window(t *testing.T, width, height int64) {
	t.Helper()
	send(t, b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500})
}

func (b *browser) dark(t *testing.T, dark bool) {
	t.Helper()
	value := "light"
	if dark {
		value = "dark"
	}
	send(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}})
}

// open shows a page from a file, and returns its address.
func (b *browser) open(t *testing.T, p *Page) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	var text bytes.Buffer
	require.NoError(t, p.HTML(&text))
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
	url := "file://" + path
	b.mu.Lock()
	b.requests, b.complaints = nil, nil
	b.mu.Unlock()
	b.do(t, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS("#throughput canvas")))
	return url
}

func pageOf(name string, runs ...*Run) *Page {
	for i, r := range runs {
		r.group = i
	}
	return &Page{Title: name, Runs: runs}
}

func runOf(t *testing.T, name string, r *result.Result) *Run {
	t.Helper()
	run := newRun(name, r, 1)
	return run
}

// violations returns the problems of accessibility that axe finds.
func (b *browser) violations(t *testing.T) []string {
	t.Helper()
	script := musttest.Get(os.ReadFile("testdata/axe/axe.min.js"))(t)
	b.call(t, string(script))
	text := eval[string](t, b, `axe.run(document).then(r => JSON.stringify({
		passes: r.passes.length, violations: r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html.slice(0, 200) + " " + n.failureSummary).join("; ")) }))`)
	var found struct {
		Passes     int
		Violations []string
	}
	require.NoError(t, json.Unmarshal([]byte(text), &found))
	assert.Greater(t, found.Passes, 15, "axe has looked")
	return found.Violations
}

// value returns the text of a chart for screen readers.
func (b *browser) value(t *testing.T, chart string) string {
	t.Helper()
	return eval[string](t, b, fmt.Sprintf(`document.querySelector('#%s .plot').getAttribute('aria-valuetext')`, chart))
}

// TestPageInBrowser drives the charts by mouse and by keys.
func TestPageInBrowser(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	r := told(t)
	url := b.open(t, pageOf("run", runOf(t, "run", r)))
	assert.Equal(t, int64(12), eval[int64](t, b, `[...document.querySelectorAll('#charts figure')].filter(f => !f.hidden && f.querySelector('canvas')).length`))

	// Values by the mouse, right of the middle of the chart at 3.5 s: the nearest second ended at 4 s.
	x, y := b.middle(t, "throughput", 0.51)
	b.do(t, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
	b.until(t, `document.querySelector('#throughput .at').textContent === '4 s'`)
	assert.Equal(t, "completed 100/s, received 100/s, sent 100/s", strings.TrimPrefix(b.value(t, "throughput"), "4 s: "))

	// Values by keys: the second of the stall, and the last one with a rate.
	key := func(chart string, keys ...string) {
		t.Helper()
		b.do(t, chromedp.Focus(chromedp.CSS("#"+chart+" .plot")))
		for _, k := range keys {
			b.do(t, chromedp.KeyEvent(k))
		}
	}
	key("throughput", kb.Home, kb.ArrowRight, kb.ArrowRight, kb.ArrowRight, kb.ArrowRight)
	assert.Equal(t, "5 s: completed 0/s, received 0/s, sent 100/s, stall (send): 1.00 s at 4.00 s", b.value(t, "throughput"))
	key("throughput", kb.ArrowRight)
	assert.Equal(t, "6 s: completed 200/s, received 200/s, sent 100/s, outage: 800 ms at 5.50 s", b.value(t, "throughput"))
	key("throughput", kb.End)
	assert.Contains(t, b.value(t, "throughput"), "outage from 6.90 s on: no message came through after it")
	assert.Contains(t, eval[string](t, b, `document.querySelector('#throughput .note').textContent`), "stalls in red, outages in violet")
	// The second of the stall has no latency, and takes none from its neighbours, by keys and by the mouse.
	key("latency", kb.Home, kb.ArrowRight, kb.ArrowRight, kb.ArrowRight, kb.ArrowRight)
	assert.Equal(t, "5 s: p50 -, p99 -, max -, stall (send): 1.00 s at 4.00 s", b.value(t, "latency"))
	x, y = b.middle(t, "latency", 5.0/7)
	b.do(t, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
	b.until(t, `[...document.querySelectorAll('#latency .value')].every(v => v.textContent === '-')`)

	// The broker used half a processor; the third second has no figures.
	key("side-cores", kb.Home, kb.ArrowRight)
	assert.Equal(t, "2 s: process 0.50 cores", b.value(t, "side-cores"))
	key("side-shares", kb.Home, kb.ArrowRight, kb.ArrowRight)
	assert.Equal(t, "3 s: garbage collection -, busiest disk -", b.value(t, "side-shares"))
	b.call(t, `const s = document.querySelector('#side-others select'); s.value = 'warnings in the log'; s.dispatchEvent(new Event('change'))`)
	key("side-others", kb.Home)
	assert.Equal(t, "1 s: warnings in the log 0/s", b.value(t, "side-others"))

	// Without the warm-up, the first point is the third second.
	toggle := func(chart, label string) {
		t.Helper()
		b.call(t, fmt.Sprintf(`[...document.querySelectorAll('#%s .controls label')].find(l => l.textContent.includes('%s')).querySelector('input').click()`, chart, label))
	}
	toggle("throughput", "warm-up")
	key("throughput", kb.Home)
	assert.Equal(t, "3 s: completed 100/s, received 100/s, sent 100/s", b.value(t, "throughput"))
	toggle("throughput", "warm-up")

	// The curve by percentile has the 500 messages after the warm-up.
	key("percentiles", kb.End)
	assert.Equal(t, "99.8% within: ack 2.29 ms, transfer 4.58 ms", b.value(t, "percentiles"))

	// Another latency, and a hidden curve.
	b.call(t, `const s = document.querySelector('#latency select'); s.value = 'transfer'; s.dispatchEvent(new Event('change'))`)
	key("latency", kb.Home)
	assert.Contains(t, b.value(t, "latency"), "p99 1.58 ms")
	colored := `(() => { const c = document.querySelector('#tester canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200 && d[i + 2] > d[i] + 100) n++; return n; })()`
	assert.Greater(t, eval[int64](t, b, colored), int64(100), "the curve of perfmq is blue")
	b.do(t, chromedp.Click(chromedp.CSS("#tester .legend button")))
	b.until(t, colored+" === 0")
	b.quiet(t, url)
}

// TestPageForEveryone: the page is accessible in light and dark mode and at any width. A single run takes three screens.
func TestPageForEveryone(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	b.open(t, pageOf("plain", runOf(t, "plain", resultOf(t, usual()))))
	assert.LessOrEqual(t, eval[float64](t, b, `document.documentElement.scrollHeight / innerHeight`), 3.0)
	url := b.open(t, pageOf("run", runOf(t, "run", told(t))))
	send(t, b, cdppage.SetBypassCSP, cdppage.SetBypassCSPParams{Enabled: true}) // axe is not part of the page
	for _, c := range []struct {
		name          string
		width, height int64
		dark          bool
	}{
		{"desktop-light", 1280, 900, false}, {"phone-dark", 390, 844, true},
	} {
		b.window(t, c.width, c.height)
		b.dark(t, c.dark)
		b.do(t, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS("#throughput canvas")))
		assert.Empty(t, b.violations(t), c.name)
		assert.LessOrEqual(t, eval[int64](t, b, `document.documentElement.scrollWidth`), c.width, "%s: it scrolls to the side", c.name)
	}
	// On paper the page is light in any mode, and fits.
	b.dark(t, true)
	b.call(t, `addEventListener('beforeprint', () => { window.printed = [document.documentElement.dataset.theme, document.querySelector('#throughput canvas').clientWidth]; })`)
	yes := true
	pdf := send(t, b, cdppage.PrintToPDF, cdppage.PrintToPDFParams{PrintBackground: &yes, PreferCSSPageSize: &yes}).Data
	assert.Equal(t, "%PDF-", string(pdf[:5]))
	printed := eval[[]any](t, b, `window.printed`)
	assert.Equal(t, "light", printed[0])
	assert.LessOrEqual(t, printed[1].(float64), 700.0)
	b.until(t, `document.documentElement.dataset.theme === undefined`)
	b.window(t, 718, 1000)
	send(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	b.call(t, `dispatchEvent(new Event('beforeprint'))`)
	assert.LessOrEqual(t, eval[int64](t, b, `document.documentElement.scrollWidth`), int64(718), "it is wider than paper")
	b.quiet(t, url)
}

// TestUnusualPagesInBrowser: the only full second of a run is seen, though there is no line to draw; texts of a result
// stay texts; twelve hours of seconds are drawn, including a stall of a second.
func TestUnusualPagesInBrowser(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	t.Run("a lonely point", func(t *testing.T) {
		r := resultOf(t, []load{
			{step: "load", phase: result.Measure, sent: 100, completed: 100, receive: 50},
			{step: "load", phase: result.Drain, receive: 50, length: second / 10}, // too short for a rate
		})
		url := b.open(t, pageOf("run", runOf(t, "run", r)))
		b.until(t, `(() => { const c = document.querySelector('#throughput canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i + 2] > d[i] + 100) n++; return n > 4; })()`)
		b.quiet(t, url)
	})
	t.Run("hostile texts", func(t *testing.T) {
		const evil = `</script><script>alert(1)</script><img src=x onerror=alert(1)>"'` + "`\u2028"
		r := told(t)
		r.Outages[0].Host, r.BrokerSide[0].Events[0].Text = evil, evil
		r.Scenario, r.Stalls[0].Side, r.Findings[0].Text, r.Outcome.Reason = evil, evil, evil, evil
		r.Steps = append(r.Steps, result.Step{Name: evil})
		p := pageOf(evil, runOf(t, evil, r), runOf(t, evil+"2", told(t)))
		url := b.open(t, p)
		assert.Contains(t, eval[string](t, b, `document.querySelector('#throughput .legend').textContent`), evil[:40])
		assert.Equal(t, int64(0), eval[int64](t, b, `document.querySelectorAll('img').length`))
		b.quiet(t, url)
	})
	t.Run("a long page", func(t *testing.T) {
		url := b.open(t, pageOf("night", runOf(t, "night", long(12*3600))))
		b.do(t, chromedp.Focus(chromedp.CSS("#throughput .plot")), chromedp.KeyEvent(kb.End))
		assert.Contains(t, b.value(t, "throughput"), "12:00 h: completed ")
		found := eval[bool](t, b, `(() => { const p = document.querySelector('#throughput .plot'); const n = +p.getAttribute('aria-valuemax');
			for (let i = 0; i < n; i++) { p.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft' })); if (/completed [\d,]+\/s \(1\/s to 4,000\/s\)/.test(p.getAttribute('aria-valuetext'))) return true; } return false; })()`)
		assert.True(t, found, "the shade of a point reaches down to its lowest second")
		b.quiet(t, url)
	})
}

// printed starts perfmq, and returns what follows a text on one of its first lines. It ends with the test.
func printed(t *testing.T, binary, after string, args ...string) (string, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	out, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = out.Close() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, rest, ok := strings.Cut(lines.Text(), after); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return rest, cmd
		}
	}
	require.Fail(t, "perfmq has not printed "+after)
	return "", nil
}

// TestLiveRunInBrowser: the page of a real run shows its progress, its thresholds, and an outage while it lasts; after
// an interrupt it is the page of the result.
func TestLiveRunInBrowser(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	binary := filepath.Join(t.TempDir(), "perfmq")
	out, err := exec.Command("go", "build", "-o", binary, "../../cmd/perfmq").CombinedOutput()
	require.NoError(t, err, "%s", out)
	amqp, broker := printed(t, binary, "amqp      ", "broker", "--listen-amqp", "127.0.0.1:0", "--listen-stomp", "off", "--listen-rocketmq", "off", "--control", "off")
	require.NotNil(t, broker)
	url, client := printed(t, binary, "the page of this run is at ", "amqp", "client", "--url", amqp, "--reconnect", "--verify", "--rate", "200", "--max-pending", "100",
		"--duration", "10m", "--threshold", "ack.p99 < 1us", "--threshold", "failed == 0", "--threshold", "lost == 0", "--web", "127.0.0.1:0", "queue://LIVE")
	b.do(t, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS("#throughput canvas")))
	now := `document.getElementById('now').textContent`
	b.until(t, `/0:[0-5][1-9] of 10:00, 9:[0-5]\d left/.test(`+now+`) && `+now+`.includes('without a value yet: lost == 0')`)
	b.until(t, `document.body.textContent.includes('ack.p99 < 1us')`)
	b.do(t, chromedp.Click(chromedp.CSS("#throughput .legend li:last-child button"))) // must stay hidden after updates
	b.until(t, `document.querySelector('#throughput .plot').getAttribute('aria-valuemax') > 4`)
	assert.Equal(t, "false", eval[string](t, b, `document.querySelector('#throughput .legend li:last-child button').getAttribute('aria-pressed')`))
	require.NoError(t, broker.Process.Kill())
	b.until(t, `/Outage for [\d.]+ s2 workers not connected/.test(`+now+`)`)
	require.NoError(t, client.Process.Signal(os.Interrupt))
	b.until(t, `document.getElementById('now').hidden && document.getElementById('live').textContent === 'The run has ended'`)
	b.quiet(t, url)
}
