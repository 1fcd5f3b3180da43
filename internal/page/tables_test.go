package page

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

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
	assert.Equal(t, "run,elapsed s,send: total,send: succeeded,send: failed,send: average/s", strings.Join(strings.Split(lines[0], ",")[:6], ","))
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
