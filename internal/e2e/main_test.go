//go:build unix

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
)

var (
	binary   string // the program under test
	buildErr error
	// Without limits or logins; ActiveMQ Classic delays messages, and its management has a login.
	shared = brokertest.Shared{
		ActiveMQOptions: []brokertest.ActiveMQOption{
			brokertest.WithActiveMQManagement(), brokertest.WithActiveMQSetting("schedulerSupport", "true"),
		},
		RabbitMQOptions: []brokertest.RabbitMQOption{brokertest.WithRabbitMQManagement(), brokertest.WithRabbitMQSetting("collect_statistics_interval", "1000")},
	}
	// Some tests restart or block one of these, or count all its messages: each of its tests has it alone.
	activeMQ, rocketMQ, rabbitMQ sync.Mutex
	secure                       = brokertest.Shared{ArtemisOptions: []brokertest.ArtemisOption{
		brokertest.WithLogin(), brokertest.WithTLSClientCerts(),
	}}
	counter atomic.Int64
)

// sideBySide is the number of tests that run at a time, unless -parallel says so: they wait for brokers and for time to
// pass more than they compute.
const sideBySide = 6

// TestMain is a tool in the shells of TestDocuments; otherwise it builds the binary, and ends the brokers and removes
// the binary after the tests.
func TestMain(m *testing.M) {
	if os.Getenv(envBinary) != "" {
		if err := documented(os.Args); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1) //nolint:forbidigo // a tool in the shell of a page
		}
		return
	}
	flag.Parse()
	if testing.Short() { // the whole program is for make test
		return
	}
	dir, err := os.MkdirTemp("", "perfmq-e2e-")
	if err == nil {
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "perfmq")
		err = build(binary)
	}
	buildErr = err // reported by the first test, not by a panic
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if parallel := flag.Lookup("test.parallel"); !given {
		_ = parallel.Value.Set(strconv.Itoa(max(sideBySide, runtime.GOMAXPROCS(0)))) // it is a number
	}
	brokertest.Main(m, &shared, &secure)
}

func build(to string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	// As the release: without cgo and without the race detector, whatever the tests are built with.
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Dir(to)+"/", "github.com/perfmq/perfmq/cmd/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build perfmq: %w\n%s", err, out)
	}
	return nil
}

// alone gives the test a broker until it ends.
func alone[B any](t *testing.T, lock *sync.Mutex, broker func(testing.TB) B) B {
	t.Helper()
	lock.Lock()
	t.Cleanup(lock.Unlock)
	return broker(t)
}

// unique returns a name that no other test uses, for a destination.
func unique(t *testing.T, kind string) string {
	name := strings.NewReplacer("/", ".", " ", "_", "#", "_").Replace(t.Name())
	return fmt.Sprintf("%s.%s.%d", name, kind, counter.Add(1))
}

// newQueue creates a queue at the broker, so that its counters are there before, during and after the runs.
func newQueue(t *testing.T, a *brokertest.Artemis) string {
	t.Helper()
	name := unique(t, "queue")
	require.NoError(t, a.CreateQueue(soon(t), name, name, "ANYCAST"))
	return name
}

// soon returns a context for something that takes seconds at most on a machine that has nothing else to do.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// counters reads a queue's counters.
func counters(t *testing.T, a *brokertest.Artemis, queue string) brokertest.QueueStats {
	t.Helper()
	q := musttest.Get(a.Queue(soon(t), queue))(t)
	return q
}

// requireCount waits until one of a queue's counters has a value. On a busy machine Artemis's counters follow a moment
// after the confirmation or the acknowledgement that they count.
func requireCount(t *testing.T, a *brokertest.Artemis, queue string, want uint64, counter func(brokertest.QueueStats) int64) {
	t.Helper()
	var q brokertest.QueueStats
	for until := time.Now().Add(moment); ; {
		q = counters(t, a, queue)
		if counter(q) == int64(want) || time.Now().After(until) {
			break
		}
	}
	require.EqualValues(t, want, counter(q), "the broker's own counters: %+v", q)
}

func messagesAdded(q brokertest.QueueStats) int64 { return q.MessagesAdded }

// settledSubscriptions returns an address's queues when the broker has counted all their messages as acknowledged, or
// after a moment. Nobody reads one of them.
func settledSubscriptions(t *testing.T, a *brokertest.Artemis, address, unread string) []brokertest.QueueStats {
	t.Helper()
	for until := time.Now().Add(moment); ; {
		list := musttest.Get(a.Subscriptions(soon(t), address))(t)
		if time.Now().After(until) || !slices.ContainsFunc(list, func(q brokertest.QueueStats) bool {
			return q.Name != unread && (q.MessageCount > 0 || q.MessagesAcked < q.MessagesAdded)
		}) {
			return list
		}
	}
}

// moment: counters of a broker may lag by this.
const moment = 15 * time.Second

// settled waits until a queue has no messages and no consumers at the broker, and returns its counters. On a busy
// machine the counter of acknowledged messages follows a moment later; dropped messages are in none.
func settled(t *testing.T, a *brokertest.Artemis, queue string) brokertest.QueueStats {
	t.Helper()
	var empty time.Time
	q, err := a.WaitQueue(soon(t), queue, func(q brokertest.QueueStats) bool {
		if q.MessageCount > 0 || q.ConsumerCount > 0 {
			return false
		}
		if empty.IsZero() {
			empty = time.Now()
		}
		return q.MessagesAcked+q.MessagesExpired >= q.MessagesAdded || time.Since(empty) > moment
	})
	require.NoError(t, err)
	return q
}

// emptied waits until all messages of a queue have been acknowledged.
func emptied(t *testing.T, a *brokertest.Artemis, queue string) {
	t.Helper()
	_, err := a.WaitQueue(soon(t), queue, func(q brokertest.QueueStats) bool { return q.MessageCount == 0 })
	require.NoError(t, err)
}

// eventually waits for a condition that another process or goroutine brings about.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, limit, 50*time.Millisecond, what)
}

// statuses of the program, from its help.
const (
	statusOK          = 0
	statusFailed      = 1
	statusUsage       = 2
	statusThreshold   = 3
	statusUndecided   = 5
	statusConnect     = 4
	statusInterrupted = 130
)
