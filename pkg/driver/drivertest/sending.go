package drivertest

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func testFactory(e *env) {
	f := e.cfg.Factory
	require.NotEmpty(e, f.Name, "Name")
	require.Equal(e, strings.ToLower(f.Name), f.Name, "Name is typed by users: lower case")
	require.NotEmpty(e, f.Title, "Title")
	require.NotEmpty(e, f.Client, "Client: driver.Native, or the name of a library")
	require.NotEmpty(e, f.Schemes, "Schemes")
	require.Truef(e, strings.HasPrefix(f.DefaultURL, f.Schemes[0]+"://"),
		"DefaultURL %q does not begin with the first of Schemes, %q", f.DefaultURL, f.Schemes[0])

	fresh := driver.Describe(f.NewOptions())
	for _, o := range fresh {
		require.NotEmptyf(e, o.Help, "option %s has no help text", o.Name)
		if len(o.Enum) > 0 {
			require.Containsf(e, o.Enum, o.Default, "the default of option %s is not among its values", o.Name)
		}
	}
	set := e.options()
	require.Error(e, driver.SetOptions(set, []string{"no-such-option=1"}))
	if len(fresh) > 0 {
		require.NotSame(e, set, f.NewOptions(), "NewOptions returned the same struct twice")
	}
	require.Equal(e, fresh, driver.Describe(f.NewOptions()), "options that were set in one struct appeared in the next")
	if f.Check != nil {
		require.NoError(e, f.Check(e.openOptions(e.cfg.URL)), "Factory.Check of Config.URL")
	}
}

// pair opens a consumer that receives, and then a producer, on a new destination.
func (e *env) pair(d driver.Driver, change func(*driver.ProducerSpec)) (*sender, *inbox) {
	e.Helper()
	out, in := e.idlePair(d, change)
	return out, in.run()
}

// idlePair is pair with a consumer that is subscribed and does not run yet.
func (e *env) idlePair(d driver.Driver, change func(*driver.ProducerSpec)) (*sender, *inbox) {
	e.Helper()
	dest := e.dest()
	spec := producerSpec(dest)
	if change != nil {
		change(&spec)
	}
	in := e.consumer(d, consumerSpec(dest))
	return e.producer(d, spec), in
}

// testDone sends n messages through the given number of slots, each used again as soon as Done was called.
func testDone(e *env, slots, n int) {
	out, in := e.pair(e.open(), func(s *driver.ProducerSpec) { s.MaxPending = slots })
	out.sendAll(base, n)
	in.expect(base, n)
	out.close()
	sent, ended, _ := out.totals()
	require.Equal(e, n, sent)
	require.Equal(e, n, ended)
	for _, m := range in.messages() {
		require.Falsef(e, m.redelivered, "message %d came with Redelivered set, the first time", m.stamp-base)
	}
}

func testTime(e *env) {
	out, in := e.pair(e.open(), nil)
	for i, stamp := range []int64{1, time.Now().UnixMicro(), 1<<31 + 1, 1<<53 + 1, math.MaxInt64 / 2, math.MaxInt64} {
		out.sendAll(stamp, 1)
		in.awaitCount(i+1, "receive")
		require.Equal(e, stamp, in.stamps()[i], "the time property changed on its way")
	}
}

// testID sends IDs with four different parts, so that a driver that mixes them up fails, and messages without an ID.
func testID(e *env) {
	out, in := e.pair(e.open(), nil)
	for i, id := range []driver.ID{
		{Run: 1},
		{Run: 1, Producer: 2, Number: 3, Sum: 4},
		{Run: 128, Producer: 255, Number: 256, Sum: 65536},
		{Run: 1<<53 + 1, Producer: 1<<31 + 1, Number: 1<<32 + 3, Sum: 1<<62 + 5},
		{},
		{Run: 1, Producer: 2, Number: 3, Sum: 4, Delay: 86_400_001},
		{Run: math.MaxInt64, Producer: math.MaxInt64 - 1, Number: math.MaxInt64 - 2, Sum: math.MaxInt64 - 3},
		{},
	} {
		out.sendEach(1, func(int) driver.Message { return driver.Message{ID: id, Time: base + int64(i)} })
		out.accepted()
		in.awaitCount(i+1, "receive")
		got := in.messages()[i]
		require.Equal(e, base+int64(i), got.stamp)
		require.Equalf(e, id, got.id, "the ID of message %d changed on its way", i)
	}
}

// testOrigin sends messages with only the ID of their producer.
func testOrigin(e *env) {
	origin := driver.ID{Run: 1<<62 + 7, Producer: 12, Number: driver.Unnumbered}
	out, in := e.pair(e.open(), func(s *driver.ProducerSpec) { s.Origin = origin })
	out.sendAll(base, 20)
	in.expect(base, 20)
	for _, got := range in.messages() {
		require.Equalf(e, origin, got.id, "message %d does not have the ID that ProducerSpec.Origin gives to all",
			got.stamp-base)
	}
}

