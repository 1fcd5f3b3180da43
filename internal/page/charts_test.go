package page

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestHeat: each latency counts in the bucket of its second and size, and columns join as the run gets longer.
func TestHeat(t *testing.T) {
	t.Parallel()
	loads := []load{
		{step: "load", phase: result.Measure, ack: []int64{0, 1, 2, 255, 256, 256, 300}}, // 256 us count as 257
		{step: "load", phase: result.Measure, ack: []int64{2, 1_000_000}},
	}
	d := newRun("run", resultOf(t, loads), 1).data()
	assert.Equal(t, &heat{Width: second, Columns: []buckets{{0: 2, 8: 1, 64: 1, 65: 2, 66: 1}, {8: 1, 160: 1}}}, d.Heat["ack"])
	assert.Equal(t, buckets{0: 2, 8: 2, 64: 1, 65: 2, 66: 1, 160: 1}, d.Bars["ack"])

	for range 1000 {
		loads = append(loads, loads[1])
	}
	read := resultOf(t, loads)
	m := newRun("run", read, 1).data().Heat["ack"]
	assert.Equal(t, int64(16*second), m.Width)
	require.Len(t, m.Columns, 63)
	assert.Equal(t, []buckets{{0: 2, 8: 16, 64: 1, 65: 2, 66: 1, 160: 15}, {8: 16, 160: 16}, {8: 10, 160: 10}}, []buckets{m.Columns[0], m.Columns[1], m.Columns[62]})

	assert.Empty(t, newRun("run", read, 2).data().Heat, "of several runs there are no maps")
}

// middle returns the place at a share of a chart's width, halfway up.
func (b *browser) middle(t *testing.T, chart string, share float64) (x, y float64) {
	t.Helper()
	at := eval[[]float64](t, b, fmt.Sprintf(`(() => { const e = document.querySelector('#%s .u-over'); e.scrollIntoView({ block: 'center' }); const o = e.getBoundingClientRect(); return [o.left + o.width * %v, o.top + o.height / 2]; })()`, chart, share))
	return at[0], at[1]
}

// drag presses the mouse at one share of a chart's width, and releases it at another.
func (b *browser) drag(t *testing.T, chart string, from, to float64) {
	t.Helper()
	x, y := b.middle(t, chart, from)
	end, _ := b.middle(t, chart, to)
	b.do(t, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y), chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	b.do(t, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, (x+end)/2, y, chromedp.ButtonLeft), chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, end, y, chromedp.ButtonLeft))
	b.do(t, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, end, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
}

// TestZoomInBrowser: dragging zooms both ends of all charts over time, and a double click resets them.
func TestZoomInBrowser(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	url := b.open(t, pageOf("run", runOf(t, "run", told(t))))
	ranges := func(want string) {
		t.Helper()
		assert.Equal(t, want, eval[string](t, b, `[...new Set([...document.querySelectorAll('#charts figure')].filter(f => !f.hidden && f.id !== 'percentiles' && f.id !== 'histogram').map(f => f.querySelector('.whole').textContent))].join()`))
	}
	ends := func(chart, first, last string) {
		t.Helper()
		b.do(t, chromedp.Focus(chromedp.CSS("#"+chart+" .plot")), chromedp.KeyEvent(kb.Home))
		assert.Regexp(t, "^"+first+": ", b.value(t, chart))
		b.do(t, chromedp.KeyEvent(kb.End))
		assert.Regexp(t, "^"+last+": ", b.value(t, chart))
	}
	b.drag(t, "throughput", 1.5/7, 5.5/7)
	ranges("1.5 s to 5.5 s ×")
	ends("throughput", "2 s", "5 s")
	ends("latency", "2 s", "5 s")
	ends("percentiles", "0% within", "99.8% within")
	b.drag(t, "heat", 3.0/4, 1.0/4) // of four seconds, from right to left
	ranges("2.5 s to 4.5 s ×")
	x, y := b.middle(t, "heat", 0.5)
	b.do(t, chromedp.MouseClickXY(x, y), chromedp.MouseClickXY(x, y, chromedp.ClickCount(2)))
	ranges("")
	ends("throughput", "1 s", "7 s")
	b.do(t, chromedp.KeyEvent("+")) // around the last second
	ranges("5.3 s to 7 s ×")
	b.do(t, chromedp.KeyEvent(kb.Escape))
	ranges("")
	b.quiet(t, url)
}

