package drivertest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// names are patterns of destination names with characters that have a meaning in some broker, URL or frame. A unique
// text replaces the X.
func names() []string {
	return []string{
		"X", "Xab", "XAB", "X b", " X", "X ", "X%b", "X%20b", "X%2Fb", "X%25b", "X+b", "X/b", "X//b", "X/", "X?b",
		"X?b=c", "X#b", "X.#", "X.*", "X.>", "X*", "X,b", "X:b", "X;b", "X&b", "X=b", "X@b", "X|b", "X$b", "X!b",
		"X\\b", "X'b", "X\"b", "X(b)", "X[b]", "X{b}", "X<b>", "Xgrün", "X名前", "X💡", "X_b", "X-b", "X.b",
	}
}

// namedPair is a destination with its producer and consumer.
type namedPair struct {
	dest driver.Destination
	out  *sender
	in   *inbox
}

// testNames: a name means exactly one destination, which no other name means, or it is refused before anything is sent.
// Consumers may accept a name that producers refuse: a pattern for many destinations. The test reports all mistakes at
// once.
func testNames(e *env) {
	d, text := e.open(), unique("n")
	var pairs []*namedPair
	var wrong, refused []string
	for i, pattern := range names() {
		p := &namedPair{dest: driver.Destination{Kind: e.kind, Name: strings.ReplaceAll(pattern, "X", text)}}
		opened, err := e.openNamed(d, p, i)
		switch {
		case err != nil:
			wrong = append(wrong, err.Error())
		case opened:
			pairs = append(pairs, p)
		default:
			refused = append(refused, pattern)
		}
	}
	e.Logf("of %ss, %d of %d names are refused: %q", e.kind, len(refused), len(names()), refused)
	require.NotEmpty(e, pairs, "no name at all can be used")
	wrong = append(wrong, e.exchange(pairs)...)
	require.Empty(e, wrong)
}

// exchange sends two messages to each destination, and reports messages that were not accepted, and destinations that
// did not get exactly their own messages.
func (e *env) exchange(pairs []*namedPair) (wrong []string) {
	e.Helper()
	deadline := time.Now().Add(e.cfg.Timeout)
	send := func(i, n int) {
		p := pairs[i]
		err := p.out.trySend(e.soon(), base+int64(2*i+n))
		if err == nil {
			err = p.out.wait(e.cfg.Timeout)
		}
		if sent, _, states := p.out.totals(); err != nil || states[driver.Accepted] != sent {
			wrong = append(wrong, fmt.Sprintf("the message to %q was not accepted: %v, %s", p.dest.Name, err, p.out.ledger))
			return
		}
		for p.in.count() <= n && time.Now().Before(deadline) {
			pause(time.Millisecond)
		}
	}
	// In order and back: the consumers of one queue with two names cannot both get what they expect, whoever is served
	// first.
	for i := range pairs {
		send(i, 0)
	}
	for i := range slices.Backward(pairs) {
		send(i, 1)
	}
	e.quiet()
	for i, p := range pairs {
		if err := compare(p.in.stamps(), base+int64(2*i), 2); err != nil {
			wrong = append(wrong, fmt.Sprintf("%q did not get just the messages sent to it: %v", p.dest.Name, err))
		}
		p.out.close()
		p.in.close()
	}
	return wrong
}

// openNamed opens both sides of a destination, or reports that both refuse its name.
func (e *env) openNamed(d driver.Driver, p *namedPair, i int) (opened bool, err error) {
	e.Helper()
	cspec, pspec := consumerSpec(p.dest), producerSpec(p.dest)
	cspec.Name, pspec.Name, pspec.MaxPending = fmt.Sprintf("consumer-%d", i), fmt.Sprintf("producer-%d", i), 1
	// A connection of its own: Artemis takes up to two seconds to end one AMQP session after another of a connection.
	pspec.Connection = connection(pspec.Name)
	p.out = e.sender(&pspec)
	consumer, cerr := d.Consumer(e.soon(), cspec)
	producer, perr := d.Producer(e.soon(), pspec, p.out.ledger)
	if cerr == nil {
		p.in = e.inbox(consumer, cspec).run()
	}
	if perr == nil {
		p.out.opened(producer)
	}
	for _, err := range []error{cerr, perr} {
		switch {
		case err == nil:
		case driver.ClassOf(err) != driver.ClassUnsupported:
			return false, fmt.Errorf("%q is refused with the class %s: %w", p.dest.Name, driver.ClassOf(err), err)
		case driver.HintOf(err) == "":
			return false, fmt.Errorf("%q is refused without a hint: %w", p.dest.Name, err)
		}
	}
	switch {
	case cerr == nil && perr != nil: // a pattern for many destinations
		p.in.close()
	case cerr != nil && perr == nil:
		return false, fmt.Errorf("%q is refused by the consumer only: %w", p.dest.Name, cerr)
	}
	return perr == nil, nil
}
