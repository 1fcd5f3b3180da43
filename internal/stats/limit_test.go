package stats

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// told is a load of one producer and one consumer; the test sets their waits second by second.
type told struct {
	*Collector
	send, receive *waits
	health        result.Tester // of each second
	delay         time.Duration
	now           time.Duration // since the start
}

// used is the use of processors in a second: by perfmq, by all programs, and the time available.
func used(cpu, machine, all time.Duration) result.Tester {
	return result.Tester{CPU: cpu.Microseconds(), MachineBusy: machine.Microseconds(), MachineAll: all.Microseconds()}
}

func newTold(t *testing.T, pending int) *told {
	t.Helper()
	start := time.Now()
	l := &told{send: &waits{}, receive: &waits{}}
	l.health = used(time.Second/10, time.Second/2, 2*time.Second)
	l.Collector = NewCollector([]*ProducerRecorder{NewProducerRecorder(false, nil)}, []*ConsumerRecorder{NewConsumerRecorder()}, start)
	l.meter.used = func() result.Tester { return l.health }
	l.meter.waited = func() (time.Duration, bool) {
		l.delay += time.Duration(l.health.Delay) * time.Microsecond
		return l.delay, true
	}
	l.SetWorkers([]Worker{{Name: "producer-0", Waits: l.send, MaxPending: pending}, {Name: "consumer-0", Waits: l.receive}})
	l.receive.Input = driver.Idle{Known: true}
	return l
}

// of does one thing after the other, in the second that begins now.
func of(parts ...func(*told)) func(*told) {
	return func(l *told) {
		for _, do := range parts {
			do(l)
		}
	}
}

// in does something in one of the seconds.
func in(second time.Duration, do func(*told)) func(*told) {
	return func(l *told) {
		if l.now == second {
			do(l)
		}
	}
}

// sent sends, confirms after that time, and receives messages. Those not received queue.
func sent(n, received int, ack time.Duration) func(*told) {
	return func(l *told) {
		for range n {
			l.end(ack, driver.Outcome{})
		}
		age := time.Millisecond + (l.now+time.Second/2)*time.Duration(max(0, n-received))/time.Duration(max(1, n))
		old(received, age)(l)
	}
}

// end sends a message that ends after that time.
func (l *told) end(ack time.Duration, o driver.Outcome) {
	p := l.producers[0]
	p.Begun(Measure)
	p.Handed(Measure, 0)
	p.Done(End{Due: Measure, Intended: l.now, Actual: l.now}, o, l.now+ack)
}

// stand sends a message that is not answered, that long after the second's begin, and waits for its slot from then on.
func stand(after time.Duration) func(*told) {
	return func(l *told) {
		p := l.producers[0]
		p.Begun(Measure)
		p.Handed(Measure, 0)
		p.Wait(WaitSlot, l.now+after)
	}
}

// wait lets the producer wait; credit, answer and socket are waits within Send. input lets the consumer wait.
func wait(kind WaitKind, d time.Duration) func(*told) {
	return func(l *told) {
		l.producers[0].Wait(kind, l.now)
		l.producers[0].Waited(l.now + d)
	}
}

func credit(d time.Duration) func(*told) { return func(l *told) { l.send.Credit.Time += d } }
func answer(d time.Duration) func(*told) { return func(l *told) { l.send.Answer.Time += d } }
func socket(d time.Duration) func(*told) { return func(l *told) { l.send.Socket.Time += d } }
func input(d time.Duration) func(*told)  { return func(l *told) { l.receive.Input.Time += d } }

func work(d, paced time.Duration) func(*told) {
	return func(l *told) {
		l.consumers[0].Work(l.now)
		l.consumers[0].Worked(l.now+d, paced)
	}
}

// old receives messages of that age.
func old(n int, age time.Duration) func(*told) { return delayed(n, age, 0) }

// delayed receives messages of that age, which the broker was to hold back for that long.
func delayed(n int, age, delay time.Duration) func(*told) {
	return func(l *told) {
		for range n {
			l.consumers[0].Received(Receipt{Due: Measure, Stamped: true, Transfer: age, Delay: delay})
		}
	}
}

// second ends it.
func (l *told) second(phase Phase) {
	l.now += time.Second
	if l.health.Pauses > 0 {
		pulse := NewPulse(&fakeClock{start: l.start, now: l.now})
		pulse.beat.Store(int64(l.now))
		pulse.pauses = result.Tester{Pauses: l.health.Pauses, PauseMax: l.health.PauseMax}
		l.SetPulse(pulse)
	}
	l.Collect(phase, l.start.Add(l.now), false)
}

