//go:build unix

package rocketmq_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// benchClientEnv makes the test binary a light client, so that the processor time measured is the broker's alone.
const benchClientEnv = "PERFMQ_TEST_ROCKETMQ_CLIENT"

func TestMain(m *testing.M) {
	if f := strings.Fields(os.Getenv(libraryEnv)); len(f) == 2 {
		if err := libraryClient(f[0], f[1]); err != nil {
			fmt.Println(err)
		}
		return
	}
	switch f := strings.Fields(os.Getenv(benchClientEnv)); {
	case len(f) == 4:
		n, _ := strconv.Atoi(f[2])
		most, _ := strconv.Atoi(f[3])
		if err := benchClient(f[0], f[1], n, most); err != nil {
			fmt.Println(err)
		}
	default:
		m.Run()
	}
}

// cpuTime is what this process has used, of all cores.
func cpuTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// benchBacklog is how many messages are pulled, again and again: the broker keeps no more than its limits.
const benchBacklog = 100_000

// BenchmarkBroker measures rate and processor time per 1 KiB message of the broker, with a client in another process.
func BenchmarkBroker(b *testing.B) {
	measure := func(b *testing.B, addr, what string, most int) {
		b.ResetTimer()
		cpu, begin := cpuTime(), time.Now()
		run(b, addr, what, b.N, most)
		b.StopTimer()
		b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "msg/s")
		b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N)/1e3, "cpu-us/msg")
	}
	limits, options := store.Config{LimitBytes: 1 << 30}, rocketmq.Options{Queues: 1}
	for _, window := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("send/window=%d", window), func(b *testing.B) {
			measure(b, start(b, limits, options).addr, "send", window)
		})
	}
	b.Run("pull", func(b *testing.B) {
		addr, backlog := start(b, limits, options).addr, min(b.N, benchBacklog)
		run(b, addr, "send", backlog, 1000)
		measure(b, addr, "pull", backlog)
	})
}

func run(b *testing.B, addr, what string, n, most int) {
	self, err := os.Executable()
	require.NoError(b, err)
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %d", benchClientEnv, addr, what, n, most))
	out, err := cmd.CombinedOutput()
	require.NoError(b, err)
	require.Empty(b, string(out))
}

// benchClient sends n messages, at most so many of them unanswered, or pulls n messages of a backlog of so many.
func benchClient(addr, what string, n, most int) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if what == "pull" {
		return benchPull(conn, n, most)
	}
	body := make([]byte, 1024)
	properties := "time\x011234567890123456\x02UNIQ_KEY\x010123456789ABCDEF0123456789ABCDEF\x02WAIT\x01true\x02"
	frame := request(310, 0, body, "a", "bench", "b", "BENCH", "c", "TBW102", "d", "8", "e", "0", "f", "0", "g", "1700000000000", "h", "0",
		"i", properties, "j", "0", "k", "false", "m", "false", "n", "perfmq")
	in := make([]byte, 256<<10)
	var out []byte
	sent, answered, kept := 0, 0, 0
	for answered < n {
		out = out[:0]
		for sent < n && sent-answered < most {
			out = append(out, frame...)
			sent++
		}
		if _, err := conn.Write(out); err != nil {
			return err
		}
		m, err := conn.Read(in[kept:])
		if err != nil {
			return err
		}
		b := in[:kept+m]
		for len(b) >= 4 && len(b) >= 4+int(binary.BigEndian.Uint32(b)) {
			// The real broker, with which to compare, answers sends in JSON.
			if code := binary.BigEndian.Uint16(b[8:]); b[4] == 1 && code != 0 || b[4] == 0 && !strings.Contains(string(b[8:40]), `"code":0`) {
				return fmt.Errorf("answer code %d %q", code, b[8:40])
			}
			b = b[4+binary.BigEndian.Uint32(b):]
			answered++
		}
		kept = copy(in, b)
	}
	return nil
}

func benchPull(conn net.Conn, n, backlog int) error {
	got, offset := 0, 0
	in := make([]byte, 4<<20)
	for got < n {
		_, err := conn.Write(request(11, 0, nil, "consumerGroup", "bench", "topic", "BENCH", "queueId", "0", "queueOffset", strconv.Itoa(offset),
			"maxMsgNums", "256", "sysFlag", "6", "commitOffset", "0", "suspendTimeoutMillis", "15000", "subscription", "*", "expressionType", "TAG"))
		if err != nil {
			return err
		}
		frame, err := readFrame(conn, in)
		if err != nil {
			return err
		}
		header := int(binary.BigEndian.Uint32(frame) & 0xffffff)
		if code := binary.BigEndian.Uint16(frame[4:]); code != 0 {
			return fmt.Errorf("answer code %d", code)
		}
		for b := frame[4+header:]; len(b) > 0; b = b[binary.BigEndian.Uint32(b):] {
			got++
			offset++
		}
		if offset == backlog {
			offset = 0
		}
	}
	return nil
}

// request makes a frame in the binary codec.
func request(code int, flag uint32, body []byte, fields ...string) []byte {
	b := wire.BeginFrame(nil, code, flag, 7, "")
	for i := 0; i < len(fields); i += 2 {
		b = wire.AppendField(b, fields[i], fields[i+1])
	}
	wire.EndFrame(b, len(body))
	return append(b, body...)
}

// readFrame returns a frame without its length.
func readFrame(r io.Reader, buf []byte) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	frame := buf[:min(int(binary.BigEndian.Uint32(size[:])), len(buf))]
	_, err := io.ReadFull(r, frame)
	return frame, err
}
