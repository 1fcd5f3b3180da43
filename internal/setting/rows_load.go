package setting

import (
	"math"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/threshold"
)

// maxThreads is more than any machine has processors for: with tens of thousands, the Go runtime is busy with nothing
// else.
const maxThreads = 1024

func workerRows() []Setting {
	return []Setting{
		{
			Name: "num-destinations", Places: inGroups, Section: SectionDestination, Arg: argNumber, Default: "1",
			Help: "above 1, each destination stands for N of them: 0 to N-1 is added to its name",
			Set:  whole(1, math.MaxInt32, func(s *Values) *int { return &s.NumDestinations }),
		},
		{
			Name:   "producers",
			Brief:  "producers per destination",
			Places: inProducers, Section: SectionDestination, Arg: argNumber, Default: "1", Roles: sending(),
			Help: "producers per destination",
			Set:  whole(1, math.MaxInt32, func(s *Values) *int { return &s.Producers }),
		},
		{
			Name:   "consumers",
			Brief:  "consumers per destination",
			Places: inConsumers, Section: SectionDestination, Arg: argNumber, Default: "1", Roles: reading(),
			Help: "consumers per destination, or per shared subscription of it",
			Set:  whole(1, math.MaxInt32, func(s *Values) *int { return &s.Consumers }),
		},
		{
			Name: "threads", Places: inRun, Section: SectionDestination, Arg: argNumber, Default: "all processors",
			Help: "threads that run load at once; with --shared-connections also the number of those, by default 1",
			Set:  whole(1, maxThreads, func(s *Values) *int { return &s.Threads }),
		},
		{
			Name: "shared-connections", Places: inProducers, Section: SectionDestination, Roles: sending(),
			Help: "producers share --threads connections (else each has its own)",
			Set:  onOff(func(s *Values) *bool { return &s.SharedConnections }),
		},
		{
			Name: "consumer-connections", OneProtocol: true, Section: SectionDestination, Arg: argNumber,
			Default: "one per consumer", Roles: client(), Help: "connections of all consumers",
			Set: whole(0, math.MaxInt32, func(s *Values) *int { return &s.ConsumerConnections }),
		},
		{
			Name: "num-connections", Places: inConsumers, Aliases: []string{"consumer-connections"}, Section: SectionDestination,
			Arg: argNumber, Default: "one per consumer", Roles: consumer(),
			Help: "connections of all consumers",
			Set:  whole(0, math.MaxInt32, func(s *Values) *int { return &s.ConsumerConnections }),
		},
	}
}

func loadRows(role plan.Role) []Setting {
	counted := "messages to send in all, exactly"
	drained := "limit for messages still in flight at the end; and, of 10s at least, for a silent broker, if only " +
		"--message-count ends the load"
	if role == plan.Consumer {
		counted = "messages to receive in all"
		drained = "accepted for scripts that give it to all roles: a consumer has nothing to wait for"
	}
	return []Setting{
		{
			Name:   "rate",
			Brief:  "messages per second in all, such as 30k; without it as fast as possible",
			Places: inProducers, Section: SectionLoad, Arg: argNumber, Default: "as fast as possible", Roles: sending(),
			Help: "messages per second of all producers together, such as 30000 or 0.5, or segments such as 'ramp 0 to 5000 " +
				"for 60s, 5000 for 5m, pause 10s'",
			Join: ", ", Relative: true, Set: setRate,
		},
		{
			Name: "find-max", OneProtocol: true, Section: SectionLoad, Arg: `"METRIC OP VALUE"`, List: true, Roles: sending(),
			Help: "search for the highest rate that keeps this demand, such as 'transfer.p99 < 10ms', and at which messages " +
				"do not merely queue: loads of --duration (default 6s) " +
				"one after the other, beginning with --rate (default 1000), then one that is three times as long; may be repeated",
			Set: thresholds(func(s *Values) *[]threshold.Threshold { return &s.FindMax }), Suggest: suggestMetrics,
		},
		{
			Name:   "max-pending",
			Brief:  "messages in flight per producer: 1 unless given, 0 is unbounded",
			Places: inProducers, Section: SectionLoad, Arg: argNumber, Default: "1", Roles: sending(),
			Help: "messages in flight per producer; 0 is unbounded",
			Set:  whole(0, plan.UnlimitedPending, func(s *Values) *int { return &s.MaxPending }),
		},
		{
			Name: "send-timeout", Places: inProducers, Section: SectionLoad, Arg: argTime, Default: "0s", Roles: sending(),
			Help: "a message without an answer after this time ends as unconfirmed (timeout) and makes room for the next one; " +
				"0 waits for ever, or, over rocketmq, for -o send-timeout",
			Set: span(time.Second, func(s *Values) *time.Duration { return &s.SendTimeout }),
		},
		{
			Name: "in-doubt", Places: inProducers, Section: SectionLoad, Arg: argName, Default: DoubtReport,
			Words: []string{DoubtReport, DoubtResend}, Roles: sending(),
			Help: "messages that ended without an answer: report counts them, resend sends them again under the same ID, " +
				"until they are confirmed or the load is over (with --reconnect or --send-timeout)",
			Set: oneOf([]string{DoubtReport, DoubtResend}, func(s *Values) *string { return &s.InDoubt }),
		},
		{
			Name: "message-count", Brief: "how many messages", Places: inGroups, Section: SectionLoad, Arg: argNumber,
			Default: "no limit", Help: counted, Set: setCount,
		},
		{
			Name:   "duration",
			Brief:  "length of the load, warm-up included: 60, 1m30s",
			Places: inStep, Section: SectionLoad, Arg: argTime, Default: "no limit",
			Help: "length of the load, warm-up included",
			Set:  span(time.Second, func(s *Values) *time.Duration { return &s.Duration }),
		},
		{
			Name:   "warmup",
			Brief:  "first part of the load, left out of the latencies of the summary",
			Places: inStep, Section: SectionLoad, Arg: argTime, Default: "0s",
			Help: "first part of the load, left out of the latencies of the summary",
			Set:  span(time.Second, func(s *Values) *time.Duration { return &s.Warmup }),
		},
		{
			Name: "marks", Places: inStep, Section: SectionLoad, Arg: "N,N...", Join: ",",
			Help: "numbers of messages, such as 100k,500k,1M: when so many are completed (received, without producers), the " +
				"average rate so far and that of the " +
				"moment are noted",
			Set: setMarks,
		},
		{
			Name: "drain-timeout", Places: inRun, Section: SectionLoad, Arg: argTime, Default: "30s", Help: drained,
			Set: span(time.Second, func(s *Values) *time.Duration { return &s.DrainTimeout }),
		},
	}
}
