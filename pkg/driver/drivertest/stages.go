package drivertest

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// stageLog has the stages that a driver has reported since the last call of take.
type stageLog struct {
	mu     sync.Mutex
	stages []driver.Stage
	sum    time.Duration
	least  time.Duration
}

func (l *stageLog) report(s driver.Stage, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sum += took; len(l.stages) == 0 || took < l.least {
		l.least = took
	}
	l.stages = append(l.stages, s)
}

// take checks the stages against the call that reported them, which began at a time, and returns their names, sorted.
func (l *stageLog) take(e *env, what string, began time.Time) (names []string) {
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	require.LessOrEqualf(e, l.sum, took, "the sum of the stages, and the time to %s", what)
	if len(l.stages) > 0 && took > 0 {
		require.Positivef(e, l.least, "the shortest stage, of %s to %s", took, what)
	}
	slices.Sort(l.stages)
	for _, s := range l.stages {
		names = append(names, s.String())
	}
	l.stages, l.sum, l.least = nil, 0, 0
	return names
}

// testStages: each worker reports each stage once, and no stage of a connection that another has opened.
func testStages(e *env) {
	d, dest, c := e.open(), e.dest(), &e.cfg.Factory.Capabilities
	open := func(log *stageLog, key string, produces bool) (end func()) {
		own := connection(key)
		own.Stages = log.report
		if produces {
			spec := producerSpec(dest)
			spec.Connection, spec.Name = own, unique("producer")
			return e.producer(d, spec).close
		}
		spec := consumerSpec(dest)
		spec.Connection, spec.Name = own, unique("consumer")
		return e.receiver(d, spec).close
	}
	stages := func(of bool, list ...string) []string {
		if !of || c.HidesConnections {
			return nil
		}
		return list
	}
	scheme, _, _ := strings.Cut(e.cfg.URL, ":")
	encrypted := strings.HasSuffix(scheme, "s") || strings.HasSuffix(scheme, "ssl")
	for _, produces := range []bool{true, false} {
		worker := map[bool]string{true: "producer", false: "consumer"}[produces]
		var first, second stageLog
		key, began := unique("key"), time.Now()
		end := open(&first, key, produces)
		want := slices.Concat(stages(true, "connect"), stages(encrypted, "tls"), stages(true, "login"),
			stages(!produces || !c.Unattached, "attach"))
		got := first.take(e, "open a "+worker, began)
		if !produces && !shares(e.cfg, e.kind) { // one connection to ask the broker, another to receive
			got = slices.Compact(got)
		}
		require.Equalf(e, want, got, "the stages of a %s", worker)
		if shares(e.cfg, e.kind) { // a producer: the members of a consumer group may need connections of their own
			began = time.Now()
			shared := open(&second, key, true)
			require.Equal(e, stages(!c.Unattached, "attach"), second.take(e, "open a second worker", began),
				"the stages on the connection of another worker")
			shared()
		}
		began = time.Now()
		end()
		require.Equalf(e, stages(true, "close"), first.take(e, "close a "+worker, began),
			"the stages of a closing %s", worker)
	}
}

// testConnect: a connection for nothing else reports its stages and, once, its end by the broker. Others of its driver
// are not concerned, and it closes.
func testConnect(e *env) {
	path := e.cfg.Path(e)
	d, dest := e.openURL(path.URL()), e.dest()
	connector, ok := d.(driver.Connector)
	require.True(e, ok, "a driver is a driver.Connector, and another of the same factory is not")
	require.True(e, e.cfg.Factory.Capabilities.Connects, "Capabilities.Connects of a driver.Connector")
	connect := func(log *stageLog) (driver.Held, chan error) {
		c := connection(unique("key"))
		c.Stages = log.report
		held, err := connector.Connect(e.soon(), c)
		require.NoError(e, err, "Connect")
		ends := make(chan error, 2)
		held.OnEnd(func(why error) { ends <- why })
		return held, ends
	}
	var log, other stageLog
	began := time.Now()
	held, _ := connect(&log)
	require.Subset(e, log.take(e, "connect", began), []string{"connect", "login"}, "the stages of a connection")
	out := e.producer(d, producerSpec(dest))
	began = time.Now()
	require.NoError(e, held.Close(e.soon()), "Close")
	require.Equal(e, []string{"close"}, log.take(e, "close a connection", began), "the stages of a closing connection")
	require.NoError(e, held.Close(e.soon()), "the second Close")
	held, ends := connect(&other)
	e.quiet()
	require.Empty(e, ends, "the end of a connection that is there")
	out.sendAll(base, 1)
	out.close()
	e.broken = true
	path.Cut()
	e.lostIdle(ends)
	require.NoError(e, held.Close(e.soon()), "Close of a lost connection")
	require.Empty(e, ends, "the end of the connection was reported twice")
}
