package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// serving starts a command that serves a page. It returns the page's URL, and the channel of the exit status.
func serving(t *testing.T, args ...string) (url string, status chan int) {
	t.Helper()
	reader, writer := io.Pipe()
	status = make(chan int, 1)
	go func() {
		status <- Main(Env{Args: args, Stdout: io.Discard, Stderr: writer, Signals: make(chan os.Signal), Factories: testFactories()})
		_ = writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	at := regexp.MustCompile(`the page .*at (http://[^ ;]+)`)
	var seen []string
	for url == "" && lines.Scan() {
		seen = append(seen, lines.Text())
		if m := at.FindStringSubmatch(lines.Text()); m != nil {
			url = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	require.NotEmpty(t, url, "got: %q", seen)
	return url, status
}

func read(t *testing.T, url string) string {
	t.Helper()
	r := musttest.Get(http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil))(t)
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text := musttest.Get(io.ReadAll(answer.Body))(t)
	return string(text)
}

// TestWeb: a load serves its own page.
func TestWeb(t *testing.T) {
	t.Parallel()
	url, status := serving(t, "mem", "client", "--rate", "50", "--message-count", "200", "--web", "127.0.0.1:0")
	assert.True(t, strings.HasPrefix(url, "http://127.0.0.1:"), url)
	text := read(t, url)
	assert.Contains(t, text, `<meta name="live" content="`)
	assert.Contains(t, text, "Running")
	assert.Equal(t, result.StatusOK, <-status)
}