// crowded is a second in which others had the processors: all of them, while the tester wanted one.
func crowded(delay time.Duration) result.Tester {
	return result.Tester{CPU: 200_000, MachineBusy: 2_000_000, MachineAll: 2_000_000, Delay: delay.Microseconds()}
}

// paused is a second with a pause of that length.
func paused(length time.Duration) result.Tester {
	h := used(time.Second/10, time.Second/2, 2*time.Second)
	h.Pauses, h.PauseMax = 1, length.Microseconds()
	return h
}

// TestShortLoadHasNoBacklog: messages that are still on their way when a short load ends do not queue in the broker.
func TestShortLoadHasNoBacklog(t *testing.T) {
	t.Parallel()
	for length, want := range map[time.Duration]string{50 * time.Millisecond: result.LimitMaxPending, time.Second: result.LimitBroker} {
		l := newTold(t, 1)
		l.health = used(length/10, length, 2*length)
		of(sent(100, 50, time.Millisecond), wait(WaitSlot, length*9/10), input(length*9/10))(l)
		l.now += length
		l.Collect(Measure, l.start.Add(l.now), false)
		require.Equal(t, want, l.tally.Judge(make([]ProducerAsked, 1), true, false).Kind, length)
	}
}

// TestLimit: each kind, and its neighbours, from given waits.
func TestLimit(t *testing.T) {
	const ms = time.Millisecond
	cores := time.Duration(runtime.GOMAXPROCS(0))
	idle := input(900 * ms)
	closed := ProducerAsked{}
	rated := func(reached bool) ProducerAsked { return ProducerAsked{Rated: true, Reached: reached} }
	bounded := func(n int, perConnection bool) ProducerAsked {
		return ProducerAsked{InFlight: driver.InFlight{Messages: n, PerConnection: perConnection, Hint: "try another client"}}
	}
	missed := func(d time.Duration) ProducerAsked {
		asked := rated(false)
		asked.Missed = d
		return asked
	}
	check := func(name string, pending int, asked ProducerAsked, health result.Tester, second func(*told), kind, text string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTold(t, pending)
			if health != (result.Tester{}) {
				l.health = health
			}
			l.workers[0].Unanswered = asked.InFlight.Unanswered
			wait(WaitSlot, 900*ms)(l) // of the warm-up
			l.second(Warmup)
			for range 4 {
				second(l)
				l.second(Measure)
			}
			credit(time.Second)(l) // of the drain
			l.second(Drain)
			limit := l.tally.Judge([]ProducerAsked{asked}, true, false)
			require.Equal(t, text, words.Limit(&limit))
			require.Equal(t, kind, limit.Kind)
			require.Greater(t, limit.Share, mostly)
			require.LessOrEqual(t, limit.Share, 1.0)
		})
	}
	check("rate reached", 100, rated(true), result.Tester{}, of(idle, sent(100, 100, ms), wait(WaitDue, 900*ms)),
		result.LimitNone, "none: the rate was reached")
	check("rate reached in spite of stalls", 100, rated(true), crowded(2*time.Second), of(idle, sent(100, 100, ms), wait(WaitSlot, 999*ms)),
		result.LimitNone, "none: the rate was reached")
	check("rate missed by a stall in the last second", 100, rated(false), result.Tester{}, of(idle, sent(100, 100, ms), wait(WaitDue, 500*ms), credit(400*ms)),
		result.LimitCredit, "the broker's credit (producers waited for it 40% of the time; look for a full queue, address or disk, or give producers more credit)")
	check("rate missed by a pause at the end, with a short wait before", 100, missed(150*ms), paused(500*ms), of(idle, sent(100, 100, ms), wait(WaitSlot, 2*ms), wait(WaitDue, 900*ms)),
		result.LimitMachine, "the machine (perfmq was paused for up to 500 ms; give perfmq a machine of its own)")
	check("rate missed by a pause within a wait", 100, missed(150*ms), paused(500*ms), of(idle, sent(100, 100, ms), credit(505*ms), wait(WaitDue, 400*ms)),
		result.LimitMachine, "the machine (perfmq was paused for up to 500 ms; give perfmq a machine of its own)")
	check("rate missed by waits beside a pause", 100, missed(600*ms), paused(250*ms), of(idle, sent(100, 100, ms), credit(400*ms), wait(WaitDue, 500*ms)),
		result.LimitCredit, "the broker's credit (producers waited for it 40% of the time; look for a full queue, address or disk, or give producers more credit)")
	check("waits and pauses too short for what was missed", 100, missed(time.Second), paused(250*ms), of(idle, sent(100, 100, ms), wait(WaitSlot, 5*ms), wait(WaitDue, 500*ms)),
		result.LimitWorker, "one worker of perfmq (it sent late, though it waited for due times only; try more producers, consumers or connections)")
	check("rate missed, though producers waited for due times, while others have the processors", 100, rated(false), crowded(0), of(idle, sent(90, 90, ms), wait(WaitDue, 900*ms)),
		result.LimitMachine, "the machine (others took 90% of its processors; give perfmq a machine of its own)")
	check("the same, and a backlog that grows", 100, rated(false), crowded(0), of(idle, sent(90, 40, ms), wait(WaitDue, 900*ms)),
		result.LimitBroker, "the broker (its backlog grew by 50 msg/s while consumers waited)")
	check("max-pending", 1, rated(false), result.Tester{}, of(idle, sent(100, 100, ms), wait(WaitSlot, 800*ms)),
		result.LimitMaxPending, "max-pending (producers waited for answers 80% of the time; try a larger --max-pending)")
	check("max-pending, in bursts", 1000, ProducerAsked{}, result.Tester{}, of(idle, sent(1000, 1000, 20*ms), func(l *told) { l.producers[0].Blocked() }, wait(WaitSlot, 800*ms)),
		result.LimitMaxPending, "max-pending (producers waited for answers 80% of the time; try a larger --max-pending)")
	check("max-pending on a busy machine", 1, closed, crowded(2*time.Second), of(idle, sent(1, 1, ms), sent(99, 99, 10*ms), wait(WaitSlot, 800*ms)),
		result.LimitMaxPending, "max-pending (producers waited for answers 80% of the time; try a larger --max-pending)")
	check("synchronous sends", 1, closed, result.Tester{}, of(idle, sent(100, 100, ms), answer(900*ms)),
		result.LimitMaxPending, "max-pending (each send waited for its answer, 90% of the time; try to send asynchronously, or more --producers)")
	check("a library that has one message of a connection in flight", 1, bounded(1, true), result.Tester{}, of(idle, sent(100, 100, ms), answer(900*ms)),
		result.LimitMaxPending, "max-pending (producers waited for answers 90% of the time: the client has at most 1 message of a connection in flight; try another client)")
	check("transactions of which two are open", 20, bounded(20, false), result.Tester{}, of(idle, sent(100, 100, ms), answer(900*ms)),
		result.LimitMaxPending, "max-pending (producers waited for answers 90% of the time: the client has at most 20 messages of a producer in flight; try another client)")
	check("max-pending that a client could not use", 20, bounded(20, false), result.Tester{}, of(idle, sent(100, 100, ms), wait(WaitSlot, 900*ms)),
		result.LimitMaxPending, "max-pending (producers waited for answers 90% of the time: the client has at most 20 messages of a producer in flight; try another client)")
	check("messages without an answer", 100, ProducerAsked{InFlight: driver.InFlight{Unanswered: true}}, result.Tester{}, of(idle, sent(100, 100, ms), wait(WaitSlot, 930*ms)),
		result.LimitSocket, "the network buffer (producers waited 93% of the time to write; look at the network, and for a slow broker)")
	check("credit", 100, closed, result.Tester{}, of(idle, sent(10, 10, ms), credit(930*ms)),
		result.LimitCredit, "the broker's credit (producers waited for it 93% of the time; look for a full queue, address or disk, or give producers more credit)")
	check("no credit at all", 100, closed, result.Tester{}, of(idle, credit(1000*ms)),
		result.LimitCredit, "the broker's credit (producers waited for it 100% of the time; look for a full queue, address or disk, or give producers more credit)")
	check("no answer at all", 100, closed, result.Tester{}, of(idle, wait(WaitSlot, 1000*ms)),
		result.LimitBroker, "the broker (it answered nothing)")
	check("all are refused", 100, closed, result.Tester{}, of(idle, func(l *told) { l.end(ms, driver.Outcome{State: driver.Rejected}) }, wait(WaitSlot, 1000*ms)),
		result.LimitMaxPending, "max-pending (producers waited for answers 100% of the time; try a larger --max-pending)")
	check("the broker stalls in the end of the last second", 20, rated(false), result.Tester{}, of(idle, sent(200, 200, ms), wait(WaitDue, 300*ms), in(4*time.Second, stand(310*ms))),
		result.LimitBroker, "the broker (it answered nothing for 17% of the time while producers waited)")
	check("the broker stalls from the first second on", 20, rated(false), result.Tester{}, of(idle, in(time.Second, of(sent(200, 200, ms), wait(WaitDue, 300*ms), stand(310*ms)))),
		result.LimitBroker, "the broker (it answered nothing for 92% of the time while producers waited)")
	check("the broker stalls again and again, with one message in flight", 1, closed, result.Tester{}, of(idle, in(time.Second, sent(100, 100, ms)), sent(1, 1, 700*ms), answer(750*ms)),
		result.LimitBroker, "the broker (it answered nothing for 52% of the time while producers waited)")
	check("the only message waits for a connection", 1, ProducerAsked{}, result.Tester{}, func(l *told) {
		idle(l)
		if l.now == time.Second {
			sent(100, 100, ms)(l)
			return
		}
		l.producers[0].Begun(Measure) // Send has it, and has not handed it over
		l.send.Answer.Time += time.Second
	}, result.LimitBroker, "the broker (it answered nothing for 75% of the time while producers waited)")
	check("answers that always take long", 1, closed, result.Tester{}, of(idle, sent(1, 1, 700*ms), answer(750*ms)),
		result.LimitMaxPending, "max-pending (each send waited for its answer, 75% of the time; try to send asynchronously, or more --producers)")
	check("answers get late", 100, closed, result.Tester{}, of(idle, sent(1, 1, ms), sent(100, 100, 25*ms), wait(WaitSlot, 900*ms)),
		result.LimitBroker, "the broker (with all messages in flight, its answers took 24.8 ms on average, 25 times the shortest (1.00 ms))")
	check("answers get late on a busy machine, in which the tester has its processor", 100, closed, crowded(300*ms), of(idle, sent(1, 1, ms), sent(100, 100, 25*ms), wait(WaitSlot, 900*ms)),
		result.LimitBroker, "the broker (with all messages in flight, its answers took 24.8 ms on average, 25 times the shortest (1.00 ms))")
	check("answers get late with few in flight", 10, closed, result.Tester{}, of(idle, sent(1, 1, ms), sent(100, 100, 25*ms), wait(WaitSlot, 900*ms)),
		result.LimitMaxPending, "max-pending (producers waited for answers 90% of the time; try a larger --max-pending)")
	check("answers get late as others have the processors", 100, closed, crowded(time.Second), of(idle, sent(1, 1, ms), sent(100, 100, 25*ms), wait(WaitSlot, 900*ms)),
		result.LimitMachine, "the machine (others took 90% of its processors; give perfmq a machine of its own)")
	check("a backlog that grows", 100, rated(true), result.Tester{}, of(idle, sent(1000, 188, ms), wait(WaitDue, 900*ms)),
		result.LimitBroker, "the broker (its backlog grew by 812 msg/s while consumers waited)")
	check("another program receives a part", 100, rated(true), result.Tester{}, of(idle, sent(1000, 0, ms), old(844, ms), wait(WaitDue, 900*ms)),
		result.LimitNone, "none: the rate was reached")
	check("working consumers, and another program receives a part", 100, rated(true), result.Tester{}, of(work(980*ms, 0), sent(1000, 0, ms), old(844, ms), wait(WaitDue, 900*ms)),
		result.LimitNone, "none: the rate was reached")
	check("delayed messages, most of which have not come yet", 100, rated(true), result.Tester{}, of(idle, sent(1000, 0, ms), delayed(188, 5*time.Second, 5*time.Second), wait(WaitDue, 900*ms)),
		result.LimitNone, "none: the rate was reached")
	check("consumers that work, and a backlog that grows", 100, rated(true), result.Tester{}, of(work(980*ms, 0), sent(1000, 188, ms), wait(WaitDue, 900*ms)),
		result.LimitConsumers, "the consumers (their work took 98% of their time; the backlog grew by 812 msg/s; try more --consumers)")
	check("consumers that work, and keep up", 100, rated(true), result.Tester{}, of(work(980*ms, 0), sent(1000, 1000, ms), wait(WaitDue, 900*ms)),
		result.LimitNone, "none: the rate was reached")
	check("consumers that work, and a queue that is full", 100, closed, result.Tester{}, of(work(980*ms, 0), sent(1000, 1000, ms), credit(900*ms)),
		result.LimitConsumers, "the consumers (their work took 98% of their time; try more --consumers)")
	check("consumers with a rate", 100, rated(true), result.Tester{}, of(work(980*ms, 900*ms), sent(1000, 500, ms), wait(WaitDue, 900*ms)),
		result.LimitConsumers, "the consumers (they receive no more than their rate; the backlog grew by 500 msg/s; raise --consumer-rate)")
	check("a consumer that never waits, and a backlog that grows", 100, rated(true), result.Tester{}, of(sent(1000, 188, ms), wait(WaitDue, 900*ms)),
		result.LimitWorker, "one worker of perfmq (consumer-0 never waited in 4 s of 4 s; try more producers, consumers or connections)")
	check("network", 100, closed, result.Tester{}, of(idle, sent(100, 100, ms), socket(930*ms)),
		result.LimitSocket, "the network buffer (producers waited 93% of the time to write; look at the network, and for a slow broker)")
	check("a producer that never waits", 100, closed, result.Tester{}, of(idle, sent(100, 100, ms)),
		result.LimitWorker, "one worker of perfmq (producer-0 never waited in 4 s of 4 s; try more producers, consumers or connections)")
	check("a producer that is late, and waits only for its due times", 100, rated(false), result.Tester{}, of(idle, sent(1000, 1000, ms), wait(WaitDue, 950*ms)),
		result.LimitWorker, "one worker of perfmq (it sent late, though it waited for due times only; try more producers, consumers or connections)")
	check("a connection that never waits", 100, closed, result.Tester{}, of(idle, func(l *told) { l.send.Reader.Known = true }, sent(100, 100, ms), wait(WaitSlot, 800*ms)),
		result.LimitWorker, "one worker of perfmq (the connection of producer-0 never waited in 4 s of 4 s; try more producers, consumers or connections)")
	check("perfmq's processors", 100, closed, used(970*ms*cores, cores*time.Second, cores*time.Second), of(idle, sent(100, 100, ms), wait(WaitSlot, 800*ms)),
		result.LimitProcessors, fmt.Sprintf("perfmq's processors (it used %.2f of its %d cores; use more hosts, or larger messages)", 0.97*float64(cores), cores))
	check("a producer that never waits while others have the processors", 100, closed, crowded(time.Second), of(idle, sent(100, 100, ms)),
		result.LimitMachine, "the machine (others took 90% of its processors; give perfmq a machine of its own)")
	check("the same, in three of four seconds", 100, closed, crowded(time.Second), func(l *told) {
		of(idle, sent(100, 100, ms))(l)
		if l.now == time.Second {
			l.health = used(time.Second/5, time.Second/5, 2*time.Second)
		} else {
			l.health = crowded(time.Second)
		}
	}, result.LimitMachine, "the machine (others took 90% of its processors; give perfmq a machine of its own)")
	check("perfmq's processors, in three of four seconds", 100, closed, result.Tester{}, func(l *told) {
		of(idle, sent(100, 100, ms), wait(WaitSlot, 800*ms))(l)
		cpu := 970 * ms
		if l.now == time.Second {
			cpu = 100 * ms
		}
		l.health = used(cpu*cores, cpu*cores, cores*time.Second)
	}, result.LimitProcessors, fmt.Sprintf("perfmq's processors (it used %.2f of its %d cores; use more hosts, or larger messages)", 0.97*float64(cores), cores))
}

