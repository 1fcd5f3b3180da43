package drivertest

import (
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// inspected sends n messages with the spec that change edits, and returns their headers as Config.Inspect sees them.
func (e *env) inspected(n int, change func(*driver.ProducerSpec), variant func(i int) int) []Header {
	e.Helper()
	return e.inspectedOf(n, change, ofVariant(variant))
}

func ofVariant(variant func(i int) int) func(i int) driver.Message {
	return func(i int) driver.Message { return driver.Message{Variant: variant(i)} }
}

// inspectedOf is inspected for messages without their times.
func (e *env) inspectedOf(n int, change func(*driver.ProducerSpec), message func(i int) driver.Message) []Header {
	e.Helper()
	require.NotNil(e, e.cfg.Inspect, "drivertest: nothing shows whether that arrives: set Config.Inspect")
	dest := e.dest()
	read := e.cfg.Inspect(e, dest)
	spec := producerSpec(dest)
	change(&spec)
	out := e.producer(e.open(), spec)
	out.sendEach(n, func(i int) driver.Message {
		m := message(i)
		m.Time = base + int64(i)
		return m
	})
	out.accepted()
	list := read(n)
	require.Len(e, list, n, "Config.Inspect returned another number of messages")
	return list
}

func plain(int) int { return 0 }

// testProperties: properties with any content arrive unchanged, and so do their messages.
func testProperties(e *env) {
	properties := []driver.Property{
		{Key: "color", Value: "red"},
		{Key: "empty", Value: ""},
		{Key: "text", Value: "a: b\\c\nd é"}, // text protocols have to escape these characters
		{Key: "number", Value: "42"},
	}
	if e.cfg.Printable != "" {
		properties[2].Value = "a: b\\c d é"
	}
	with := func(s *driver.ProducerSpec) {
		each(s.Variants, func(v *driver.Variant) { v.Properties = properties })
	}
	out, in := e.pair(e.open(), with)
	out.sendAll(base, 10)
	in.expect(base, 10)
	if e.cfg.Inspect == nil && e.has(Selector) {
		for _, p := range properties {
			if p.Value != "" { // some selectors have no empty text
				e.requireSelected(with, ofVariant(plain), p, 10)
			}
		}
		return
	}
	for _, h := range e.inspected(10, with, plain) {
		for _, p := range properties {
			got, ok := h.Properties[p.Key]
			require.Truef(e, ok, "the property %s did not arrive", p.Key)
			require.Equalf(e, p.Value, got, "the property %s changed on its way", p.Key)
		}
	}
}

// requireSelected sends messages to a consumer that selects a property, and waits until the messages with it have come.
func (e *env) requireSelected(
	change func(*driver.ProducerSpec), message func(i int) driver.Message, p driver.Property, want int,
) {
	e.Helper()
	d, dest := e.open(), e.dest()
	spec := consumerSpec(dest)
	spec.Selector = e.cfg.Selector(p.Key, p.Value)
	in := e.receiver(d, spec)
	pspec := producerSpec(dest)
	change(&pspec)
	out := e.producer(d, pspec)
	out.sendEach(3*want, func(i int) driver.Message {
		m := message(i)
		m.Time = base + int64(i)
		return m
	})
	out.accepted()
	in.awaitCount(want, "receive messages that have "+spec.Selector)
}

// testPropertiesOfVariants: each variant has its own properties, priority and group.
func testPropertiesOfVariants(e *env) {
	const n = 12
	colors := []string{"red", "", "blue"}
	with := func(s *driver.ProducerSpec) {
		s.Variants = variants(20, 30, 40)
		for i, color := range colors {
			v := &s.Variants[i]
			if color != "" {
				v.Properties = []driver.Property{{Key: "color", Value: color}}
			}
			if e.has(Priority) && i > 0 {
				v.Priority = i
			}
			if e.has(Group) && color != "" {
				v.Group = "group-" + color
			}
		}
	}
	inTurn := func(i int) int { return i % len(colors) }
	if e.cfg.Inspect == nil && e.has(Selector) {
		e.requireSelected(with, ofVariant(inTurn), driver.Property{Key: "color", Value: "blue"}, n/len(colors))
		return
	}
	times := map[string]int{}
	for _, h := range e.inspected(n, with, inTurn) {
		color := h.Properties["color"]
		times[color]++
		if e.has(Group) && color != "" {
			require.Equalf(e, "group-"+color, h.Group, "the group of messages whose color is %q", color)
		}
		if e.has(Priority) && color == "blue" {
			require.Equalf(e, 2, h.Priority, "the priority of messages whose color is %q", color)
		}
	}
	for _, color := range colors {
		require.Equalf(e, n/len(colors), times[color], "messages whose property color is %q", color)
	}
}

// testPropertiesOfMessages: each message has its own values of the properties that vary, of any length and content.
func testPropertiesOfMessages(e *env) {
	longest := strings.Repeat("long ", 60)
	values := []string{"red", "", "blue", longest, "a: b\\c\nd é"}
	n := 4 * len(values)
	with := func(s *driver.ProducerSpec) {
		s.Variants = variants(20, 30)
		s.Variants[0].Properties = []driver.Property{
			{Key: "same", Value: "same"}, {Key: "color", Value: longest, Varies: true},
		}
		s.Variants[1].Properties = []driver.Property{
			{Key: "number", Value: "99", Varies: true}, {Key: "color", Value: longest, Varies: true},
		}
	}
	color, number := make([]byte, len(longest)), make([]byte, 2) // the engine's, for all messages
	message := func(i int) driver.Message {
		m := driver.Message{Variant: i % 2, Values: [][]byte{color[:copy(color, values[i%len(values)])]}}
		if m.Variant == 1 {
			m.Values = [][]byte{strconv.AppendInt(number[:0], int64(i), 10), m.Values[0]}
		}
		return m
	}
	if e.cfg.Inspect == nil && e.has(Selector) {
		values, n = values[:3], 12
		e.requireSelected(with, message, driver.Property{Key: "color", Value: "blue"}, n/len(values))
		return
	}
	times, numbers, same := map[string]int{}, map[string]int{}, 0
	for _, h := range e.inspectedOf(n, with, message) {
		times[h.Properties["color"]]++
		if h.Properties["same"] == "same" {
			same++
		}
		if text, ok := h.Properties["number"]; ok {
			numbers[text]++
		}
	}
	for _, value := range values {
		require.Equalf(e, n/len(values), times[value], "messages whose own property color is %q", value)
	}
	require.Equal(e, n/2, same, "messages of the variant with the property same")
	require.Len(e, numbers, n/2, "values of the own property number")
}

// testPersistent: messages are persistent exactly if that is asked for.
func testPersistent(e *env) {
	for _, persistent := range []bool{true, false} {
		for _, h := range e.inspected(10, func(s *driver.ProducerSpec) { s.Persistent = persistent }, plain) {
			require.Equalf(e, persistent, h.Persistent, "whether messages are persistent at the broker")
		}
	}
}

func testPriority(e *env) {
	for _, priority := range []int{0, 4, 9} {
		with := func(s *driver.ProducerSpec) { each(s.Variants, func(v *driver.Variant) { v.Priority = priority }) }
		for _, h := range e.inspected(10, with, plain) {
			require.Equal(e, priority, h.Priority, "the priority of messages at the broker")
		}
	}
}

// testGroup: the broker knows the group of messages, and sends all of a group to one of the consumers that share the
// destination.
func testGroup(e *env) {
	const n = 50
	with := func(s *driver.ProducerSpec) { each(s.Variants, func(v *driver.Variant) { v.Group = "group-1" }) }
	sharing := e.kind == driver.Queue || e.has(SharedSubscription)
	if e.cfg.Inspect != nil || !sharing {
		for _, h := range e.inspected(10, with, plain) {
			require.Equal(e, "group-1", h.Group, "the group of messages at the broker")
		}
		keys, counts := []string{"key-11", "key-12", "key-13"}, map[string]int{}
		keyed := func(s *driver.ProducerSpec) {
			s.Variants = variants(20, 30)
			s.Keys = len(keys)
			each(s.Variants, func(v *driver.Variant) { v.Group = keys[0] })
		}
		for _, h := range e.inspectedOf(3*4*5, keyed, func(i int) driver.Message {
			return driver.Message{Variant: i % 2, Group: append(keys, "")[i%4]}
		}) {
			counts[h.Group]++
		}
		require.Equal(e, map[string]int{keys[0]: 30, keys[1]: 15, keys[2]: 15}, counts, "the groups that messages name")
	}
	if !sharing {
		return
	}
	d, dest := e.open(), e.dest()
	spec := e.sharedSpec(dest)
	busy := e.gate()
	hold := func() *inbox {
		in := e.consumer(d, spec)
		in.onMsg = func(int) { busy.wait() }
		return in.run()
	}
	a := hold()
	spec.Name = "consumer-2"
	b := hold()
	pspec := producerSpec(dest)
	with(&pspec)
	e.producer(d, pspec).sendAll(base, n)
	e.quiet() // time for a message to reach each consumer that may get one
	busy.release()
	e.expectTogether(base, n, a, b)
	require.Truef(e, a.count() == 0 || b.count() == 0 || e.cfg.Ungrouped != "",
		"the messages of one group went to two consumers: %d and %d", a.count(), b.count())
}

// testDelay: a message with a delay comes, and not at once.
func testDelay(e *env) {
	const delay = 5 * time.Second // one of RocketMQ's delay levels
	d, dest := e.open(), e.dest()
	in := e.consumer(d, consumerSpec(dest))
	came := make(chan time.Time, 1)
	in.onMsg = func(int) { came <- time.Now() }
	in.run()
	spec := producerSpec(dest)
	spec.Delay = delay
	out := e.producer(d, spec)
	begin := time.Now()
	out.sendAll(base, 1)
	in.expect(base, 1)
	// Half, because RocketMQ rounds to seconds.
	require.GreaterOrEqual(e, (<-came).Sub(begin), delay/2, "how late a message came that the broker was to hold back")
}

// testText: a text arrives as text, and bytes as bytes, both unchanged.
func testText(e *env) {
	const n, text = 10, "a: b\\c\nd é"
	with := func(s *driver.ProducerSpec) {
		s.Variants = variants(len(text), len(text))
		each(s.Variants, func(v *driver.Variant) { v.Body = []byte(text) })
		s.Variants[1].Text = true
	}
	inTurn := func(i int) int { return i % 2 }
	out, in := e.pair(e.open(), with)
	out.sendEach(n, func(i int) driver.Message { return driver.Message{Time: base + int64(i), Variant: inTurn(i)} })
	out.accepted()
	in.expect(base, n)
	for _, m := range in.messages() {
		require.Equalf(e, text, string(m.body), "the body of message %d", m.stamp-base)
	}
	texts := 0
	for _, h := range e.inspected(n, with, inTurn) {
		if h.Text {
			texts++
		}
	}
	require.Equalf(e, n/2, texts, "messages that are text at the broker, of %d", n)

	const odd = "a\x00\xff" // neither UTF-8 nor possible in all protocols
	spec := producerSpec(e.dest())
	spec.Variants = variants(len(odd))
	each(spec.Variants, func(v *driver.Variant) { v.Body, v.Text = []byte(odd), true })
	d := e.open()
	watch := e.receiver(d, consumerSpec(spec.Destination))
	s := e.sender(&spec)
	p, err := d.Producer(e.soon(), spec, s.ledger)
	if err != nil {
		require.Equalf(e, driver.ClassUnsupported, driver.ClassOf(err), "class of the refusal of odd bytes as text: %v", err)
		return
	}
	s.opened(p)
	s.sendAll(base, 1)
	watch.expect(base, 1)
	require.Equal(e, odd, string(watch.messages()[0].body), "a text with odd bytes")
}

// testTTL: messages expire, messages with a longer time to live do not.
func testTTL(e *env) {
	if keeps(e.cfg, e.kind) {
		testExpiryWhileAway(e)
		return
	}
	for _, h := range e.inspected(10, func(s *driver.ProducerSpec) { s.TTL = time.Hour }, plain) {
		require.InDelta(e, time.Hour.Seconds(), h.TTL.Seconds(), e.cfg.Timeout.Seconds(),
			"the time to live of messages at the broker, in seconds")
	}
}

// expiryGrace is how late expiry may be on a busy machine: RabbitMQ removes expired messages by a timer.
const expiryGrace = 2 * time.Second

// testExpiryWhileAway: messages expire while no consumer is there.
func testExpiryWhileAway(e *env) {
	d, mortal, lasting := e.open(), e.dest(), e.dest()
	mspec, lspec := e.keptSpec(mortal), e.keptSpec(lasting)
	e.subscribe(mspec)
	e.subscribe(lspec)
	spec := producerSpec(mortal)
	spec.TTL = e.cfg.TTL
	e.producer(d, spec).sendAll(base, 10)
	spec.Destination, spec.TTL = lasting, time.Hour
	e.producer(d, spec).sendAll(base, 10)
	e.arrived(d)
	pause(e.cfg.TTL + expiryGrace)
	e.producer(d, producerSpec(mortal)).sendAll(base+100, 1)
	lspec.Connection.Key, mspec.Connection.Key = "lasting", "mortal"
	e.receiver(d, last(lspec)).expect(base, 10)
	in := e.receiver(d, last(mspec))
	in.expect(base+100, 1)
	in.nothing(1)
}
