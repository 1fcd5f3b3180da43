package report

import (
	"runtime"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perfmq/perfmq/pkg/result"
)

// descriptions are the names, helps and labels of perfmq's metrics. docs/prometheus.md lists them.
type descriptions struct {
	build, step, start, phase, workers, inFlight *prometheus.Desc
	counters                                     [result.NumCounters]*prometheus.Desc // nil for those without one
	failed, waits, consumerFailed, protocol      *prometheus.Desc
	latency                                      [result.NumKinds]*prometheus.Desc
	stalls, stallSeconds                         *prometheus.Desc
	partStalls, partStallSeconds                 *prometheus.Desc
	hostSent, hostCompleted, hostReceived        *prometheus.Desc
	outages, outageSeconds, outage, disconnected *prometheus.Desc
	outageWorst                                  *prometheus.Desc
	reconnects, reconnectFailures, inDoubt       *prometheus.Desc
	verified, depth, backlog                     *prometheus.Desc
	group                                        groupDescriptions
	tester                                       testerDescriptions
	end                                          endDescriptions
	all                                          []*prometheus.Desc
}

// describer makes descriptions and collects them in all.
type describer struct {
	all   []*prometheus.Desc
	steps bool // metrics of messages have a label for the step
}

// of describes a metric without a label for the step.
func (d *describer) of(name, help string, labels ...string) *prometheus.Desc {
	desc := prometheus.NewDesc("perfmq_"+name, help, labels, nil)
	d.all = append(d.all, desc)
	return desc
}

// load describes a metric of messages. In a run with several steps it has a label for the step.
func (d *describer) load(name, help string, labels ...string) *prometheus.Desc {
	if d.steps {
		labels = slices.Concat(labels, []string{"step"})
	}
	return d.of(name, help, labels...)
}

// describe returns the descriptions of a run; steps is true if it has several steps.
func describe(version string, steps bool) descriptions {
	d := &describer{steps: steps}
	m := descriptions{
		build: prometheus.NewDesc("perfmq_build_info", "The program; always 1.", nil,
			prometheus.Labels{"version": version, "goversion": runtime.Version()}),
		start:    d.of("run_start_time_seconds", "When the load began, in seconds since the Unix epoch."),
		phase:    d.of("phase", "1 for the phase that the run is in, 0 for the others.", "phase"),
		workers:  d.of("workers", "Open producers and consumers."),
		inFlight: d.of("in_flight", "Messages that were sent and are neither acknowledged nor failed."),

		stalls: d.of("stalls_total", "Times of --stall-threshold or longer in which the broker confirmed (send) or "+
			"delivered (receive) nothing, "+
			"although there was something to do; a stall of both sides counts for each.", "side", "phase"),
		stallSeconds: d.of("stall_seconds_total", "How long these stalls were, added up.", "side", "phase"),
		partStalls: d.of("group_stalls_total", "The same of the workers of each group, whether others stalled too or not; "+
			"with several brokers, or hosts in a URL, also of all workers at each, with an empty group.",
			"group", "broker", "side", "phase"),
		partStallSeconds: d.of("group_stall_seconds_total", "How long these stalls were, added up.",
			"group", "broker", "side", "phase"),

		hostSent: d.of("host_messages_sent_total", "Messages handed to the driver by producers connected to a host; only "+
			"of a URL that names several.", "host"),
		hostCompleted: d.of("host_messages_completed_total", "Messages acknowledged to producers connected to a host.",
			"host"),
		hostReceived: d.of("host_messages_received_total", "Messages delivered to consumers connected to a host.", "host"),
		outages:      d.of("outages_total", "Times in which workers had lost their connections; only with --reconnect."),
		outageSeconds: d.of("outage_seconds_total", "How long these outages were, added up: each to the first message that "+
			"was confirmed or "+
			"received after it."),
		outage: d.of("outage_age_seconds", "How long ago the present outage began; 0 if there is none."),
		outageWorst: d.of("outage_latency_max_seconds", "Highest latency (ack, response, transfer) of the seconds from the "+
			"begin of an outage until the load has recovered, of all outages; 0 if there was none.", "latency"),
		disconnected: d.of("workers_disconnected", "Producers and consumers that have lost their connection and are not "+
			"connected again."),
		reconnects: d.of("reconnects_total", "Connections that were opened again."),
		reconnectFailures: d.of("reconnect_failures_total",
			"Attempts to connect again that failed, by the class of the failure.", "class"),
		inDoubt: d.of("messages_in_doubt_total", "Messages that ended without an answer of the broker as their connection "+
			"was lost."),

		verified: d.of("verified_messages_total", "What the verification has found. Received, duplicates, redelivered, "+
			"duplicates_after_outage, duplicates_resent, "+
			"out_of_order, damaged "+
			"and foreign are known during the run, the others when it has ended.", "finding"),
		depth:    d.of("destination_depth", "Messages that the broker has at a destination, as it told last.", "destination"),
		backlog:  d.of("backlog_messages", "Messages that the broker has at all destinations of the run, as it told last."),
		protocol: d.of("protocol_events_total", "What only the protocol's driver counts.", "name"),
	}
	if steps {
		m.step = d.of("step_info", "The step that the run is in, if it has several; always 1.", "step")
	}
	m.messages(d)
	m.latencies(d)
	m.group, m.tester, m.end = describeGroups(d), describeTester(d), describeEnd(d)
	m.all = append(d.all, m.build)
	return m
}

// messages describes the counters of messages.
func (m *descriptions) messages(d *describer) {
	for _, k := range result.CounterTable() {
		if k.Metric != "" {
			m.counters[k.Counter] = d.load(k.Metric, k.About)
		}
	}
	m.waits = d.load("send_waits_total", "Waits of a producer, by cause: slot (max-pending messages were in flight), "+
		"credit (the broker gave "+
		"none) and socket (the network took no more).", "for")
	m.failed = d.load("sends_failed_total", "Messages that were sent but not acknowledged, by how that ended and why.",
		"state", "class")
	m.consumerFailed = d.load("consumer_failed_total",
		"Messages that consumers gave back on purpose (release: not received, to come again) "+
			"or rejected on purpose (reject: received).", "as")
}

// latencies describes the histograms.
func (m *descriptions) latencies(d *describer) {
	for _, k := range result.Kinds() {
		m.latency[k.Kind] = d.load(k.Metric, k.Help, "phase")
	}
}