// TestPicturesInBrowser: each chart is saved as a PNG with a background, and more colours than that.
func TestPicturesInBrowser(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	url := b.open(t, pageOf("run: a/b", runOf(t, "run", told(t))))
	b.call(t, `URL.createObjectURL = blob => { window.saved = blob; return '#'; }; HTMLAnchorElement.prototype.click = function () { window.file = this.download; }`)
	for _, id := range strings.Fields(eval[string](t, b, `[...document.querySelectorAll('#charts figure')].filter(f => !f.hidden).map(f => f.id).join(' ')`)) {
		b.call(t, fmt.Sprintf(`window.file = ''; document.querySelector('#%s .png').click()`, id))
		b.until(t, `window.file !== ''`)
		assert.Equal(t, "run-a-b-"+id+".png", eval[string](t, b, `window.file`))
		text := eval[string](t, b, `new Promise(done => { const r = new FileReader(); r.onload = () => done(r.result.split(',')[1]); r.readAsDataURL(window.saved); })`)
		raw := musttest.Get(base64.StdEncoding.DecodeString(text))(t)
		picture := musttest.Get(png.Decode(bytes.NewReader(raw)))(t)
		size := picture.Bounds().Size()
		assert.Equal(t, eval[int](t, b, fmt.Sprintf(`document.querySelector('#%s canvas').width`, id))+40, size.X)
		assert.Equal(t, color.RGBAModel.Convert(color.White), color.RGBAModel.Convert(picture.At(0, 0)), "the background")
		assert.Greater(t, len(raw), 4000, id)
	}
	b.quiet(t, url)
}

// TestChartsSayWhatTheyDo: one of two equal curves is dashed, peaks make the scale logarithmic, and the curves end with
// the load.
func TestChartsSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	loads := usual()
	loads[5].completed = 2000 // after the stall
	loads = append(loads, load{step: "load", phase: result.Drain, backlog: -1}, load{step: "load", phase: result.Drain, backlog: -1})
	b := newBrowser(t)
	url := b.open(t, pageOf("run", runOf(t, "run", resultOf(t, loads))))
	note := `document.querySelector('#throughput .note').textContent`
	assert.Contains(t, eval[string](t, b, note), "The scale is logarithmic, since the highest second is 20 times the median.")
	b.call(t, `[...document.querySelectorAll('#throughput .controls label')].find(l => l.textContent.includes('log')).querySelector('input').click()`)
	assert.NotContains(t, eval[string](t, b, note), "logarithmic")
	assert.Equal(t, "completed: received:8 6 sent:2 3", eval[string](t, b, `[...document.querySelectorAll('#throughput .legend button')].map(e => e.textContent + ':' + e.querySelector('line').getAttribute('stroke-dasharray')).join(' ')`))
	b.do(t, chromedp.Focus(chromedp.CSS("#throughput .plot")), chromedp.KeyEvent(kb.End))
	assert.Equal(t, "9.1 s: completed -, received -, sent -", b.value(t, "throughput"))

	// The seconds of the heat map, by keys.
	b.do(t, chromedp.Focus(chromedp.CSS("#heat .plot")), chromedp.KeyEvent(kb.Home))
	assert.Regexp(t, `^0 s to 1 s: 50 messages, most \(\d+\) with \d+ µs to \d+ µs$`, b.value(t, "heat"))
	b.quiet(t, url)
}
