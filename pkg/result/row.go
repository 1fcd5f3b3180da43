package result

// The phases of a step.
const (
	Warmup  = "warmup"  // load, but the latencies of its messages are not in the result's
	Measure = "measure" // load
	Drain   = "drain"   // no more sends; waiting for completions and deliveries
)

// Row is an interval of a run, usually a second: shorter at the end of a phase, longer if perfmq was stopped.
type Row struct {
	// Step is the name of the step.
	Step string `json:"step"`
	// Phase is "warmup", "measure" or "drain".
	Phase string `json:"phase"`
	// Time is the moment at which the interval ended, by the wall clock.
	Time int64 `json:"time"`
	// Elapsed is the time from the start of the load to the end of the interval, by the monotonic clock.
	Elapsed int64 `json:"elapsed"`
	// Length is the length of the interval, by the monotonic clock. It is never zero.
	Length int64 `json:"length"`
	// Counts of the interval. The sum over all rows is the total.
	Counts
	// InFlight is the number of messages sent and not ended, at the end of the interval.
	InFlight uint64 `json:"inFlight"`
	// Backlog is the number of messages at the broker, at the end of the interval; missing if unknown.
	Backlog *uint64 `json:"backlog,omitempty"`
	// Workers is the number of open producers and consumers.
	Workers int `json:"workers,omitempty"`
	// Live is the number of open connections of groups of connections, at the end of the interval.
	Live uint64 `json:"live,omitempty"`
	// Disconnected is the number of them that had lost their connection and had not reconnected, with --reconnect.
	Disconnected int `json:"disconnected,omitempty"`
	// Outages is the number of outages that had begun by the end of the interval.
	Outages uint64 `json:"outages,omitempty"`
	// Latencies that became known in the interval: of messages due in the warm-up if Phase is warmup, otherwise of
	// messages due after it.
	Latencies Latencies `json:"latencies"`
	// Leftover are the latencies of messages that were due in the warm-up and ended after it. They are in no sum.
	Leftover *Latencies `json:"leftover,omitempty"`
	// Tester is perfmq's own use of its machine in the interval.
	Tester Tester `json:"tester"`
	// Verified are the findings of the verification up to the end of the interval: totals, not differences.
	Verified *Progress `json:"verified,omitempty"`
	// Groups are the figures of the groups in the interval, if the scenario has several; inactive groups are left out. If
	// there are more than 8 groups, the last ones are combined as "(others)". Their counts add up to the counts of the
	// row, except that sends and waits at the very end of the interval may count in the next one.
	Groups []RowGroup `json:"groups,omitempty"`
	// BrokerSide is the use of resources by the broker and its host in an interval of about this length; missing if
	// unknown.
	BrokerSide *BrokerUse `json:"brokerSide,omitempty"`
	// Arrivals are the messages that came from each other shard of the run.
	Arrivals []Arrival `json:"arrivals,omitempty"`
}

// MaxRowGroups is the number of groups of a row with a name of their own, and OtherGroups the name of the rest.
const (
	MaxRowGroups = 8
	OtherGroups  = "(others)"
)

// RowGroup holds the figures of a group of a scenario in an interval.
type RowGroup struct {
	// Name is the name of the group.
	Name string `json:"name"`
	// Counts of the interval.
	Counts
	// Latencies that became known in the interval, as in the row, but without histograms. Earlier versions left them out
	// of long runs.
	Latencies *Latencies `json:"latencies,omitempty"`
}

// Arrival are messages that came from another shard.
type Arrival struct {
	// Shard is the number of the shard that sent them.
	Shard int `json:"shard"`
	// Messages is the number of messages with a time of sending.
	Messages uint64 `json:"messages"`
	// Fastest is the shortest time from the send, by the clock of that shard, to the delivery, by the clock of this one.
	Fastest Difference `json:"fastest"`
}

// Difference is a difference of two times in microseconds. It may be below zero.
type Difference int64

// Progress are the findings of a verification while the run continues.
type Progress struct {
	Received    uint64 `json:"received"`              // messages, each counted once
	Duplicates  uint64 `json:"duplicates"`            // deliveries beyond the first of each message
	Redelivered uint64 `json:"duplicatesRedelivered"` // part of Duplicates that the broker marked
	// AfterOutage: part of Duplicates, because an outage cut off their settlement.
	AfterOutage uint64 `json:"duplicatesAfterOutage,omitempty"`
	// Resent: part of Duplicates, because their messages were sent again. They are not in AfterOutage.
	Resent     uint64 `json:"duplicatesResent,omitempty"`
	Disordered uint64 `json:"outOfOrder"` // messages that came after a later one
	Damaged    uint64 `json:"damaged"`    // deliveries that differ from the sent message
	Foreign    uint64 `json:"foreign"`    // deliveries of messages from other runs and tools
	// Lost: accepted, and not received within the window (--verify-window), of Expected. ArrivedLate: received after
	// it, and no longer in Lost.
	Expected    uint64 `json:"expected,omitempty"`
	Lost        uint64 `json:"lost,omitempty"`
	ArrivedLate uint64 `json:"arrivedLate,omitempty"`
}