func requireBody(e *env, got received, size int) {
	e.Helper()
	require.Lenf(e, got.body, size, "the body of message %d has another length", got.stamp-base)
	require.Truef(e, string(got.body) == string(payload(size)), "the body of message %d, %d bytes, was damaged",
		got.stamp-base, size)
}

func testBodies(e *env) {
	sizes := slices.DeleteFunc([]int{0, 1, 255, 256, 1024, 65536, 1 << 20, 10 << 20}, func(size int) bool {
		return size < e.cfg.MinBody || size > e.cfg.MaxBody
	})
	out, in := e.pair(e.open(), func(s *driver.ProducerSpec) { s.Variants = variants(sizes...) })
	for i, size := range sizes {
		out.sendEach(1, func(int) driver.Message { return driver.Message{Time: base + int64(i), Variant: i} })
		out.accepted()
		in.awaitCount(i+1, "receive a body of "+strconv.Itoa(size)+" bytes")
		got := in.messages()[i]
		require.Equal(e, base+int64(i), got.stamp)
		requireBody(e, got, size)
	}
	in.expect(base, len(sizes))
}

// testVariants sends messages of many variants through one producer, in no order.
func testVariants(e *env) {
	const n, size, stride = driver.MaxVariants, 1000, 7
	out, in := e.pair(e.open(), func(s *driver.ProducerSpec) {
		s.Variants = nil
		for i := range n {
			s.Variants = append(s.Variants, variants(size+i)...)
		}
	})
	out.sendEach(n, func(i int) driver.Message { return driver.Message{Time: base + int64(i), Variant: i * stride % n} })
	out.accepted()
	in.expect(base, n)
	for _, got := range in.messages() {
		requireBody(e, got, size+int(got.stamp-base)*stride%n)
	}
}

// testOwnBodies sends messages with bodies of their own, in one buffer, and each third one without.
func testOwnBodies(e *env) {
	const n = 30
	sizes := []int{100, min(100_000, e.cfg.MaxBody)}
	body := func(i int) []byte {
		b := payload(sizes[i%2])
		for j := range b {
			b[j] += byte(i % 3 * i)
		}
		return b
	}
	out, in := e.pair(e.open(), func(s *driver.ProducerSpec) { s.Variants = variants(sizes...) })
	buffer := make([]byte, sizes[1])
	out.sendEach(n, func(i int) driver.Message {
		m := driver.Message{Time: base + int64(i), Variant: i % 2}
		if own := body(i); i%3 > 0 {
			m.Body = buffer[:copy(buffer, own)]
		}
		return m
	})
	clear(buffer)
	out.accepted()
	in.expect(base, n)
	for _, got := range in.messages() {
		i := int(got.stamp - base)
		require.Truef(e, string(got.body) == string(body(i)), "message %d does not have its own body", i)
	}
}

// testOrder: the messages of a producer reach the only consumer of a destination in the order of the calls of Send,
// whether they wait for it or not.
func testOrder(e *env) {
	const n = 1000
	out, in := e.idlePair(e.open(), func(s *driver.ProducerSpec) { s.Variants = variants(10, 1000) })
	send := func(first int64) {
		out.sendEach(n, func(i int) driver.Message {
			return driver.Message{Time: first + int64(i), Variant: i % 2, More: i%3 != 0 && i < n-1}
		})
		out.accepted()
	}
	send(base)
	in.run()
	send(base + n)
	in.expect(base, 2*n)
	for i, stamp := range in.stamps() {
		require.Equalf(e, base+int64(i), stamp, "the time property of message %d: the messages came in another order", i)
	}
}

// testMore announces after each message that another follows: Flush, or a message without More, lets them leave.
func testMore(e *env) {
	const n = 10
	out, in := e.pair(e.open(), nil)
	announced := func(first int64) func(int) driver.Message {
		return func(i int) driver.Message { return driver.Message{Time: first + int64(i), More: true} }
	}
	out.sendEach(n, announced(base))
	out.send(base+n, 1)
	out.accepted()
	in.expect(base, n+1)

	out.sendEach(n, announced(base+n+1))
	if flusher, ok := out.producer.(driver.Flusher); ok {
		for range 2 { // the second time there is nothing to do
			err := e.bounded(e.cfg.Timeout, "Flush", func() error { return flusher.Flush(e.soon()) })
			require.NoError(e, err, "Flush")
		}
	}
	out.accepted()
	in.expect(base, 2*n+1)

	out.sendEach(n, announced(base+2*n+1))
	out.close() // Close lets them leave, too
	out.accepted()
	in.expect(base, 3*n+1)
}
