// Package stats counts and times the messages of a run, and cuts the run into snapshots.
//
// Each worker owns a recorder: [ProducerRecorder] or [ConsumerRecorder]. A recorder has a lock of its own, which only
// its worker, the completions of that worker's messages and, once a second, the collector take. The [Collector] visits
// all recorders, adds up their counters, empties their histograms and publishes one immutable [Snapshot].
//
// Counters are read in the order received, completed, blocked, sent over all workers, so that every message that a
// snapshot shows as received or completed also shows as sent.
//
// [result.Tester] says whether perfmq itself was fit to measure.
package stats
