package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func get(t *testing.T, method, url, host string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	r.Host = host
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text), answer.Header
}

// answered is an answer of /data.
type answered struct {
	Version      uint64
	Final        bool
	Words, Error string
	Data         json.RawMessage
}

func fetch(t *testing.T, url string) (n answered) {
	t.Helper()
	status, text, _ := get(t, http.MethodGet, url, "")
	require.Equal(t, http.StatusOK, status, text)
	require.NoError(t, json.Unmarshal([]byte(text), &n))
	return n
}

// TestFeed: the page is served during the run with the figures so far, and at the end with the outcome.
func TestFeed(t *testing.T) {
	t.Parallel()
	f, err := NewFeed("127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + f.Address() + "/"
	r, _ := resultOf(t, usual())
	require.NoError(t, f.Start(r.Head))
	for i := range 3 {
		require.NoError(t, f.Row(r.Rows[i]))
	}
	status, text, header := get(t, http.MethodGet, url, "")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, text, `<meta name="live" content="4">`)
	assert.Contains(t, text, "connect-src 'self'")
	assert.Contains(t, text, "Sent 250 messages")
	assert.Equal(t, "no-store", header.Get("Cache-Control"))
	assert.Equal(t, "frame-ancestors 'none'", header.Get("Content-Security-Policy"))

	newer := make(chan answered)
	go func() { newer <- fetch(t, url+"data?after=4") }()
	select {
	case <-newer:
		t.Error("there was nothing newer")
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, f.Row(r.Rows[3]))
	n := <-newer
	assert.Equal(t, uint64(5), n.Version)
	assert.False(t, n.Final)
	assert.Contains(t, n.Words, "Sent 350 messages")
	assert.Contains(t, n.Words, "Running")
	assert.NotEmpty(t, n.Data)

	// Close waits for the browser that was answered, so that it gets the last version.
	for i := 4; i < len(r.Rows); i++ {
		require.NoError(t, f.Row(r.Rows[i]))
	}
	require.NoError(t, f.Finish(*r))
	closed := make(chan error)
	go func() { closed <- f.Close() }()
	n = fetch(t, url+"data?after=5")
	assert.True(t, n.Final)
	assert.Contains(t, n.Words, "Success")
	assert.Contains(t, n.Words, "Sent 650 messages")
	require.NoError(t, <-closed)
}

// TestServerOnlyReads: only the page and its data are served, and only under the names of this machine.
func TestServerOnlyReads(t *testing.T) {
	t.Parallel()
	s, err := NewServer(":0", "--web")
	require.NoError(t, err)
	defer s.Close()
	s.Publish(func() (*Page, error) { return nil, errors.New("the disk is gone") }, false)
	url := "http://" + s.Address().String() + "/"
	for _, c := range []struct {
		method, path, host string
		want               int
	}{
		{"GET", "", "", http.StatusInternalServerError},
		{"GET", "", "evil.example", http.StatusMisdirectedRequest},
		{"GET", "data?after=0", "evil.example", http.StatusMisdirectedRequest},
		{"POST", "", "", http.StatusMethodNotAllowed},
		{"PUT", "data?after=0", "", http.StatusMethodNotAllowed},
		{"GET", "data", "", http.StatusBadRequest},
		{"GET", "data?after=-1", "", http.StatusBadRequest},
		{"GET", "rows.jsonl", "", http.StatusNotFound},
		{"GET", "%2e%2e/etc/passwd", "", http.StatusNotFound},
	} {
		status, text, _ := get(t, c.method, url+c.path, c.host)
		assert.Equal(t, c.want, status, "%s %s: %s", c.method, c.path, text)
	}
	n := fetch(t, url+"data?after=0")
	assert.Equal(t, "the disk is gone", n.Error)
	_, err = NewServer(s.Address().String(), "--web")
	assert.ErrorContains(t, err, "listen for the page")
	assert.Contains(t, driver.HintOf(err), "--web")
}

// TestFollow: the page of a folder changes with the folder until the run has ended.
func TestFollow(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	r, _ := resultOf(t, usual())
	r.Complete = false
	write(t, dir, r)
	s, err := NewServer("127.0.0.1:0", "--web")
	require.NoError(t, err)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan bool, 1), make(chan error)
	go func() { done <- Follow(ctx, s, func() { ready <- true }, dir) }()
	<-ready
	url := "http://" + s.Address().String() + "/"
	n := fetch(t, url+"data?after=0")
	assert.Contains(t, n.Words, "Running")
	assert.False(t, n.Final)

	r.Complete = true
	finish(t, dir, r)
	for !n.Final {
		n = fetch(t, fmt.Sprintf("%sdata?after=%d", url, n.Version))
	}
	assert.Contains(t, n.Words, "Success")
	cancel()
	require.NoError(t, <-done)
	require.Error(t, Follow(t.Context(), s, func() { t.Error("it was ready") }, t.TempDir()))
}

// TestCloseDuringAPoll: a browser that is getting the last version but one during Close still gets the last one.
func TestCloseDuringAPoll(t *testing.T) {
	t.Parallel()
	s, err := NewServer("127.0.0.1:0", "--web")
	require.NoError(t, err)
	url := "http://" + s.Address().String() + "/data?after=0"
	rendering, release := make(chan bool), make(chan bool)
	s.Publish(func() (*Page, error) {
		rendering <- true
		<-release
		return &Page{Title: "running"}, nil
	}, false)
	closed, polled := make(chan error, 1), make(chan answered, 1)
	go func() { polled <- fetch(t, url) }()
	<-rendering
	s.Publish(func() (*Page, error) { return &Page{Title: "ended"}, nil }, true)
	go func() { closed <- s.Close() }()
	select {
	case <-closed:
		assert.Fail(t, "it did not wait for the browser")
	case <-time.After(100 * time.Millisecond): // Close checks every 20 ms
	}
	close(release)
	n := <-polled
	assert.False(t, n.Final)
	assert.True(t, fetch(t, "http://"+s.Address().String()+"/data?after=1").Final)
	require.NoError(t, <-closed)
}
