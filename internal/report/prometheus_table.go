package report

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perfmq/perfmq/pkg/result"
)

// Latencies of groups have a prefix, so that sums over the series of the others are of the run.
const groupPrefix = "group_"

// metricTable has the metrics that the tables in pkg/result lack: name without "perfmq_", labels, and help.
// docs/prometheus.md lists all.
//
//nolint:gochecknoglobals // a table that never changes
var metricTable = [][3]string{
	{"build_info", "version goversion", "The program; always 1."},
	{
		"run_info", "protocol consumer_protocol client consumer_client destinations scenario",
		"What is measured; always 1.",
	},
	{"run_start_time_seconds", "", "When the load began, in seconds since the Unix epoch."},
	{"phase", "phase", "1 for the phase that the run is in, 0 for the others."},
	{"workers", "", "Open producers and consumers."},
	{"in_flight", "", "Messages that were sent and are neither acknowledged nor failed."},
	{
		"stalls_total", "side phase",
		"Times of --stall-threshold or longer in which the broker confirmed (send) or delivered (receive) " +
			"nothing, although there was something to do; a stall of both sides counts for each.",
	},
	{"stall_seconds_total", "side phase", "How long these stalls were, added up."},
	{
		"group_stalls_total", "group broker side phase",
		"The same of the workers of each group, whether others stalled too or not; with several brokers, or " +
			"hosts in a URL, also of all workers at each, with an empty group.",
	},
	{"group_stall_seconds_total", "group broker side phase", "How long these stalls were, added up."},
	{"outages_total", "", "Times in which workers had lost their connections; only with --reconnect."},
	{
		"outage_seconds_total", "",
		"How long these outages were, added up: each to the first message that was confirmed or received after " +
			"it.",
	},
	{"outage_age_seconds", "", "How long ago the present outage began; 0 if there is none."},
	{
		"workers_disconnected", "",
		"Producers and consumers that have lost their connection and are not connected again.",
	},
	{"reconnects_total", "", "Connections that were opened again."},
	{"reconnect_failures_total", "class", "Attempts to connect again that failed, by the class of the failure."},
	{
		"messages_in_doubt_total", "",
		"Messages that ended without an answer of the broker as their connection was lost.",
	},
	{
		"verified_messages_total", "finding",
		"What the verification has found. Received, duplicates, redelivered, duplicates_after_outage, " +
			"duplicates_resent, out_of_order, damaged and foreign are known during the run, the others when it has " +
			"ended.",
	},
	{"destination_depth", "destination", "Messages that the broker has at a destination, as it told last."},
	{"backlog_messages", "", "Messages that the broker has at all destinations of the run, as it told last."},
	{"protocol_events_total", "name", "What only the protocol's driver counts."},
	{"step_info", "step", "The step that the run is in, if it has several; always 1."},
	{"run_success", "", "1 if all that was sent was accepted and received; known when the run has ended."},
	{"messages_missing", "", "Messages acknowledged but not received when the run had ended, if known."},
	{"messages_expected", "", "Deliveries that the acknowledged messages ought to have caused, if known."},
	{"run_end_time_seconds", "", "When the run ended, drain included, in seconds since the Unix epoch."},
	{
		"run_rate", "messages value",
		"Messages per second in the measured part: average, and the lowest and highest of a full second.",
	},
	{"run_rate_missed_ratio", "", "Share of the messages due that were not sent, from 0 to 1; only with a rate."},
	{"run_limit_info", "limit", "What bounded the rate, as the summary's line limit; always 1."},
	{
		"run_findings", "kind",
		"What the figures say beyond single messages, by kind: how often, or of how many messages.",
	},
	{"run_problems", "", "Problems that make the run a failure, as the summary lists them."},
	{"run_warnings", "", "Warnings about the trust that the figures deserve, as the summary lists them."},
	{"threshold_kept", "threshold step", "1 if a threshold was kept, 0 if it was not; of a step if it is about one."},
	{"broker_info", "broker side protocol product version", "What a broker said of itself; always 1."},
	{
		"broker_counted_messages", "count",
		"Messages that the brokers themselves have counted as added, and as acknowledged, by the run's " +
			"destinations.",
	},
	{
		"broker_count_difference", "count",
		"By how many messages these counts are above or below what the run allows; 0 if they agree.",
	},
	{"group_info", "group role protocol client", "The role, protocol and client of a group; always 1."},
	{"group_messages_sent_total", "group", "Messages of a group handed to the protocol's driver."},
	{"group_messages_completed_total", "group", "Messages of a group that the broker acknowledged."},
	{"group_sends_failed_total", "group", "Messages of a group that were sent but not acknowledged."},
	{"group_messages_received_total", "group", "Messages delivered to the consumers of a group."},
	{"group_messages_redelivered_total", "group", "Those of them that the broker marked as delivered before."},
	{"group_in_flight", "group", "Messages of a group that were sent and are neither acknowledged nor failed."},
	{"tester_cpu_seconds_total", "", "Processor time used by this process since the load began."},
	{"tester_cores", "", "Processors that this process may use at once."},
	{"tester_gc_pause_max_seconds", "", "The longest stop by a garbage collection of this process."},
	{"tester_memory_bytes", "", "Resident memory of this process."},
	{
		"tester_processor_wait_seconds_total", "",
		"How long threads of this process, added up, waited for a processor.",
	},
	{"tester_pauses_total", "", "Times in which nothing of this process ran."},
	{"tester_pause_max_seconds", "", "The longest of them."},
	{"tester_clock_step_seconds_total", "direction", "How far the wall clock was set, forward and backward."},
	{"machine_cpu_busy_seconds_total", "", "Processor time used on the whole machine, by all, since the load began."},
	{"machine_cpu_seconds_total", "", "Processor time that the machine had since the load began."},
	{
		"send_waits_total", "for",
		"Waits of a producer, by cause: slot (max-pending messages were in flight), credit (the broker gave " +
			"none) and socket (the network took no more).",
	},
	{"sends_failed_total", "state class", "Messages that were sent but not acknowledged, by how that ended and why."},
	{
		"consumer_failed_total", "as",
		"Messages that consumers gave back on purpose (release: not received, to come again) or rejected on " +
			"purpose (reject: received).",
	},
}

// describe returns the descriptions of all metrics.
func describe() map[string]*prometheus.Desc {
	d := map[string]*prometheus.Desc{}
	add := func(name, help string, labels ...string) {
		d[name] = prometheus.NewDesc("perfmq_"+name, help, labels, nil)
	}
	for _, m := range metricTable {
		add(m[0], m[2], strings.Fields(m[1])...)
	}
	for _, k := range result.CounterTable() {
		if k.Metric != "" {
			add(k.Metric, k.About)
		}
	}
	for _, k := range result.Kinds() {
		add(k.Metric, k.Help, "phase")
		if k.Always {
			add(groupPrefix+k.Metric, strings.TrimSuffix(k.Help, ".")+", of a group.", "phase", "group")
		}
	}
	return d
}
