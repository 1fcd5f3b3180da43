package result

// Verification is the fate of each message, in counts.
type Verification struct {
	// Known: the messages that should have arrived are known. Otherwise Expected, Lost, Left, Early and the counts that
	// depend on the outcomes of sends are zero.
	Known bool `json:"expectedKnown"`
	// Sent is the number of messages that the producers sent.
	Sent uint64 `json:"sent"`
	// Total are the counts of all subscriptions.
	Total Verified `json:"total"`
	// Subscriptions are the counts of each.
	Subscriptions []Subscription `json:"subscriptions"`
	// Unwatched are destinations with messages and without a consumer.
	Unwatched []string `json:"unwatched,omitempty"`
	// Notes tell how to read the counts.
	Notes []string `json:"notes,omitempty"`
}

// Subscription is the verification of a queue, of a shared or durable subscription, or of one consumer of a topic.
type Subscription struct {
	// Destination is the queue or topic.
	Destination string `json:"destination"`
	// Name is the name of the subscription; empty for a queue.
	Name string `json:"subscription,omitempty"`
	// Known: as in Verification.
	Known bool `json:"expectedKnown"`
	Verified
}

// Verified are exact counts of messages.
//
// Expected = Received - UnconfirmedArrived - RefusedArrived - WithheldArrived + Lost + Left + Early.
type Verified struct {
	// Expected: accepted by the broker to be delivered.
	Expected uint64 `json:"expected"`
	// Received: different messages that arrived. Once: the ones of Received that arrived once.
	Received uint64 `json:"received"`
	Once     uint64 `json:"once"`
	// Lost: accepted, and never arrived although consumers waited for them.
	Lost uint64 `json:"lost"`
	// Left: accepted, and not arrived when the consumers ended.
	Left uint64 `json:"left"`
	// Early: accepted before the subscription existed.
	Early uint64 `json:"early"`
	// Duplicates: deliveries beyond the first of each message. Redelivered: part of Duplicates, marked by the broker.
	Duplicates  uint64 `json:"duplicates"`
	Redelivered uint64 `json:"duplicatesRedelivered"`
	// AfterOutage: part of Duplicates, because an outage cut off their settlement.
	AfterOutage uint64 `json:"duplicatesAfterOutage,omitempty"`
	// Resent: part of Duplicates, because their messages were sent again. They are not in AfterOutage.
	Resent uint64 `json:"duplicatesResent,omitempty"`
	// Disordered: messages that came after a later one. DisorderedRedelivered: part of Disordered, marked by the broker.
	Disordered            uint64 `json:"outOfOrder"`
	DisorderedRedelivered uint64 `json:"outOfOrderRedelivered"`
	// Damaged: deliveries that differ from the sent message in body or ID. Illegible: part of Damaged, with an unreadable
	// ID.
	Damaged   uint64 `json:"damaged"`
	Illegible uint64 `json:"illegible"`
	// Foreign: deliveries of other runs and tools.
	Foreign uint64 `json:"foreign"`
	// UnconfirmedArrived and UnconfirmedMissing: sent without an answer of the broker.
	UnconfirmedArrived uint64 `json:"unconfirmedArrived"`
	UnconfirmedMissing uint64 `json:"unconfirmedMissing"`
	// RefusedArrived: refused by the broker, and arrived.
	RefusedArrived uint64 `json:"refusedArrived"`
	// WithheldArrived: rolled back by plan, and arrived.
	WithheldArrived uint64 `json:"withheldArrived"`
	// Gaps: missing numbers below the highest received one, if the sent numbers are unknown.
	Gaps uint64 `json:"gaps"`
}
