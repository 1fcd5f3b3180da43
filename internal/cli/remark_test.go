package cli

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/safetext"
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
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
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

// remarkRocketMQ answers each request by an error (RemotingCommand, in JSON).
func remarkRocketMQ(remark string) func(net.Conn) {
	return func(c net.Conn) {
		for {
			var size [4]byte
			if _, err := io.ReadFull(c, size[:]); err != nil {
				return
			}
			n := binary.BigEndian.Uint32(size[:])
			if n > 1<<20 { // the first bytes of another protocol: perfmq asks what the port speaks
				return
			}
			frame := make([]byte, n)
			if _, err := io.ReadFull(c, frame); err != nil {
				return
			}
			header, _ := json.Marshal(map[string]any{
				"code": 1, "flag": 1, "language": "JAVA", "version": 1, "remark": remark, "opaque": binary.BigEndian.Uint32(frame[9:]),
			})
			b := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
			b = binary.BigEndian.AppendUint32(b, uint32(len(header)))
			if _, err := c.Write(append(b, header...)); err != nil {
				return
			}
		}
	}
}

// remarkAMQP lets the client log in, and answers its open by a close with an error.
func remarkAMQP(remark string) func(net.Conn) {
	list := func(code byte, fields ...[]byte) []byte {
		var content []byte
		for _, f := range fields {
			content = append(content, f...)
		}
		b := append([]byte{0, 0x53, code, 0xd0}, binary.BigEndian.AppendUint32(nil, uint32(len(content)+4))...)
		return append(binary.BigEndian.AppendUint32(b, uint32(len(fields))), content...)
	}
	frame := func(kind byte, body []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(body)+8))
		return append(append(b, 2, kind, 0, 0), body...)
	}
	text := func(code byte, s string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{code}, uint32(len(s))), s...)
	}
	const (
		symbol, str = 0xb3, 0xb1
		open        = 0x10
		closing     = 0x18
		failure     = 0x1d
		mechanisms  = 0x40
		outcome     = 0x44
	)
	return func(c net.Conn) {
		read := func(n int) bool { _, err := io.ReadFull(c, make([]byte, n)); return err == nil }
		readFrame := func() bool {
			var size [4]byte
			_, err := io.ReadFull(c, size[:])
			return err == nil && read(int(binary.BigEndian.Uint32(size[:]))-4)
		}
		if !read(8) {
			return
		}
		_, _ = io.WriteString(c, "AMQP\x03\x01\x00\x00")
		_, _ = c.Write(frame(1, list(mechanisms, text(symbol, "PLAIN"))))
		if !readFrame() {
			return
		}
		_, _ = c.Write(frame(1, list(outcome, []byte{0x50, 0})))
		if !read(8) {
			return
		}
		_, _ = io.WriteString(c, "AMQP\x00\x01\x00\x00")
		if !readFrame() {
			return
		}
		_, _ = c.Write(frame(0, list(open, text(str, remark[:1000]))))
		_, _ = c.Write(frame(0, list(closing, list(failure, text(symbol, "amqp:internal-error"), text(str, remark)))))
		_, _ = io.Copy(io.Discard, c)
	}
}

// TestHostileRemarks: a remark of 10 MB, or one just below all limits, does not control the terminal and does not
// reveal the password.
func TestHostileRemarks(t *testing.T) {
	for protocol, serve := range map[string]func(string) func(net.Conn){
		"stomp": remarkSTOMP, "rocketmq": remarkRocketMQ, "amqp": remarkAMQP,
	} {
		for name, size := range map[string]int{"10 MB": 10 << 20, "30 KB": 30 << 10} { // 30 KB is within all limits
			t.Run(protocol+" "+name, func(t *testing.T) {
				url := protocol + "://" + told(t, serve(hostileRemark(size)))
				file := filepath.Join(t.TempDir(), "out.json")
				var stdout, stderr output
				status := Main(Env{
					Args:    []string{protocol, "client", "--url", url, "--user", testUser, "--json", file, "--message-count", "1", "--connect-timeout", "20s"},
					Environ: []string{"PERFMQ_PASSWORD=" + testPassword}, Stdout: &stdout, Stderr: &stderr, Factories: drivers.All(),
				})
				assert.Equal(t, exitConnect, status)
				assert.Contains(t, stderr.String(), "error: ")
				requireHarmless(t, "standard error", stderr.String(), 8<<10)
				requireHarmless(t, "standard output", stdout.String(), 8<<10)
				written, err := os.ReadFile(file)
				require.NoError(t, err)
				requireHarmless(t, "JSON", string(written), safetext.MaxField)
			})
		}
	}
}