// TestLimitOfIdleProducer: a producer without a message is no limit, although its load took a moment to end.
func TestLimitOfIdleProducer(t *testing.T) {
	t.Parallel()
	l := newTold(t, 1)
	input(900 * time.Millisecond)(l)
	l.producers[0].Wait(WaitEnded, 30*time.Microsecond)
	l.second(Measure)
	limit := l.tally.Judge(make([]ProducerAsked, 1), true, false)
	require.NotContains(t, words.Limit(&limit), "never waited")
	require.False(t, result.OfTester(limit.Kind), words.Limit(&limit))
}

// TestHush: long times without an answer are summed up while messages are in flight, without pauses of perfmq.
func TestHush(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	clock := &fakeClock{start: time.Now()}
	pulse := NewPulse(clock)
	r := NewProducerRecorder(false, pulse)
	send := func(at time.Duration) End {
		r.Begun(Measure)
		r.Handed(Measure, 0)
		return End{Due: Measure, Intended: at, Actual: at}
	}
	until := func(now time.Duration) time.Duration {
		for ; clock.now <= now; clock.now += beatInterval {
			pulse.tick(clock.now)
		}
		clock.now = now
		return r.silenceUntil(now, leastSilence)
	}
	require.Zero(t, until(1000*ms), "nothing was in flight")
	e := send(1000 * ms)
	r.Done(e, driver.Outcome{}, 1100*ms)
	e = send(1500 * ms)
	require.Equal(t, 700*ms, until(1800*ms), "since the last answer: the producer's own waits tell since when it waited")
	r.Done(e, driver.Outcome{}, 1900*ms)
	require.Equal(t, 400*ms, until(2000*ms), "since the message was sent")
	e = send(2000 * ms)
	r.Done(e, driver.Outcome{State: driver.Rejected}, 2300*ms)
	require.Equal(t, 700*ms, until(2400*ms), "a refusal is an answer")
	e = send(2400 * ms)
	clock.now = 3400 * ms
	r.Done(e, driver.Outcome{}, 3410*ms)
	require.Equal(t, 700*ms, until(3420*ms), "perfmq was paused")
}

