package page

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestSeveralInBrowser: the pages of a sweep, a search and a comparison draw their charts, are accessible, and have at
// most five screens at any width.
func TestSeveralInBrowser(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	send(t, b, cdppage.SetBypassCSP, cdppage.SetBypassCSPParams{Enabled: true}) // axe is not part of the page
	for _, c := range []struct {
		name, drawn string
		page        func(t *testing.T, dir string) *Page
		try         func(t *testing.T)
	}{
		{"sweep", "#matrix", func(t *testing.T, dir string) *Page {
			t.Helper()
			swept(t, dir)
			return pageIn(t, dir)
		}, func(t *testing.T) {
			t.Helper()
			const point = "threads=128 queues=32: at least 2,115/s ±0.2% (2 runs), a threshold failed"
			assert.Equal(t, int64(5), eval[int64](t, b, `document.querySelectorAll('#matrix a').length`), "a cell has failed")
			assert.Equal(t, int64(2), eval[int64](t, b, `document.querySelectorAll('#matrix a[aria-label="`+point+`"] :is(circle[fill^="url"], circle.broken)').length`), "it is hatched and red")
			assert.Contains(t, eval[string](t, b, `document.querySelector('#matrix .legend').textContent`), "perfmq was the limit: at least")
			assert.Equal(t, "long bounded broken", eval[string](t, b, `[...document.querySelectorAll('.scroll[aria-label="Cells"] td')].find(td => td.textContent.startsWith('at least 2,115')).className`))
			b.call(t, `const s = document.querySelector('#matrix select'); s.value = 'broker.cpu'; s.dispatchEvent(new Event('change'))`)
			assert.Contains(t, eval[string](t, b, `document.querySelector('#matrix svg.draw').textContent`), "broker.cpu, cores")
			assert.Equal(t, "image/png", eval[string](t, b, `new Promise(done => { URL.createObjectURL = blob => { done(blob.type); return '#'; }; document.querySelector('#matrix .png').click(); })`))
			assert.False(t, eval[bool](t, b, `document.getElementById('run-2').open || document.getElementById('runs').open`))
			b.call(t, `document.querySelector('.scroll[aria-label="Cells"] tbody tr:nth-child(2) a').click()`)
			b.until(t, `document.getElementById('run-2').open && document.getElementById('runs').open`)
			b.call(t, `document.getElementById('runs').open = false; location.hash = ''`)
			b.call(t, `document.getElementById('over-time').open = true`)
			b.until(t, `document.querySelector('#throughput canvas').clientWidth > 300`)
			b.call(t, `document.getElementById('over-time').open = false`)
		}},
		{"search", "#search", func(t *testing.T, dir string) *Page {
			t.Helper()
			searchedIn(t, dir)
			return pageIn(t, dir)
		}, func(t *testing.T) {
			t.Helper()
			assert.Equal(t, []string{
				"100 msg/s: pass, ack.p99 100 ms", "200 msg/s: pass, ack.p99 200 ms", "400 msg/s: undecided, ack.p99 400 ms", "300 msg/s: fail, ack.p99 300 ms",
				"200 msg/s: pass, held for longer, ack.p99 200 ms",
			}, eval[[]string](t, b, `[...document.querySelectorAll('#search a')].map(a => a.getAttribute('aria-label'))`))
			assert.InDelta(t, 1, eval[float64](t, b, `(() => { const x = text => +document.querySelector('#search a[aria-label^="' + text + '"] circle').getAttribute('cx');
				return (x('300') - x('100')) / (Math.log(3) / Math.log(2)) / (x('200') - x('100')); })()`), 1e-6, "the axis is logarithmic")
			assert.Contains(t, eval[string](t, b, `document.querySelector('#search svg.draw').textContent`), "maximum: 200 msg/s")
			assert.Contains(t, eval[string](t, b, `document.querySelector('#search svg.draw').textContent`), "ack.p99 < 250ms")
		}},
		{"comparison", "#compared-completed-avg", func(t *testing.T, _ string) *Page {
			t.Helper()
			return compared(t)
		}, func(t *testing.T) {
			t.Helper()
			assert.Equal(t, int64(10), eval[int64](t, b, `document.querySelectorAll('#compared-completed-avg circle').length`))
			assert.Contains(t, eval[string](t, b, `document.querySelector('#compared-completed-avg figcaption').textContent`), "+10.0% (+9.3% to +10.6%), p=0.008: better")
			assert.Equal(t, "kept", eval[string](t, b, `document.querySelector('.scroll[aria-label="Side by side"] tbody td:last-child').className`))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.window(t, 1280, 900)
			b.dark(t, false)
			path := filepath.Join(t.TempDir(), "report.html")
			var text bytes.Buffer
			require.NoError(t, c.page(t, t.TempDir()).HTML(&text))
			require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
			url := "file://" + path
			b.mu.Lock()
			b.requests, b.complaints = nil, nil
			b.mu.Unlock()
			b.do(t, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS(c.drawn+" svg.draw")))
			c.try(t)
			for _, size := range [][2]int64{{1280, 900}, {390, 844}} {
				b.window(t, size[0], size[1])
				b.dark(t, size[0] < 500)
				b.until(t, `document.querySelector('`+c.drawn+` svg.draw').viewBox.baseVal.width <= innerWidth`)
				assert.Empty(t, b.violations(t))
				assert.LessOrEqual(t, eval[int64](t, b, `document.documentElement.scrollWidth`), size[0], "it scrolls to the side")
				if c.name != "comparison" { // which has its curves open
					assert.LessOrEqual(t, eval[float64](t, b, `document.documentElement.scrollHeight / innerHeight`), 5.0)
				}
			}
			b.quiet(t, url)
		})
	}
}

