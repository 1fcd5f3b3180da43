package page

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func get(t *testing.T, method, url, host string) (int, string, http.Header) {
	t.Helper()
	r := musttest.Get(http.NewRequestWithContext(t.Context(), method, url, nil))(t)
	r.Host = host
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text := musttest.Get(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, string(text), answer.Header
}

// TestFeed: the page is served during the run with the figures so far, and at the end with the outcome.
func TestFeed(t *testing.T) {
	t.Parallel()
	f := musttest.Get(NewFeed("127.0.0.1:0"))(t)
	url := "http://" + f.Address() + "/"
	page := func(after string) string {
		status, text, _ := get(t, http.MethodGet, url+"?after="+after, "")
		for status == http.StatusNoContent { // pollTime is over
			status, text, _ = get(t, http.MethodGet, url+"?after="+after, "")
		}
		assert.Equal(t, http.StatusOK, status)
		return text
	}
	r := resultOf(t, usual())
	first := make(chan string)
	go func() { first <- page("") }()
	require.NoError(t, f.Start(r.Head))
	assert.Contains(t, <-first, "Running", "a browser that comes early waits for the start")
	for i := range 3 {
		require.NoError(t, f.Row(r.Rows[i]))
	}
	_, text, header := get(t, http.MethodGet, url, "")
	assert.Contains(t, text, `<meta name="live" content="3">`)
	assert.Contains(t, text, "connect-src 'self'")
	assert.Contains(t, text, "Sent 250 messages")
	assert.Equal(t, "no-store", header.Get("Cache-Control"))
	assert.Equal(t, "frame-ancestors 'none'", header.Get("Content-Security-Policy"))

	newer := make(chan string)
	go func() { newer <- page("3") }()
	select {
	case <-newer:
		t.Error("there was nothing newer")
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, f.Row(r.Rows[3]))
	text = <-newer
	assert.Contains(t, text, `<meta name="live" content="4">`)
	assert.Contains(t, text, "Sent 350 messages")

	require.NoError(t, f.Finish(*r))
	text = page("4")
	assert.Contains(t, text, `<meta name="live" content="ended">`)
	assert.Contains(t, text, "Success")
	assert.Contains(t, text, "Sent 650 messages")
	require.NoError(t, f.Close())
}

// TestFeedNow: a run that continues has its thresholds as they stand, its findings and its outage. A threshold without
// a value is apart.
func TestFeedNow(t *testing.T) {
	t.Parallel()
	f := newFeed(silent{make(chan struct{})}, "")
	defer f.http.Close()
	require.NoError(t, f.Start(head()))
	row, value := rowsOf(usual())[0], 12_000.0
	f.Look(&stats.Snapshot{
		Row: row, Outage: &stats.OutageProgress{Down: 2, Since: 3200 * time.Millisecond},
		SoFar: &stats.Summary{Result: result.Result{
			Thresholds: []result.Threshold{{Threshold: "ack.p99 < 10ms", Measured: &value}, {Threshold: "lost == 0"}},
			Findings:   []result.Finding{words.Find("failed", "", 3, 3), words.Find("foreign", "", 4, 4)},
		}},
	})
	require.NoError(t, f.Row(row))
	r := f.run.rated(f.sum)
	n := f.now(r)
	assert.Equal(t, now{Elapsed: second, InStep: second, Phase: "warmup", Step: "load", Outage: 3_200_000, Down: 2, Pending: []string{"lost == 0"}, Plan: head().Plan}, *n)
	assert.Equal(t, []string{"messages failed: 3"}, r.Outcome.Problems)
	assert.Equal(t, []string{"messages of other runs or tools received and not counted: 4"}, r.Outcome.Warnings)
	assert.Equal(t, []result.Threshold{{Threshold: "ack.p99 < 10ms", Measured: &value}}, r.Thresholds)
}

// TestFeedClose: Close waits for the browser that was answered, so that it gets the last version.
func TestFeedClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(silent{make(chan struct{})}, "")
		page := func() string {
			w := httptest.NewRecorder()
			f.serve(w, httptest.NewRequest(http.MethodGet, "/", nil))
			return w.Body.String()
		}
		r := resultOf(t, usual())
		require.NoError(t, f.Start(r.Head))
		assert.Contains(t, page(), "Running")
		answered := time.Now()
		require.NoError(t, f.Finish(*r))
		closed := make(chan error, 1)
		go func() { closed <- f.Close() }()
		<-time.After(seenTime - lookEvery/2)
		assert.Empty(t, closed)
		assert.Contains(t, page(), `<meta name="live" content="ended">`)
		require.NoError(t, <-closed)
		assert.Equal(t, seenTime, time.Since(answered))
	})
}

// silent is a listener to which nobody connects.
type silent struct{ closed chan struct{} }

func (l silent) Accept() (net.Conn, error) { <-l.closed; return nil, net.ErrClosed }
func (l silent) Close() error              { close(l.closed); return nil }
func (l silent) Addr() net.Addr            { return &net.TCPAddr{} }

// TestFeedBeforeStart: before the run begins, a browser keeps the page of another run, and without a page gets an error.
func TestFeedBeforeStart(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]int{"": http.StatusServiceUnavailable, "?after=3": http.StatusNoContent} {
		synctest.Test(t, func(t *testing.T) {
			w := httptest.NewRecorder()
			(&Feed{}).serve(w, httptest.NewRequest(http.MethodGet, "/"+query, nil))
			assert.Equal(t, want, w.Code)
		})
	}
}

// TestFeedOnlyReads: only the page is served, and only under the names of this machine.
func TestFeedOnlyReads(t *testing.T) {
	t.Parallel()
	f := musttest.Get(NewFeed(":0"))(t)
	defer f.Close()
	r := resultOf(t, usual())
	require.NoError(t, f.Start(r.Head))
	url := "http://" + f.Address() + "/"
	for _, c := range []struct {
		method, path, host string
		want               int
	}{
		{"GET", "", "", http.StatusOK},
		{"GET", "", "evil.example", http.StatusMisdirectedRequest},
		{"POST", "", "", http.StatusMethodNotAllowed},
		{"GET", "rows.jsonl", "", http.StatusNotFound},
	} {
		status, text, _ := get(t, c.method, url+c.path, c.host)
		assert.Equal(t, c.want, status, "%s %s: %s", c.method, c.path, text)
	}
	_, err := NewFeed(f.Address())
	assert.ErrorContains(t, err, "listen for the page")
	assert.Contains(t, driver.HintOf(err), "--web")
}