// Counts are counts of messages and transactions, by role.
type Counts struct {
	// Producers are the counts of the producers; missing if there are none.
	Producers *Producers `json:"producers,omitempty"`
	// Consumers are the counts of the consumers; missing if there are none.
	Consumers *Consumers `json:"consumers,omitempty"`
	// Connections are the counts of groups that open connections as their load; missing if there are none.
	Connections *Connections `json:"connections,omitempty"`
	// Commits are the transactions that the broker confirmed, CommitsFailed those it did not confirm, of both roles.
	Commits       uint64 `json:"commits,omitempty" key:"commits" role:"transacted" metric:"commits_total" help:"Transactions confirmed by the broker."`
	CommitsFailed uint64 `json:"commitsFailed,omitempty" name:"commits.failed" key:"commitsFailed" role:"transacted" metric:"commits_failed_total" help:"Transactions that the broker did not confirm."`
	// OutOfRange is the number of latencies above 24 hours, recorded as 24 hours.
	OutOfRange uint64 `json:"outOfRange,omitempty" key:"outOfRange" metric:"latencies_out_of_range_total" help:"Latencies above 24 hours, counted as 24 hours."`
	// Paused are latencies that include a pause of perfmq itself.
	Paused uint64 `json:"paused,omitempty" key:"paused" metric:"latencies_paused_total" help:"Sends and receipts whose latencies include a pause of perfmq."`
}

// Producers are counts of producers. Each message sent ends in one of Completed, Rejected, Released, Modified, Failed
// and Unconfirmed.
type Producers struct {
	// Sent: handed to the driver.
	Sent uint64 `json:"sent" name:"sent" metric:"messages_sent_total" help:"Messages handed to the client."`
	// Blocked is the number of waits for the broker: for a message in flight to end, or for credit. NoLeave counts the
	// waits for credit.
	Blocked uint64 `json:"blocked" metric:"messages_blocked_total" help:"Waits of producers for room: max-pending messages in flight, or no credit."`
	NoLeave uint64 `json:"noLeave,omitempty"`
	// SocketWaits is the number of waits for the network to take more. They are not in Blocked.
	SocketWaits uint64 `json:"socketWaits,omitempty"`
	// Completed: accepted by the broker.
	Completed uint64 `json:"completed" name:"completed" metric:"messages_completed_total" help:"Messages confirmed by the broker."`
	// Rejected: refused by the broker.
	Rejected uint64 `json:"rejected,omitempty" name:"rejected" help:"Messages refused by the broker."`
	// Released: given back by the broker, undelivered. Modified: given back with changes.
	Released uint64 `json:"released,omitempty" name:"released" help:"Messages given back by the broker."`
	Modified uint64 `json:"modified,omitempty" name:"modified" help:"Messages given back by the broker as modified."`
	// Failed: ended with an error. Unsent: part of Failed, never sent.
	Failed uint64 `json:"failed,omitempty" name:"failed" help:"Messages that ended with an error."`
	Unsent uint64 `json:"unsent,omitempty" key:"unsent" metric:"sends_unsent_total" help:"Failed messages that the client could not send."`
	// Unconfirmed: in flight when the connection or the run ended; the broker may or may not have them.
	Unconfirmed uint64 `json:"unconfirmed,omitempty" name:"unconfirmed" help:"Messages in doubt: their confirmation was lost."`
	// Resent is how often a message was sent again because it was in doubt. They are not in Sent.
	Resent uint64 `json:"resent,omitempty" name:"resent" metric:"messages_resent_total" help:"Repeats of messages in doubt (--in-doubt resend); not in sent."`
	// Late is the number of sends that left late although neither the broker nor max-pending held them up.
	Late uint64 `json:"late,omitempty" name:"late" warmup:"true" metric:"sends_late_total" help:"Messages sent late though neither broker nor max-pending blocked them."`
	// Strays is the number of answers to no message in flight.
	Strays uint64 `json:"strays,omitempty" metric:"answers_stray_total" help:"Answers to no message in flight: too late, or repeated."`
	// Replies are replies to requests, in time. TimedOut are requests without one. LateReplies came after that time,
	// DuplicateReplies after another reply. ForeignReplies belong to requests of other runs or tools,
	// UncorrelatedReplies to no request that can be known.
	Replies             uint64 `json:"replies,omitempty" name:"replies" key:"replies" role:"requesting" metric:"replies_total" help:"Replies to requests, in time."`
	TimedOut            uint64 `json:"timedOut,omitempty" name:"timed_out" key:"requestsTimedOut" role:"requesting" metric:"requests_timed_out_total" help:"Requests without a reply within --reply-timeout."`
	LateReplies         uint64 `json:"lateReplies,omitempty" name:"replies.late" warmup:"true" key:"repliesLate" role:"requesting" metric:"replies_late_total" help:"Replies to requests that had timed out; not in replies."`
	DuplicateReplies    uint64 `json:"duplicateReplies,omitempty" name:"replies.duplicated" warmup:"true" key:"repliesDuplicated" role:"requesting" metric:"replies_duplicated_total" help:"Further replies to requests that had one; not in replies."`
	ForeignReplies      uint64 `json:"foreignReplies,omitempty" name:"replies.foreign" warmup:"true" key:"repliesForeign" role:"requesting" metric:"replies_foreign_total" help:"Replies to requests of other runs or tools."`
	UncorrelatedReplies uint64 `json:"uncorrelatedReplies,omitempty" name:"replies.uncorrelated" warmup:"true" key:"repliesUncorrelated" role:"requesting" metric:"replies_uncorrelated_total" help:"Replies without the correlation ID of a request."`
	// CompletedBytes is the payload of the completed messages in bytes: their bodies.
	CompletedBytes uint64 `json:"completedBytes,omitempty" metric:"payload_completed_bytes_total" help:"Payload of the completed messages."`
	// Failures is the number of messages by state and class of the error: {"failed": {"timeout": 10}}.
	Failures map[string]map[string]uint64 `json:"failures,omitempty"`
}

