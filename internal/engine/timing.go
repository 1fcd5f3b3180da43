package engine

import "time"

// Times of waiting and polling. They do not enter latencies.
const (
	// sampleInterval is the time between two snapshots, and between two checks of thresholds that abort.
	sampleInterval = time.Second

	// Opening.

	// retryInterval is the time between two attempts to reach a broker, with --wait-for-broker.
	retryInterval = 250 * time.Millisecond
	// openGrace is added to the connect time-out, so that the driver's own deadline ends the wait first: its error is more
	// precise.
	openGrace = 100 * time.Millisecond

	// Load.

	// watchInterval is the time between two checks of the messages received, in a step that these end and in a run that
	// only receives: long enough to cost nothing.
	watchInterval = 25 * time.Millisecond
	// minSilence is the minimum wait for a sign of life in a step that only its count ends, even if the drain time-out is
	// shorter: brokers that page, fail over or collect garbage are silent for seconds.
	minSilence = 10 * time.Second
	// drainedIdleTime is the time without a received message that ends a step until drained, if the number of expected
	// messages is unknown.
	drainedIdleTime = 3 * time.Second

	// Drain.

	// pollInterval is the time between two checks of the messages in flight or expected. It lengthens a step by at most
	// this time.
	pollInterval = 5 * time.Millisecond
	// quietTime is the time without a received message that ends the drain, if the number of expected messages is unknown.
	quietTime = time.Second
	// duplicateWait is the wait for duplicates in a verified run after all messages have arrived.
	duplicateWait = 250 * time.Millisecond
	// proofTime bounds the wait, after the drain time-out, for the proof that missing messages are lost and not left at
	// the broker: if the machine was paused, the consumers had no time to receive.
	proofTime = 3 * time.Second
	// probeTimeout bounds the wait for the broker's answer to a probe, in a verified run that receives no more messages.
	probeTimeout = 10 * time.Second
	// silentDrainTimeout replaces the drain time-out if the broker was already silent for that time.
	silentDrainTimeout = 2 * time.Second

	// Close.

	// cancelGrace bounds the return of a driver from a call after its context has ended, and each later stage of a run
	// after a second interruption.
	cancelGrace = 500 * time.Millisecond
	// stopTimeout bounds the wait for workers that were told to stop, even if the connect time-out is longer: they have
	// nothing left to wait for.
	stopTimeout = 5 * time.Second
	// leastStop is the least wait for them: longer than the closing of a lost connection, which ends the messages on
	// it.
	leastStop = closeTimeout + 2*cancelGrace
	// closeTimeout bounds the closing of unused connections, and the time from the close of one worker to the next unless
	// subscriptions have to be removed.
	closeTimeout = 2 * time.Second

	// The broker's count.

	// countWhileOpen bounds the polling of the broker's count, until it equals the run's, before the workers close:
	// some brokers remove an unused queue with its count.
	countWhileOpen = 300 * time.Millisecond
	// countWhenClosed bounds the same polling after the workers have closed.
	countWhenClosed = 1500 * time.Millisecond
	// countEvery is the time between two polls.
	countEvery = 25 * time.Millisecond
	// countLagging is the time between two polls of a broker with lagging counters, after its declared lag.
	countLagging = time.Second
)
