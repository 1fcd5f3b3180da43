package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The type of messages belongs to a group or to one of its messages. The default, bytes, is neither printed nor in the
// plan's data.
func TestMessageType(t *testing.T) {
	dir := t.TempDir()
	utf8, latin, nul := filepath.Join(dir, "utf8"), filepath.Join(dir, "latin"), filepath.Join(dir, "nul")
	for name, body := range map[string]string{utf8: "grün", latin: "gr\xfcn", nul: "a\x00b"} {
		require.NoError(t, os.WriteFile(name, []byte(body), 0o600))
	}
	const stomp = "error: --message-type text: the body has a NUL, which ends a text of STOMP: "
	for _, c := range []struct {
		args   string
		stdout string // with --dry-run
		stderr string
	}{
		{"amqp producer --message-type text", "  message-size: 1024\n  message-type: text\n", ""},
		{"stomp producer --message-type text --message-size 1:2:3", "  messages:\n    - message-size: 1\n      message-type: text\n", ""},
		{"rocketmq producer --message-type bytes", "  message-size: 1024\n", ""},
		{"amqp client --message-type text --fill zeros --message-size 5", "  message-size: 5\n  fill: zeros\n  message-type: text\n", ""},
		{"amqp client --message-type text --body-file " + nul, "  body-file: " + nul + "\n  message-type: text\n", ""},
		{"stomp client --message-type text --body-file " + utf8, "  body-file: " + utf8 + "\n  message-type: text\n", ""},
		{"stomp client --message-type bytes --body-file " + latin, "  body-file: " + latin + "\n", ""},
		{"amqp producer --message-type text --body-file " + latin, "", "error: --message-type text: the body is not UTF-8: " + latin + ", 4 bytes"},
		{"stomp producer --message-type text --body-file " + nul, "", stomp + nul + ", 3 bytes"},
		{"stomp producer --message-type text --fill zeros --message-size 5", "", stomp + "5 bytes of zeros"},
		{
			"amqp client --embedded --consumer-protocol stomp --message-type text --fill zeros --message-size 5", "",
			stomp + "5 bytes of zeros\nhint: --message-type bytes sends any body\n",
		},
		{
			"rocketmq producer --message-type text", "",
			"error: --message-type text: Apache RocketMQ (remoting) does not support that\nhint: leave --message-type text out\n",
		},
		{"amqp producer --message-type txt", "", "must be one of bytes, text"},
	} {
		t.Run(strings.ReplaceAll(c.args, dir, ""), func(t *testing.T) {
			got := callReal(append(strings.Fields(c.args), "queue://A", "--dry-run")...)
			want := exitOK
			if c.stderr != "" {
				want = exitUsage
			}
			require.Equal(t, want, got.status, got.stderr)
			require.Contains(t, got.stdout, c.stdout)
			require.Contains(t, got.stderr, c.stderr)
		})
	}
}
