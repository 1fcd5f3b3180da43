package drivertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// perTransaction is the number of messages in a transaction.
const perTransaction = 10

// flush ends a transaction that is not full.
func (s *sender) flush() {
	s.e.Helper()
	flusher, ok := s.producer.(driver.Flusher)
	require.True(s.e, ok, "a producer with transactions is no driver.Flusher: nothing ends one that is not full")
	err := s.e.bounded(s.e.cfg.Timeout, "Flush", func() error { return flusher.Flush(s.e.soon()) })
	require.NoError(s.e, err, "Flush")
}

// acceptedOf waits until n sends have been accepted, and checks that the others have not ended.
func (s *sender) acceptedOf(n int, why string) {
	s.e.Helper()
	s.e.await("sends that are accepted", s.changed, func() error {
		_, _, states := s.totals()
		return wantCount("sends were accepted", min(n, states[driver.Accepted]), n)
	})
	s.e.quiet()
	_, ended, states := s.totals()
	require.Equalf(s.e, n, states[driver.Accepted], "sends that were accepted, %s", why)
	require.Equalf(s.e, n, ended, "sends that have ended, %s: %s", why, s.ledger)
}

// testTransactedSend: messages are accepted and delivered when their transaction is committed, and not before.
func testTransactedSend(e *env) {
	const full, open = 100, 5
	ends := newCommits()
	out, in := e.pair(e.open(), func(s *driver.ProducerSpec) {
		s.CommitInterval, s.Commits, s.MaxPending = perTransaction, ends.add, 2*full
	})
	out.send(base, full+open)
	out.acceptedOf(full, "the last of which are in a transaction that was not committed")
	in.expect(base, full)
	ends.await(e, full/perTransaction, 0)
	out.flush()
	out.accepted()
	in.expect(base, full+open)
	ends.await(e, 1, 0)
	out.flush() // there is nothing to commit
	out.sendAll(base+full+open, perTransaction)
	in.expect(base, full+open+perTransaction)
	ends.await(e, 1, 0)
}

// testTransactedClose: a transaction that is open at the end is committed or rolled back, and its messages end
// accordingly.
func testTransactedClose(e *env) {
	const full, open = 20, 5
	ends := newCommits()
	out, in := e.pair(e.open(), func(s *driver.ProducerSpec) { s.CommitInterval, s.Commits = perTransaction, ends.add })
	out.send(base, full+open)
	out.close()
	_, _, states := out.totals()
	accepted := states[driver.Accepted]
	require.Containsf(e, []int{full, full + open}, accepted, "accepted sends of two transactions and an open one: %s",
		out.ledger)
	in.expect(base, accepted)
	in.nothing(accepted)
	confirmed := full / perTransaction
	if accepted > full {
		confirmed++
	}
	require.GreaterOrEqual(e, len(ends.ends), confirmed, "commits")
}

// testTransactedCut: messages not committed when the connection is lost are not accepted, and not delivered.
func testTransactedCut(e *env) {
	const full, open = 20, 5
	path := e.cfg.Path(e)
	direct := e.open()
	d, dest := e.openURL(path.URL()), e.dest()
	in := e.receiver(direct, consumerSpec(dest))
	ends := newCommits()
	spec := producerSpec(dest)
	spec.CommitInterval, spec.Commits = perTransaction, ends.add
	out := e.producer(d, spec)
	out.send(base, full+open)
	out.acceptedOf(full, "the last of which are in a transaction that was not committed")
	ends.await(e, full/perTransaction, 0)

	e.broken = true
	path.Freeze()
	_ = out.sendSome(500*time.Millisecond, 3*perTransaction) // some commits are in flight now
	out.requireBound(&spec)
	path.Cut()
	require.NoError(e, out.wait(e.cfg.Timeout), "the connection has ended")
	out.close()
	sent, _, states := out.totals()
	require.Equalf(e, full, states[driver.Accepted],
		"sends that were accepted, before and after the connection was cut: %s", out.ledger)
	require.Equalf(e, sent-full, states[driver.Unknown]+states[driver.Failed]+states[driver.Rejected],
		"sends that were in a transaction when the connection was cut: %s", out.ledger)
	for len(ends.ends) > 0 {
		require.False(e, (<-ends.ends).confirmed, "a commit was confirmed on a connection that was cut")
	}
	in.expect(base, full)
	in.nothing(full)
}

// testRefusedCommit: the messages of a transaction that the broker refuses to commit are not accepted.
func testRefusedCommit(e *env) {
	ends := newCommits()
	out := e.sendRefused(func(s *driver.ProducerSpec) { s.CommitInterval, s.Commits = perTransaction, ends.add })
	confirmed, refused := 0, 0
	for len(ends.ends) > 0 {
		if (<-ends.ends).confirmed {
			confirmed++
		} else {
			refused++
		}
	}
	sent, _, states := out.totals()
	full := confirmed * perTransaction
	accepted := []int{full}
	if last := sent % perTransaction; last > 0 && confirmed > 0 { // which the broker may have room for again
		accepted = append(accepted, full-perTransaction+last)
	}
	require.Containsf(e, accepted, states[driver.Accepted],
		"sends that were accepted, in %d commits that were confirmed and %d that were not: %s", confirmed, refused,
		out.ledger)
	require.Positivef(e, refused, "commits that the broker has refused: %s", out.ledger)
}

// testTransactedReceive: messages delivered when Run returns have been committed.
func testTransactedReceive(e *env) {
	const n = 105
	d, dest := e.open(), e.dest()
	spec := consumerSpec(dest)
	if keeps(e.cfg, e.kind) {
		spec = e.keptSpec(dest)
	}
	next := spec
	ends := newCommits()
	spec.TransactionSize, spec.Commits = perTransaction, ends.add
	in := e.receiver(d, spec)
	e.producer(d, producerSpec(dest)).sendAll(base, n)
	in.expect(base, n)
	in.close()
	confirmed := len(ends.ends)
	for range confirmed {
		require.True(e, (<-ends.ends).confirmed, "a commit was not confirmed")
	}
	require.GreaterOrEqualf(e, confirmed, (n+perTransaction-1)/perTransaction, "commits of %d messages each",
		perTransaction)
	if keeps(e.cfg, e.kind) {
		e.again(d, last(next)).nothing(0)
	}
}

// testTransactedReceiveCut: messages not committed when the connection is lost come again, committed messages do not.
func testTransactedReceiveCut(e *env) {
	const n, delivered = 40, perTransaction + 5
	ends := newCommits()
	with := func(s *driver.ConsumerSpec) { s.TransactionSize, s.Commits = perTransaction, ends.add }
	first, second := e.cutDelivery(n, delivered, with, func() { ends.await(e, 1, 0) })
	e.rest(n, first, second, func(at int) bool { return at < perTransaction })
	committed := map[int64]bool{}
	for _, m := range first.messages()[:perTransaction] {
		committed[m.stamp] = true
	}
	for _, stamp := range second.stamps() {
		require.Falsef(e, committed[stamp], "message %d, whose transaction was committed, came again", stamp-base)
	}
	for len(ends.ends) > 0 {
		require.False(e, (<-ends.ends).confirmed, "a commit was confirmed on a connection that was cut")
	}
}