// Consumers are counts of consumers.
type Consumers struct {
	// Received: delivered, without foreign messages.
	Received uint64 `json:"received" name:"received" metric:"messages_received_total" help:"Messages delivered to consumers."`
	// Redelivered: part of Received, marked by the broker as delivered before.
	Redelivered uint64 `json:"redelivered,omitempty" name:"redelivered" key:"redelivered" metric:"messages_redelivered_total" help:"Received messages marked as redelivered."`
	// Unstamped: part of Received, without a time of sending, and thus without a transfer time.
	Unstamped uint64 `json:"unstamped,omitempty" key:"unstamped" metric:"messages_unstamped_total" help:"Received messages without a usable time property."`
	// Foreign: delivered, but sent by another run or tool.
	Foreign uint64 `json:"foreign,omitempty" name:"foreign" warmup:"true" key:"foreign" metric:"messages_foreign_total" help:"Messages of other runs or tools; not in received."`
	// NegativeTransfers are transfer times below zero, which are in no distribution: clocks differ. NegativeAges: the same
	// of b2c and s2c times.
	NegativeTransfers uint64 `json:"negativeTransfers,omitempty" key:"negativeTransfers" metric:"transfers_negative_total" help:"Messages received before they were sent: clocks differ."`
	NegativeAges      uint64 `json:"negativeAges,omitempty" key:"negativeAges" metric:"ages_negative_total" help:"B2C and S2C times below zero: clocks differ."`
	// ReceivedBytes is the payload of the received messages in bytes: their bodies.
	ReceivedBytes uint64 `json:"receivedBytes,omitempty" metric:"payload_received_bytes_total" help:"Payload of the received messages."`
	// Delayed: received after a delay that the producer had requested. Early: part of Delayed, received a millisecond or
	// more before the delay was over.
	Delayed uint64 `json:"delayed,omitempty" key:"receivedDelayed" role:"delaying" metric:"messages_delayed_total" help:"Received messages with a delivery delay."`
	Early   uint64 `json:"early,omitempty" name:"early" key:"receivedEarly" role:"delaying" metric:"messages_early_total" help:"Messages delivered before their delay was over."`
	// Released: given back on purpose, so that they come again; not in Received. Rejected: part of Received, rejected on
	// purpose.
	Released uint64 `json:"released,omitempty" name:"consumer.released" key:"consumerReleased" help:"Messages given back by consumers (--consumer-fail); not in received."`
	Rejected uint64 `json:"rejected,omitempty" name:"consumer.rejected" key:"consumerRejected" help:"Received messages rejected by consumers (--consumer-fail)."`
	// Of a responder: Answered are requests with a reply that the broker confirmed, Unanswered requests with a reply
	// that it did not confirm, Unanswerable messages without an address for a reply.
	Answered     uint64 `json:"answered,omitempty" name:"answered" key:"answered" role:"responding" metric:"requests_answered_total" help:"Received requests with a reply that the broker has confirmed."`
	Unanswered   uint64 `json:"unanswered,omitempty" name:"unanswered" key:"unanswered" role:"responding" metric:"requests_unanswered_total" help:"Received requests with a reply that the broker has not confirmed."`
	Unanswerable uint64 `json:"unanswerable,omitempty" name:"unanswerable" key:"unanswerable" role:"responding" metric:"requests_unanswerable_total" help:"Received messages without an address for a reply."`
}

