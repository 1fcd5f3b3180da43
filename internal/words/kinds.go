package words

import "github.com/perfmq/perfmq/pkg/result"

//nolint:gochecknoglobals // a table that never changes
var kinds = []Kind{
	{"error", result.Problem, "%s", "errors that ended the load, and the first failure of each class"},
	{"rejected", result.Problem, "messages rejected by the broker: %d", "messages that the broker refused"},
	{"released", result.Problem, "messages given back by the broker: %d", "messages that the broker did not take"},
	{
		"modified", result.Problem,
		"messages given back by the broker as modified: %d",
		"messages that the broker did not take, and perhaps tried to deliver",
	},
	{"failed", result.Problem, "messages failed: %d", "messages that ended with an error"},
	{
		"unconfirmed", result.Problem,
		"messages sent but not confirmed (the broker may have them or not): %d",
		"messages without an answer of the broker, but those in doubt",
	},
	{
		"unknown-end", result.Problem,
		"messages of unknown end: %d",
		"messages that the driver reported no end of: a mistake of perfmq",
	},
	{
		"nothing-sent", result.Problem,
		"nothing was sent: %s until the load ended",
		"no message left, because producers waited",
	},
	{
		"nothing-completed", result.Problem,
		"nothing was completed: of %d messages sent the broker accepted none",
		"messages sent",
	},
	{
		"too-few", result.Problem,
		"messages of --message-count not received when the duration ended: %d of %d",
		"messages that consumers were to receive",
	},
	{
		"unidentified", result.Problem,
		"none of the %d messages received from %s has the properties of those sent to %s: the broker drops them, as " +
			"RabbitMQ before 4 does, and ActiveMQ Classic without transport.transformer=jms; missing and lost messages may " +
			"be neither",
		"messages received over another protocol, without the mark of the run",
	},
	{
		"not-drained", result.Problem,
		"messages had not come when the step ended, which was to drain them: %d",
		"messages that a step left",
	},
	{
		"missing", result.Problem,
		"messages not received when the drain ended after %s: %d of %d",
		"without `--verify`: messages accepted by the broker and not received",
	},
	{
		"lost", result.Problem,
		"messages lost, accepted by the broker but never received: %d of %d",
		"with `--verify`, as the kinds below up to `unwatched`: see [verification.md](verification.md)",
	},
	{
		"left", result.Problem,
		"messages accepted by the broker and not received when the consumers ended: %d of %d",
		"messages that may still be at the broker, or with a consumer whose file was not given",
	},
	{
		"duplicated", result.Problem,
		"messages received more than once: %d copies too many, %d of them marked as redelivered",
		"copies beyond the first of each message, but those in `after-outage`",
	},
	{"damaged", result.Problem, "messages damaged: %d%s", "messages that differ from the sent ones"},
	{
		"out-of-order", result.Problem,
		"messages received out of order: %d, %d of them marked as redelivered",
		"messages behind a later one; a note, and no problem, without `--fail-on-disorder`",
	},
	{
		"refused-arrived", result.Problem,
		"messages refused by the broker, but received: %d",
		"messages that both sides know",
	},
	{
		"withheld-arrived", result.Problem,
		"messages rolled back, but received: %d",
		"messages that both sides know",
	},
	{
		"unconfirmed-arrived", result.Note,
		"messages that the broker did not confirm, but received: %d",
		"messages that both sides know",
	},
	{
		"unwatched", result.Problem,
		"no consumer's side of %s is known: its messages are not verified",
		"destinations",
	},
	{"verify-file", result.Problem, "%s", "verification files that could not be written as asked for"},
	{
		"outage-open", result.Problem,
		"the outage of %s was not over when the run ended: %d of %d workers were not connected again (%s)%s",
		"workers",
	},
	{
		"foreign", result.Warning,
		"messages of another run or tool taken from the destinations and not counted: %d",
		"messages; a problem with `--fail-on-foreign`",
	},
	{
		"unnumbered", result.Warning,
		"messages that carry no number of a verified run: %d",
		"messages; a problem with `--fail-on-foreign`",
	},
	{"nothing-received", result.Warning, "no message was received%s", "consumers got nothing"},
	{
		"bottleneck", result.Warning,
		"%s was the bottleneck: %s",
		"perfmq, or other programs on its machine, bounded the rate: rates are the least that the broker can do",
	},
	{
		"busy-processors", result.Warning,
		"perfmq used %.2f of the %d cores that it may use: latencies include CPU scheduling delay",
		"perfmq had hardly a processor to spare",
	},
	{
		"busy-machine", result.Warning,
		"the machine was %.0f%% busy, %.0f%% with other programs than perfmq, such as a broker: latencies include CPU " +
			"scheduling delay",
		"other programs kept the processors busy",
	},
	{
		"pause", result.Warning,
		"perfmq stood still %s, the longest for %s until %s: the latencies of %d sends and receipts include that",
		"times in which perfmq was stopped, suspended, or without a processor",
	},
	{"late-sends", result.Warning, "messages sent late through perfmq's own fault: %d of %d", "messages"},
	{
		"late-crowded", result.Warning,
		"messages sent late because other programs kept the processors busy: %d of %d",
		"messages",
	},
	{"late-paused", result.Warning, "messages sent late because perfmq stood still: %d of %d", "messages"},
	{
		"gc-pause", result.Warning,
		"perfmq stopped for %s while collecting garbage: latencies of that moment are its own",
		"1",
	},
	{
		"clock-forward", result.Warning,
		"the wall clock was set forward by %s during the run: transfer times between two machines are off by that",
		"microseconds",
	},
	{
		"clock-backward", result.Warning,
		"the wall clock was set backward by %s during the run: transfer times between two machines are off by that",
		"microseconds",
	},
	{
		"not-measured", result.Warning,
		"nothing was measured: there was no message after the warm-up of %s",
		"steps",
	},
	{
		"rate-missed", result.Warning,
		"the rate was missed by %s: %d of the %d messages that were due were not sent in time",
		"messages that were due and not sent, if they are more than 1%",
	},
	{
		"negative-transfer", result.Warning,
		"transfer times below zero, left out because the clocks of producer and consumer differ: %d of %d",
		"messages",
	},
	{
		"negative-age", result.Warning,
		"b2c or s2c times below zero, left out because the clocks of producer, broker and consumer differ: %d",
		"messages",
	},
	{
		"early", result.Warning,
		"messages delivered before their delay was over: %d of %d; clocks that differ cause this, and brokers that do " +
			"not delay, such as ActiveMQ Classic without schedulerSupport",
		"messages",
	},
	{
		"delayed", result.Warning,
		"transfer times are of both %d delayed messages, with their delays, and %d others",
		"messages sent with a delay; lateness is of these alone",
	},
	{"out-of-range", result.Warning, "latencies above %s, counted as that: %d", "latencies above 24 hours"},
	{
		"in-doubt", result.Warning,
		"messages in doubt, which the broker may have or not: %d; sent again %d, unconfirmed %d",
		"messages without an answer because of an outage, or although later ones had one",
	},
	{
		"not-durable", result.Warning,
		"a subscription of a topic that is not durable gets no message that is sent in an outage (see --durable)",
		"messages missing after an outage",
	},
	{
		"after-outage", result.Warning,
		"duplicates explained by outages: %d whose settlement was cut off, %d that were sent again",
		"copies beyond the first of each message",
	},
	{
		"redelivered", result.Warning,
		"messages that the broker delivered again, each of which may hide a lost one: %d",
		"without `--verify`: messages",
	},
	{
		"resent", result.Warning,
		"messages sent again, each of which may hide a lost one: %d",
		"without `--verify`: messages",
	},
	{
		"excess", result.Warning,
		"more messages received than completed, by duplicates or another producer: %d",
		"without `--verify`: messages",
	},
	{
		"unanswered", result.Warning,
		"the broker did not answer when it was asked, before the consumers ended: what it still holds is left, not lost",
		"messages left",
	},
	{"verification", result.Warning, "%s", "what limits the verification, such as a missing side or a selector"},
	{"log-errors", result.Note, "lines of errors in the broker's log: %d", "lines"},
	{"log-warnings", result.Note, "lines of warnings in the broker's log: %d", "lines"},
	{"process", result.Note, "%s", "the broker's process ended, or was started again"},
	{
		result.BrokerFindings + "added", result.Note,
		"the broker counted %d messages %s than it accepted: other clients sent, or it duplicated or dropped some",
		"at each destination: messages by which the broker's own count differs from the run's",
	},
	{
		result.BrokerFindings + "acknowledged", result.Note,
		"the broker counts %d messages %s as consumed than were received: other clients consumed, or it may deliver " +
			"some again",
		"at each destination: messages, too",
	},
	{
		"stall", result.Note,
		"%s %s, for %s at most: %s",
		"at a side (`send`, `receive`, `both`): times in which the broker stood still for `--stall-threshold` or " +
			"longer, with something to do; if others continued, the subject also has the group and the broker: `send, " +
			"group a, broker b`",
	},
	{
		"backlog-grew", result.Note,
		"received is below completed: when the load ended, %d messages more waited at the broker, or had gone elsewhere, " +
			"than when the measured part began",
		"messages, at a step of several",
	},
	{result.RowsMissing, result.Warning, "%s", "rows, or intervals of `--json`, could not be written"},
}
