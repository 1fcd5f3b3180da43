package engine

import "time"

// The times that a run waits or looks. None of them is part of a latency.
const (
	// sampleInterval is the time between two snapshots, and between two looks at thresholds that abort.
	sampleInterval = time.Second

	// Opening.

	// retryInterval is the time from one attempt to reach a broker to the next, with --wait-for-broker.
	retryInterval = 250 * time.Millisecond
	// openGrace is added to the connect time-out: the driver's own deadline ends the wait first, and its error says more.
	openGrace = 100 * time.Millisecond

	// Connecting again.

	// firstPause is about how long a worker waits that was woken because another one is connected again.
	firstPause = 100 * time.Millisecond
	// wokenPause is the longest one after an attempt that was made because another worker had been connected again.
	wokenPause = time.Second

	// Load.

	// watchInterval is the time between two looks at the messages received, in a step that these end and in a run that
	// only receives: seldom enough to cost nothing.
	watchInterval = 25 * time.Millisecond
	// minSilence bounds the wait for a sign of life in a step that nothing but its count ends, if the drain time-out is
	// shorter: brokers that page, fail over or collect garbage are silent for seconds and go on.
	minSilence = 10 * time.Second
	// drainedIdleTime ends a step that lasts until it is drained, when nothing was received for that long and the number
	// of messages to expect is not known.
	drainedIdleTime = 3 * time.Second

	// Drain.

	// pollInterval is the time between two looks at the messages in flight or expected. It adds at most this to a step.
	pollInterval = 5 * time.Millisecond
	// quietTime ends the drain, when nothing was received for that long and the number of messages to expect is not known.
	quietTime = time.Second
	// duplicateWait is the wait for duplicates in a verified run of which all has arrived: duplicates of the last messages
	// come after them.
	duplicateWait = 250 * time.Millisecond
	// proofTime bounds the wait beyond the drain time-out for the proof that messages that have not come are lost, not
	// left: a machine that stood still may have given the consumers no second in which they could receive.
	proofTime = 3 * time.Second
	// probeTimeout bounds the wait for one answer of the broker in a verified run, in which nothing comes any more.
	probeTimeout = 10 * time.Second
	// silentDrainTimeout bounds the drain, in the place of the drain time-out, if the broker was silent for that long
	// already.
	silentDrainTimeout = 2 * time.Second

	// Close.

	// cancelGrace bounds the return of a driver from a call whose context has ended, and each later stage of a run whose
	// end the user has asked for twice.
	cancelGrace = 500 * time.Millisecond
	// stopTimeout bounds the wait for workers that were told to stop, if the connect time-out is longer: they have nothing
	// left to wait for.
	stopTimeout = 5 * time.Second
	// closeTimeout bounds the closing of connections that nothing uses any more and, after unanswered messages, the time
	// from one worker that has closed to the next.
	closeTimeout = 2 * time.Second

	// The broker's count.

	// countWhileOpen is how long the broker's count is asked for again, until it is that of the run, before the workers
	// close: some brokers remove an unused queue with its count.
	countWhileOpen = 300 * time.Millisecond
	// countWhenClosed is the same when they have closed.
	countWhenClosed = 1500 * time.Millisecond
	// countEvery is the time between two such questions.
	countEvery = 25 * time.Millisecond
	// countLagging is the time between two questions to a broker whose counters lag, after the lag that it admits.
	countLagging = time.Second
)
