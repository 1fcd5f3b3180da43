package drivertest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// requester is a producer of requests, and the consumer of their replies, on one connection.
type requester struct {
	out     *sender
	in      *inbox
	address string
}

// requester opens a requester of a service, with a dynamic queue for its replies or another one.
func (e *env) requester(d driver.Driver, service driver.Destination, dynamic bool) *requester {
	e.Helper()
	spec := consumerSpec(service)
	if spec.Correlated, spec.Dynamic = true, dynamic; !dynamic {
		spec.Destination = e.dest()
	}
	spec.Connection = connection(unique("requester"))
	r := &requester{in: e.receiver(d, spec)}
	addressed, ok := r.in.consumer.(driver.Addressed)
	require.True(e, ok, "a consumer for replies has no address")
	r.address = addressed.Address()
	require.NotEmpty(e, r.address, "the address of a consumer for replies")
	require.LessOrEqual(e, len(r.address), driver.MaxAddress, "length of the address of a consumer for replies")
	requests := producerSpec(service)
	requests.Connection, requests.Requests = spec.Connection, true
	r.out = e.producer(d, requests)
	return r
}

// responder opens both sides of a service.
func (e *env) responder(d driver.Driver, service driver.Destination) (*inbox, *sender) {
	e.Helper()
	spec := consumerSpec(service)
	spec.Correlated = true
	in := e.receiver(d, spec)
	replies := producerSpec(service)
	replies.Anonymous = true
	return in, e.producer(d, replies)
}

// replyAfter is the difference between the stamps of a reply and its request.
const replyAfter = 1_000_000

func correlationOf(stamp int64) string { return fmt.Sprintf("request-%d", stamp) }

// request sends the n requests first, first+1, ....
func (r *requester) request(first int64, n int) {
	r.out.e.Helper()
	r.out.sendEach(n, func(i int) driver.Message {
		stamp := first + int64(i)
		return driver.Message{Time: stamp, ReplyTo: r.address, Correlation: []byte(correlationOf(stamp))}
	})
	r.out.accepted()
}

// reply answers requests.
func reply(out *sender, requests []received) {
	out.e.Helper()
	out.sendEach(len(requests), func(i int) driver.Message {
		m := &requests[i]
		require.NotEmptyf(out.e, m.replyTo, "request %d came without its reply-to", m.stamp-base)
		return driver.Message{Time: m.stamp + replyAfter, To: []byte(m.replyTo), Correlation: []byte(m.replyID)}
	})
}

// answered waits for the replies to the n requests first, first+1, ... and for nothing else.
func (r *requester) answered(first int64, n int) {
	r.in.e.Helper()
	r.in.e.expectAtRest(first+replyAfter, n, r.in)
	for _, m := range r.in.messages() {
		require.Equal(r.in.e, correlationOf(m.stamp-replyAfter), m.correlation, "the correlation ID of a reply")
	}
}

// testReplies: a service sees where to reply and the correlation ID, and each requester gets the replies to its own
// requests.
func testReplies(e *env, dynamic bool) {
	const n = 20
	d, service := e.open(), e.dest()
	requests, replies := e.responder(d, service)
	requesters := []*requester{e.requester(d, service, dynamic), e.requester(d, service, dynamic)}
	require.NotEqual(e, requesters[0].address, requesters[1].address, "the addresses of two consumers for replies")
	for i, r := range requesters {
		r.request(base+int64(i*n), n)
	}
	requests.expect(base, 2*n)
	reply(replies, requests.messages())
	replies.accepted()
	for i, r := range requesters {
		r.answered(base+int64(i*n), n)
	}
}

// testRepliesAgain: the address of a dynamic queue is not given out again, so that a late reply does not reach a later
// requester; and such a reply stops nothing.
func testRepliesAgain(e *env) {
	const n = 5
	d, service := e.open(), e.dest()
	requests, replies := e.responder(d, service)
	before := e.requester(d, service, true)
	before.request(base, n)
	requests.expect(base, n)
	before.out.close()
	before.in.close()
	late := requests.messages()
	now := e.requester(d, service, true)
	require.NotEqual(e, before.address, now.address, "the address of a consumer for replies that has closed")
	reply(replies, late)
	require.NoError(e, replies.wait(e.cfg.Timeout))
	now.request(base+n, n)
	requests.expect(base, 2*n)
	reply(replies, requests.messages()[n:])
	require.NoError(e, replies.wait(e.cfg.Timeout))
	now.answered(base+n, n)
}
