//go:build unix

package brokerside

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/leaktest"
	"github.com/perfmq/perfmq/internal/musttest"
)

// burnVariable makes the test program a burner: a process that uses a share of a processor, in percent, and answers
// each line of its standard input with the processor time that it has used, in microseconds.
const burnVariable = "PERFMQ_TEST_BURN"

func TestMain(m *testing.M) {
	if share := os.Getenv(burnVariable); share != "" {
		burn(share)
		return
	}
	leaktest.Main(m)
}

func burn(text string) {
	share, _ := strconv.Atoi(text)
	go spin(share)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		_, _ = fmt.Println(used())
	}
}

func spin(share int) {
	began, before := time.Now(), used()
	for n := 0; ; n++ {
		if (used()-before)*100 > time.Since(began).Microseconds()*int64(share) {
			<-time.After(5 * time.Millisecond)
		}
		for range 10_000 {
			n++
		}
	}
}

// used returns the processor time that this process has used, in microseconds.
func used() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano()/1000 + u.Stime.Nano()/1000
}

// burner is a running burner.
type burner struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func startBurner(t *testing.T, share int, name string) *burner {
	t.Helper()
	cmd := exec.Command(os.Args[0], "burner-of-"+name) //nolint:noctx // it is killed
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", burnVariable, share))
	in := musttest.Get(cmd.StdinPipe())(t)
	out := musttest.Get(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	b := &burner{t, cmd, in, bufio.NewScanner(out)}
	t.Cleanup(b.kill)
	b.used() // it burns
	return b
}

func (b *burner) pid() int32 { return int32(b.cmd.Process.Pid) } //nolint:gosec // a pid

// used asks the burner for its processor time.
func (b *burner) used() int64 {
	b.t.Helper()
	_, err := io.WriteString(b.in, "\n")
	require.NoError(b.t, err)
	require.True(b.t, b.out.Scan())
	n, err := strconv.ParseInt(strings.TrimSpace(b.out.Text()), 10, 64)
	require.NoError(b.t, err)
	return n
}

func (b *burner) kill() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// asIs leaves the times of events alone.
func asIs(t time.Time) time.Time { return t }

// until polls for something.
func until(t *testing.T, done func() bool) {
	t.Helper()
	require.Eventually(t, done, time.Minute, 5*time.Millisecond)
}

func (w *Watch) sampled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.last.at.IsZero()
}

// The processor time of a process agrees within 2% with the process's own counter, read just before and after the
// samples.
func TestProcessorTimeIsTrue(t *testing.T) {
	b := startBurner(t, 40, t.Name())
	w := musttest.Get(Open(t.Context(), Config{PID: b.pid()}))(t)
	outerFrom := b.used()
	w.Start(asIs)
	until(t, w.sampled)
	innerFrom := b.used()
	until(t, func() bool { return b.used()-innerFrom > 1_500_000 })
	innerTo := b.used()
	rows := w.Take()
	w.Stop()
	outerTo := b.used()
	rows = Join(rows, w.Take())
	sum := w.Sum()
	require.NotNil(t, sum.Whole.CPU)
	cpu := float64(*sum.Whole.CPU)
	require.GreaterOrEqual(t, cpu, 0.98*float64(innerTo-innerFrom))
	require.LessOrEqual(t, cpu, 1.02*float64(outerTo-outerFrom))
	require.Equal(t, *sum.Whole.CPU, *rows.CPU, "the intervals add up")
	require.GreaterOrEqual(t, *sum.CPUMost, cpu/float64(sum.Whole.CPUSpan), "the most is not below the mean")
	require.Greater(t, *sum.Whole.Memory, uint64(1<<20))
	require.Positive(t, *sum.Whole.Threads)
	require.GreaterOrEqual(t, *sum.Whole.Files, uint64(3))
	require.NotNil(t, sum.Whole.Load)
	require.Empty(t, sum.Events)
	require.Empty(t, sum.Notes)
}

// When the process has ended, the metrics of an endpoint do not continue its counters: they may be of another process.
func TestEndpointBesideProcess(t *testing.T) {
	b := startBurner(t, 50, t.Name())
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		_, _ = fmt.Fprintf(w, "process_cpu_seconds_total %d\nprocess_resident_memory_bytes 1e15\njvm_memory_used_bytes{area=\"heap\"} 5\n", 1_000_000+1000*n)
	}))
	defer server.Close()
	w := musttest.Get(Open(t.Context(), Config{PID: b.pid(), Metrics: Endpoint{URL: server.URL}}))(t)
	w.Start(asIs)
	until(t, func() bool { return w.Sum().Whole.Memory != nil })
	b.kill()
	until(t, func() bool { return len(w.Sum().Events) == 1 })
	after := asked.Load()
	until(t, func() bool { return asked.Load() >= after+2 })
	w.Stop()
	sum := w.Sum().Whole
	require.Less(t, *sum.CPU, uint64(600_000_000))
	require.Less(t, *sum.Memory, uint64(1e12))
	require.EqualValues(t, 5, *sum.Heap, "this host does not report the heap")
}

// The error about sources that cannot be watched names all of them.
func TestNothingToWatch(t *testing.T) {
	b := startBurner(t, 1, t.Name())
	b.kill()
	dir := t.TempDir()
	_, err := Open(t.Context(), Config{PID: b.pid(), Log: dir})
	require.ErrorIs(t, err, ErrNoProcess)
	require.ErrorContains(t, err, "is not a regular file")
}

// Every second has its own sample, though the seconds begin with the watch, and end a little early or late.
func TestEverySecondHasItsSample(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broker.log")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	synctest.Test(t, func(t *testing.T) {
		w := musttest.Get(Open(t.Context(), Config{Log: path}))(t)
		w.Start(asIs)
		began := time.Now()
		for n := range 60 {
			late := time.Duration(n%5-2) * 20 * time.Millisecond
			<-time.After(time.Until(began.Add(time.Duration(n+1)*time.Second + late)))
			use := w.Take()
			require.NotNil(t, use, "second %d", n+1)
			require.InDelta(t, 1e6, use.Span, 300_000, "second %d", n+1)
		}
		w.Stop()
	})
}

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
