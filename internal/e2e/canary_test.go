package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/tcpproxy"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

// TestCanary: the shipped canary reports losses while it runs, exactly, over an outage longer than its window, and after
// kill -9 it continues with a new run in the same folder.
func TestCanary(t *testing.T) {
	t.Parallel()
	b := serve(t)
	proxy := musttest.Get(tcpproxy.New(tcpproxy.Config{Target: strings.TrimPrefix(b.at(broker.AMQP), "amqp://")}))(t)
	t.Cleanup(proxy.Close)
	dir := filepath.Join(t.TempDir(), "canary")
	begin := func() *process {
		return start(t, "run", "@soak/canary", "--url", "amqp://"+proxy.Addr(), "--set", "rate=20", "--set", "window=2s", "--set", "slow=1h",
			"--set", "time=1h", "--result", dir, "--result-continue", "--format", "short")
	}
	now := func(run string) runresult.Progress {
		r, err := runresult.Read(filepath.Join(dir, run))
		if err != nil || len(r.Rows) == 0 || r.Rows[len(r.Rows)-1].Verified == nil {
			return runresult.Progress{}
		}
		return *r.Rows[len(r.Rows)-1].Verified
	}
	until := func(what, run string, reached func(p runresult.Progress) bool) {
		eventually(t, what, func() bool { return reached(now(run)) })
	}
	first := begin()
	until("messages come", "run-1", func(p runresult.Progress) bool { return p.Received >= 20 })

	b.control(http.MethodPut, "/faults", "lose=1")
	eventually(t, "the broker loses some", func() bool { return b.stats().Done.Lost > 0 })
	b.control(http.MethodPut, "/faults", "")
	lost := b.stats().Done.Lost
	first.printed("not received for 2s: producer-0 ")
	until("all are reported", "run-1", func(p runresult.Progress) bool { return p.Lost == lost })

	proxy.Cut()
	eventually(t, "the connections are gone", func() bool { return b.stats().Connections[0].Open == 0 })
	rows := len(musttest.Get(runresult.Read(filepath.Join(dir, "run-1")))(t).Rows)
	eventually(t, "the window would have passed", func() bool {
		return len(musttest.Get(runresult.Read(filepath.Join(dir, "run-1")))(t).Rows) >= rows+4
	})
	require.NoError(t, proxy.Restore())
	before := now("run-1").Received
	until("messages come again", "run-1", func(p runresult.Progress) bool { return p.Received > before+60 })
	p := now("run-1")
	require.Equal(t, lost, p.Lost, "an outage loses nothing")
	require.Zero(t, p.ArrivedLate)
	require.Equal(t, p.Duplicates, p.Resent+p.AfterOutage)

	require.NoError(t, first.cmd.Process.Kill())
	<-first.done
	second := begin()
	until("messages come", "run-2", func(p runresult.Progress) bool { return p.Received >= 40 && p.Expected > 0 })
	second.signal(os.Interrupt)
	r := second.wait(limit)
	require.Equal(t, statusInterrupted, r.status, r.stderr)
	whole := musttest.Get(runresult.Read(filepath.Join(dir, "run-2")))(t)
	require.Zero(t, whole.Verification.Total.Lost)
	require.EqualValues(t, 2_000_000, whole.Verification.Window)

	table := run(t, limit, "report", dir, "--format", "csv")
	require.Equal(t, statusOK, table.status)
	require.Regexp(t, `(?m)^run-1,.*\n`, table.stdout)
	require.Regexp(t, `(?m)^run-2,.*\n`, table.stdout)
}

// TestFollowProcesses: a producer and two consumers in processes of their own, judged by perfmq merge --follow while they
// run.
func TestFollowProcesses(t *testing.T) {
	t.Parallel()
	b := serve(t, "--faults", "lose=50")
	base := t.TempDir()
	dirs := []string{filepath.Join(base, "in-1"), filepath.Join(base, "in-2"), filepath.Join(base, "out")}
	var loads []*process
	for i, dir := range dirs {
		args := []string{"amqp", "consumer", "--url", b.at(broker.AMQP), "--verify-window", "2s", "--result", dir, "queue://Q"}
		if i == 2 {
			args[1] = "producer"
			args = append(args, "--rate", "40", "--max-pending", "10", "--message-count", "400")
		}
		loads = append(loads, start(t, args...))
	}
	follow := start(t, append([]string{"merge", "--follow"}, dirs...)...)
	follow.printed(" lost: 1: producer-0 49 on queue://Q")
	require.Equal(t, statusOK, loads[2].wait(limit).status)
	follow.printed("producer-0 399 on queue://Q")
	for _, l := range loads[:2] {
		l.interrupt()
	}
	r := follow.wait(limit)
	require.Equal(t, statusFailed, r.status)
	m := regexp.MustCompile(`verified lost: +(\d+)`).FindStringSubmatch(r.stdout)
	require.Equal(t, strconv.Itoa(8), m[1])
	require.Regexp(t, `verified once: +392\n`, r.stdout)
	require.Regexp(t, `verified duplicated: +0\n`, r.stdout)
}
