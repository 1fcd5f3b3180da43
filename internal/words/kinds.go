package words

import "github.com/perfmq/perfmq/pkg/result"

//nolint:gochecknoglobals // a table that never changes
var kinds = []Kind{
	{"error", result.Problem, "%s"},
	{"rejected", result.Problem, "messages rejected by the broker: %d"},
	{"released", result.Problem, "messages given back by the broker: %d"},
	{"modified", result.Problem, "messages given back by the broker as modified: %d"},
	{"failed", result.Problem, "messages failed: %d"},
	{"unconfirmed", result.Problem, "messages sent but not confirmed (the broker may have them or not): %d"},
	{"unknown-end", result.Problem, "messages of unknown end: %d"},
	{"nothing-sent", result.Problem, "nothing was sent: %s until the load ended"},
	{"nothing-completed", result.Problem, "nothing was completed: of %d messages sent the broker accepted none"},
	{"too-few", result.Problem, "messages of --message-count not received when the duration ended: %d of %d"},
	{
		"unidentified", result.Problem,
		"none of the %d messages received from %s has the properties of those sent to %s: the broker drops them, " +
			"as RabbitMQ before 4 does, and ActiveMQ Classic without transport.transformer=jms; missing and lost " +
			"messages may be neither",
	},
	{"not-drained", result.Problem, "messages had not come when the step ended, which was to drain them: %d"},
	{"missing", result.Problem, "messages not received when the drain ended after %s: %d of %d"},
	{"lost", result.Problem, "messages lost, accepted by the broker but never received: %d of %d"},
	{"left", result.Problem, "messages accepted by the broker and not received when the consumers ended: %d of %d"},
	{
		"duplicated", result.Problem,
		"messages received more than once: %d copies too many, %d of them marked as redelivered",
	},
	{"damaged", result.Problem, "messages damaged: %d%s"},
	{"out-of-order", result.Problem, "messages received out of order: %d, %d of them marked as redelivered"},
	{"refused-arrived", result.Problem, "messages refused by the broker, but received: %d"},
	{"withheld-arrived", result.Problem, "messages rolled back, but received: %d"},
	{"unconfirmed-arrived", result.Note, "messages that the broker did not confirm, but received: %d"},
	{"unwatched", result.Problem, "no consumer's side of %s is known: its messages are not verified"},
	{"verify-file", result.Problem, "%s"},
	{
		"outage-open", result.Problem,
		"the outage of %s was not over when the run ended: %d of %d workers were not connected again (%s)%s",
	},
	{"foreign", result.Warning, "messages of another run or tool taken from the destinations and not counted: %d"},
	{"unnumbered", result.Warning, "messages that carry no number of a verified run: %d"},
	{"nothing-received", result.Warning, "no message was received%s"},
	{"bottleneck", result.Warning, "%s was the bottleneck: %s"},
	{
		"busy-processors", result.Warning,
		"perfmq used %.2f of the %d cores that it may use: latencies include CPU scheduling delay",
	},
	{
		"busy-machine", result.Warning,
		"the machine was %.0f%% busy, %.0f%% with other programs than perfmq, such as a broker: latencies include " +
			"CPU scheduling delay",
	},
	{
		"pause", result.Warning,
		"perfmq stood still %s, the longest for %s until %s: the latencies of %d sends and receipts include that",
	},
	{"late-sends", result.Warning, "messages sent late through perfmq's own fault: %d of %d"},
	{
		"late-excused", result.Warning,
		"messages sent late while other programs kept the processors busy, or after a pause of perfmq: %d of %d",
	},
	{
		"clock-forward", result.Warning,
		"the wall clock was set forward by %s during the run: transfer times between two machines are off by that",
	},
	{
		"clock-backward", result.Warning,
		"the wall clock was set backward by %s during the run: transfer times between two machines are off by that",
	},
	{"not-measured", result.Warning, "nothing was measured: there was no message after the warm-up of %s"},
	{
		"rate-missed", result.Warning,
		"the rate was missed by %s: %d of the %d messages that were due were not sent in time",
	},
	{
		"negative-transfer", result.Warning,
		"transfer times below zero, left out because the clocks of producer and consumer differ: %d of %d",
	},
	{
		"negative-age", result.Warning,
		"b2c or s2c times below zero, left out because the clocks of producer, broker and consumer differ: %d",
	},
	{
		"early", result.Warning,
		"messages delivered before their delay was over: %d of %d; clocks that differ cause this, and brokers " +
			"that do not delay, such as ActiveMQ Classic without schedulerSupport",
	},
	{"delayed", result.Warning, "transfer times are of both %d delayed messages, with their delays, and %d others"},
	{"out-of-range", result.Warning, "latencies above %s, counted as that: %d"},
	{
		"in-doubt", result.Warning,
		"messages in doubt, which the broker may have or not: %d; sent again %d, unconfirmed %d",
	},
	{
		"not-durable", result.Warning,
		"a subscription of a topic that is not durable gets no message that is sent in an outage (see --durable)",
	},
	{
		"after-outage", result.Warning,
		"duplicates explained by outages: %d whose settlement was cut off, %d that were sent again",
	},
	{"redelivered", result.Warning, "messages that the broker delivered again, each of which may hide a lost one: %d"},
	{"resent", result.Warning, "messages sent again, each of which may hide a lost one: %d"},
	{"excess", result.Warning, "more messages received than completed, by duplicates or another producer: %d"},
	{
		"unanswered", result.Warning,
		"the broker did not answer when it was asked, before the consumers ended: what it still holds is left, " +
			"not lost",
	},
	{"verification", result.Warning, "%s"},
	{"log-errors", result.Note, "lines of errors in the broker's log: %d"},
	{"log-warnings", result.Note, "lines of warnings in the broker's log: %d"},
	{"process", result.Note, "%s"},
	{
		result.BrokerFindings + "added", result.Note,
		"the broker counted %d messages %s than it accepted: other clients sent, or it duplicated or dropped some",
	},
	{
		result.BrokerFindings + "acknowledged", result.Note,
		"the broker counts %d messages %s as consumed than were received: other clients consumed, or it may " +
			"deliver some again",
	},
	{"stall", result.Note, "%s %s, for %s at most: %s"},
	{"more-stalls", result.Note, "the broker stalled %d times more, never longer"},
	{
		"backlog-grew", result.Note,
		"received is below completed: when the load ended, %d messages more waited at the broker, or had gone " +
			"elsewhere, than when the measured part began",
	},
	{result.RowsMissing, result.Warning, "%s"},
}
