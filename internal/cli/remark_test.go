package cli

import (
	"encoding/base64"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

const (
	testUser     = "app"
	testPassword = "hunter2-%/\u00e9"
)

// hostileRemark returns a remark of a malicious broker: a long text with sequences that clear the screen and set its
// title, lines that imitate perfmq's, and the password in several spellings.
func hostileRemark(size int) string {
	piece := "\x1b[2J\x1b]0;owned\x07\n--- result: success\n\u202e\u009b31m user " + testUser + " password " + testPassword + " " +
		base64.StdEncoding.EncodeToString([]byte("\x00"+testUser+"\x00"+testPassword)) + " amqp://app:hunter2-%25%2f%C3%A9@h?password=hunter2 "
	return strings.Repeat(piece, size/len(piece)+1)[:size]
}

// requireHarmless checks an output for control characters, imitated lines, secrets and its length.
func requireHarmless(t *testing.T, what, text string, most int) {
	t.Helper()
	assert.Less(t, len(text), most, "%s is too long", what)
	assert.False(t, strings.ContainsAny(text, "\x1b\x07\u202e\u009b"), "%s has escape sequences", what)
	assert.LessOrEqual(t, strings.Count("\n"+text, "\n--- result:"), 1, "%s has lines of others", what)
	requireNoSecret(t, what, text)
}

// requireNoSecret fails if the text has a part of the password in any spelling.
func requireNoSecret(t *testing.T, what, text string) {
	t.Helper()
	for _, part := range []string{"hunter2", "aHVudGVyM", "h1bnRlcj", "odW50ZXIy"} { // the last three in base64, by offset modulo 3
		if i := strings.Index(text, part); i >= 0 {
			t.Errorf("%s has the password: ...%s...", what, text[max(0, i-60):min(len(text), i+60)])
		}
	}
}

// told starts a server that calls serve for each connection.
func told(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	l := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	var serving sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			serving.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	return l.Addr().String()
}

// remarkSTOMP answers CONNECT by an ERROR.
func remarkSTOMP(remark string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		header := strings.NewReplacer("\n", " ", ":", " ").Replace(remark[:min(len(remark), 32<<10)])
		_, _ = io.WriteString(c, "ERROR\nmessage:"+header+"\n\n"+remark+"\x00")
		_, _ = io.Copy(io.Discard, c)
	}
}

// TestHostileRemarks: a remark of 10 MB, or one just below all limits, does not control the terminal and does not
// reveal the password.
func TestHostileRemarks(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"10 MB": 10 << 20, "30 KB": 30 << 10} { // 30 KB is within all limits
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := "stomp://" + told(t, remarkSTOMP(hostileRemark(size)))
			file := filepath.Join(t.TempDir(), "out.json")
			var stdout, stderr output
			status := Main(Env{
				Args:    []string{"stomp", "client", "--url", url, "--user", testUser, "--json", file, "--message-count", "1", "--connect-timeout", "20s"},
				Environ: []string{"PERFMQ_PASSWORD=" + testPassword}, Stdout: &stdout, Stderr: &stderr, Factories: mem.With(drivers.All()),
			})
			assert.Equal(t, result.StatusConnect, status)
			assert.Contains(t, stderr.String(), "error: ")
			requireHarmless(t, "standard error", stderr.String(), 8<<10)
			requireHarmless(t, "standard output", stdout.String(), 8<<10)
			written := musttest.Get(os.ReadFile(file))(t)
			requireHarmless(t, "JSON", string(written), safetext.MaxField)
		})
	}
}