func pageIn(t *testing.T, dir string) *Page {
	t.Helper()
	p := musttest.Get(Read(dir))(t)
	return p
}

// compared is a page of two sets of five repeats: the rate of the second is higher by a tenth.
func compared(t *testing.T) *Page {
	t.Helper()
	p := &Page{Title: "old and new"}
	for i := range 10 {
		rate := 1000 + 2*float64(i%5) + 100*float64(i/5)
		r := resultOf(t, usual())
		r.Figures.Completed, r.Latencies = &rate, result.Latencies{}
		run := runOf(t, [...]string{"old", "new"}[i/5], r)
		run.group = i / 5
		p.Runs = append(p.Runs, run)
	}
	return p
}

// download clicks on a button, and returns the name and the content of the file that the browser saves.
func (b *browser) download(t *testing.T, button string) (name, content string) {
	t.Helper()
	dir := t.TempDir()
	send(t, b, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{Behavior: "allow", DownloadPath: dir})
	b.do(t, chromedp.Click(chromedp.CSS(button)))
	require.Eventually(t, func() bool {
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 1 || strings.HasSuffix(files[0].Name(), ".crdownload") {
			return false
		}
		text, err := os.ReadFile(filepath.Join(dir, files[0].Name()))
		name, content = files[0].Name(), string(text)
		return err == nil && len(text) > 0
	}, time.Minute, 20*time.Millisecond, button)
	return name, content
}

// TestTablesOutOfPage: each table is saved as CSV and JSON, with numbers as numbers, and texts that are no formulas.
func TestTablesOutOfPage(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	r := told(t)
	r.Total.Producers.Sent = 12345
	r.Errors = []result.Failure{{Class: "=1+1", Count: 3, Examples: []string{`a "b", c`}}}
	b.open(t, pageOf("A run: 1", runOf(t, "run", r)))
	name, text := b.download(t, `#t-messages [data-as=csv]`)
	assert.Equal(t, "a-run-1-messages.csv", name)
	lines := strings.Split(text, "\r\n")
	assert.Equal(t, "run,elapsed s,send: total,send: completed,send: failed,send: average/s", strings.Join(strings.Split(lines[0], ",")[:6], ","))
	assert.Equal(t, "run,7.1,12345,650,0,100", strings.Join(strings.Split(lines[1], ",")[:6], ","))
	_, text = b.download(t, `#t-failures-by-class [data-as=csv]`)
	assert.Equal(t, "class,messages,first\r\n'=1+1,3,\"a \"\"b\"\", c\"\r\n", text)
	_, text = b.download(t, `#t-thresholds [data-as=json]`)
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &rows))
	assert.Equal(t, map[string]any{"threshold": "completed.avg > 1000", "measured": nil, "result": "failed"}, rows[1])
}

// TestContents: the contents stay in view, name the part in view, and open a folded table.
func TestContents(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	url := b.open(t, pageOf("run", runOf(t, "run", told(t))))
	current := `document.querySelector('#contents a[aria-current]').textContent`
	assert.Equal(t, "Verdict", eval[string](t, b, current))
	assert.Equal(t, "none", eval[string](t, b, `[...document.querySelectorAll('#contents a')].filter(a => !document.getElementById(decodeURIComponent(a.hash.slice(1)))).map(a => a.hash).join() || 'none'`))
	b.do(t, chromedp.Focus(chromedp.CSS(`#contents a[href="#t-plan"]`)), chromedp.KeyEvent("\r"))
	b.until(t, `document.getElementById('t-plan').open && scrollY > 500`)
	b.until(t, current+` === 'Plan'`)
	assert.Equal(t, int64(0), eval[int64](t, b, `Math.round(document.getElementById('contents').getBoundingClientRect().top)`))
	b.quiet(t, url)
}