// TestLimitOfConsumers: the same of consumers alone.
func TestLimitOfConsumers(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name   string
		second func(l *told)
		kind   string
		text   string
	}{
		{"no messages", of(input(950*ms), old(100, ms)), result.LimitProducers, "the producers (consumers waited for messages 95% of the time)"},
		{"old messages, slowly", of(input(950*ms), old(100, 5*time.Second)), result.LimitBroker, "the broker (old messages waited in it while consumers waited, 95% of the time; try more --credit or --consumers)"},
		{"delayed messages, in time", of(input(950*ms), delayed(100, 5*time.Second, 5*time.Second-ms)), result.LimitProducers, "the producers (consumers waited for messages 95% of the time)"},
		{"delayed messages, early", of(input(950*ms), delayed(100, 5*time.Second, 6*time.Second)), result.LimitProducers, "the producers (consumers waited for messages 95% of the time)"},
		{"delayed messages, slowly", of(input(950*ms), delayed(100, 5*time.Second, 3*time.Second)), result.LimitBroker, "the broker (old messages waited in it while consumers waited, 95% of the time; try more --credit or --consumers)"},
		{"work", of(input(10*ms), work(950*ms, 0), old(100, 5*time.Second)), result.LimitConsumers, "the consumers (their work took 95% of their time; try more --consumers)"},
		{"a rate", of(work(950*ms, 900*ms), old(100, 5*time.Second)), result.LimitNone, "none: the rate was reached"},
		{"never waits", old(100, 5*time.Second), result.LimitWorker, "one worker of perfmq (consumer-0 never waited in 4 s of 4 s; try more producers, consumers or connections)"},
		{"does not know what it waits for", of(func(l *told) { l.receive.Input.Known = false }, old(100, ms)), result.LimitUnknown, "unknown (the measured part was too short, or its workers cannot tell what they wait for)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newTold(t, 1)
			l.SetWorkers([]Worker{{Closed: true}, {Name: "consumer-0", Waits: l.receive}})
			for range 4 {
				tt.second(l)
				l.second(Measure)
			}
			limit := l.tally.Judge(nil, false, false)
			require.Equal(t, tt.text, words.Limit(&limit))
			require.Equal(t, tt.kind, limit.Kind)
		})
	}
	l := newTold(t, 1)
	l.SetWorkers([]Worker{{Closed: true}, {Name: "consumer-0", Waits: l.receive}})
	of(input(950*ms), old(100, ms))(l)
	l.second(Measure)
	limit := l.tally.Judge(nil, false, true)
	require.Equal(t, "unknown (consumers had received all, and waited 95% of the time)",
		words.Limit(&limit), "nobody sends while they receive what was stored")
	l = newTold(t, 1)
	old(100, ms)(l)
	l.second(Warmup)
	require.Equal(t, result.LimitUnknown, l.tally.Judge(nil, false, false).Kind, "nothing was measured")
}