// Connections are counts of connections that a group opens as its load. Each connection that was due ends in exactly
// one of Opened, Refused, TimedOut, Unmade and Abandoned.
type Connections struct {
	// Opened: became usable: logged in, and attached to a destination if there is one.
	Opened uint64 `json:"opened" name:"connections.opened" key:"opened" metric:"connections_opened_total" help:"Connections of a group of connections that became usable."`
	// Refused by the broker or the network. TimedOut: no answer within the connect time-out. Unmade: perfmq's machine
	// had no port, file or memory. Abandoned: cut short by the end of the load.
	Refused   uint64 `json:"refused,omitempty" name:"connections.refused" key:"refused" metric:"connections_refused_total" help:"Connections that the broker, or the network, refused."`
	TimedOut  uint64 `json:"timedOut,omitempty" name:"connections.timed_out" key:"timedOut" metric:"connections_timed_out_total" help:"Connections that did not become usable within --connect-timeout."`
	Unmade    uint64 `json:"unmade,omitempty" name:"connections.unmade" key:"unmade" metric:"connections_unmade_total" help:"Connections for which perfmq's machine had no port, file or memory."`
	Abandoned uint64 `json:"abandoned,omitempty" name:"connections.abandoned" key:"abandoned" metric:"connections_abandoned_total" help:"Connections that were due, and cut short by the end of the load."`
	// Closed: part of Opened, closed by plan. Lost: part of Opened, ended by the broker or the network. The others are
	// still open.
	Closed uint64 `json:"closed,omitempty" name:"connections.closed" key:"closed" metric:"connections_closed_total" help:"Opened connections that were closed by plan."`
	Lost   uint64 `json:"lost,omitempty" name:"connections.lost" key:"connectionsLost" metric:"connections_lost_total" help:"Opened connections that the broker, or the network, ended."`
	// Failures are Refused, TimedOut, Unmade and Lost by class of the error.
	Failures map[string]uint64 `json:"failures,omitempty"`
}

// warmupTag begins the tags of messages that were due in the warm-up.
const warmupTag = "warmup-"

// kept returns the latencies that have a histogram.
func (l *Latencies) kept() (kept Latencies) {
	for k, latency := range l {
		if latency != nil && latency.Histogram != nil {
			kept[k] = latency
		}
	}
	return kept
}

// NewSum returns the result of a run without rows so far. [Result.AddRow] adds them.
func NewSum(head Head) *Result {
	return &Result{Head: head, End: head.Start, Outcome: Outcome{Reason: "the run goes on", Status: 1}}
}

// AddRow adds the next row of the run, with the histograms of its latencies, to its sums.
func (r *Result) AddRow(row *Row) {
	r.count(row)
	if row.Phase != Warmup {
		r.addLatencies(row.Step, &row.Latencies)
	}
}

// addLatencies adds the latencies of a row of a step.
func (r *Result) addLatencies(step string, l *Latencies) {
	r.Latencies.add(l)
	named(&r.Steps, step, stepName).Latencies.add(l)
}

func stepName(s *Step) *string { return &s.Name }

// count adds a row without its latencies.
func (r *Result) count(row *Row) {
	step := named(&r.Steps, row.Step, stepName) // steps of shards overlap
	if step.End == 0 {
		step.Start = max(0, row.Time-row.Length)
	}
	r.End, step.End = row.Time, row.Time
	r.Total.Add(&row.Counts)
	step.Counts.Add(&row.Counts)
	r.Tester.Follow(&row.Tester)
}

// Add adds the figures of the same group elsewhere.
func (g *Group) Add(other *Group) {
	addTo(&g.Due, other.Due)
	g.Counts.Add(&other.Counts)
	g.Measured.Add(&other.Measured)
	g.Latencies.add(&other.Latencies)
}
