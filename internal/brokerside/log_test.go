package brokerside

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

func TestLevels(t *testing.T) {
	for line, want := range map[string]int{
		"2026-11-22 17:00:01,123 ERROR [org.apache.activemq.artemis.core.server] AMQ224088: Timeout": levelError,
		"2026-11-22 17:00:01,123 WARN  [org.apache.activemq.artemis.core.server] AMQ222165":          levelWarning,
		"2026-11-22 17:00:01,123 INFO  [x] an ERROR was avoided":                                     levelOther,
		" WARN | Transport Connection to: tcp://127.0.0.1 failed: java.io.EOFException":              levelWarning,
		"2026-11-22 17:00:01.123456+00:00 [error] <0.1.0> closing AMQP connection":                   levelError,
		"2026-11-22 17:00:01.123456+00:00 [warning] <0.1.0> HTTP access denied":                      levelWarning,
		"2026-11-22 17:00:01.123456+00:00 [info] <0.1.0> [error] in a text":                          levelOther,
		"2026-11-22 17:00:01 WARN BrokerControllerScheduledThread1 - slow":                           levelWarning,
		"Nov 22, 2026 5:00:01 PM x y\nSEVERE: bad":                                                   levelError,
		"no error here":                        levelOther,
		"	at java.base/java.lang.Error.<init>": levelOther,
		"ERRORS 5":                             levelOther,
		"":                                     levelOther,
		strings.Repeat("x ", 200) + "ERROR":    levelOther,
	} {
		require.Equal(t, want, levelOf(line), line)
	}
}

// Each line that is added is counted once: also one that comes in two parts, and those around a rotation and a
// truncation.
func TestLogIsFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broker.log")
	write := func(text string) {
		f := musttest.Get(os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))(t)
		_, err := f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	write("ERROR before the run\n")
	f := musttest.Get(follow(path))(t)
	defer func() { _ = f.file.Close() }()
	look := func(errors, warnings uint64) {
		t.Helper()
		require.NoError(t, f.look())
		require.Equal(t, [2]uint64{errors, warnings}, f.counts)
	}
	look(0, 0)
	write("INFO x\nERROR one\nWARN a\nERR")
	look(1, 1)
	write("OR two\nWARN b\n")
	look(2, 2)
	require.Equal(t, "ERROR one", f.first[levelError])
	require.Equal(t, "WARN a", f.first[levelWarning])
	write("ERROR " + strings.Repeat("y", 3*maxLogLine) + "\nERROR four\n")
	look(4, 2)
	write("ERROR five\n") // before the rotation
	require.NoError(t, os.Rename(path, path+".1"))
	write("WARN c\n")
	look(5, 3)
	require.NoError(t, os.Truncate(path, 0))
	write("WARN\n")
	look(5, 4)
	require.NoError(t, os.Remove(path))
	look(5, 4)
	write("ERROR six\n")
	look(6, 4)
}
