// Package brokerside asks a broker and its host during a run.
//
// A [Watch] samples resources once a second: a process by its pid, this host, a Prometheus endpoint, the lines of a
// log. The collector fetches the use of each interval with [Watch.Take]. [Counts] asks brokers once a second for their
// own counters of destinations and reports their growth. A [driver.Inspector] answers: a driver, the embedded broker,
// or a [Management] URL.
//
// Nothing here is on the path of a message. Each question has a time limit. A source that does not answer leaves a gap,
// and a note gives the reason.
package brokerside
