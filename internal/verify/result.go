package verify

import (
	"fmt"
	"slices"
	"strings"
)

// Progress are the counts that are known while a run goes on. They only grow, except that of disorder: a message that
// came behind later ones may turn out to be a copy of one that came in time.
type Progress struct {
	Received    uint64 `json:"received"`                        // messages, each counted once
	Duplicates  uint64 `json:"duplicates"`                      // deliveries beyond the first of each message
	Redelivered uint64 `json:"duplicatesRedelivered"`           // part of Duplicates that the broker marked as redelivered
	AfterOutage uint64 `json:"duplicatesAfterOutage,omitempty"` // part of Duplicates that an outage explains
	Resent      uint64 `json:"duplicatesResent,omitempty"`      // part of Duplicates: their messages were sent again
	Disordered  uint64 `json:"outOfOrder"`                      // messages behind a later one of their producer
	Damaged     uint64 `json:"damaged"`                         // deliveries that differ from the message sent
	Foreign     uint64 `json:"foreign"`                         // deliveries of foreign messages
}

func (p *Progress) add(o Progress) {
	p.Received += o.Received
	p.Duplicates += o.Duplicates
	p.Redelivered += o.Redelivered
	p.AfterOutage += o.AfterOutage
	p.Resent += o.Resent
	p.Disordered += o.Disordered
	p.Damaged += o.Damaged
	p.Foreign += o.Foreign
}

// Add adds up the progress of several subscriptions.
func Add(list ...Progress) (sum Progress) {
	for _, p := range list {
		sum.add(p)
	}
	return sum
}

// Counts are the fates of the messages for one subscription, or for all of them. Each is exact.
//
// Expected = Received - UnconfirmedArrived - RefusedArrived - WithheldArrived + Lost + Left + Early.
type Counts struct {
	Expected uint64 `json:"expected"` // accepted by the broker to be delivered
	Received uint64 `json:"received"` // different messages that arrived
	Once     uint64 `json:"once"`     // part of Received: messages that arrived once
	Lost     uint64 `json:"lost"`     // accepted, and never arrived although consumers waited for them
	Left     uint64 `json:"left"`     // accepted, and not arrived when the consumers ended: perhaps still at the broker
	Early    uint64 `json:"early"`    // accepted before the subscription existed

	Duplicates  uint64 `json:"duplicates"`            // deliveries beyond the first of each message
	Redelivered uint64 `json:"duplicatesRedelivered"` // part of Duplicates that the broker marked as redelivered
	// AfterOutage is the part of Duplicates that came while consumers were being connected again, or soon after that, or
	// marked as redelivered after an outage: their settlement was cut off.
	AfterOutage uint64 `json:"duplicatesAfterOutage,omitempty"`
	// Resent is the part of Duplicates that came because their messages were in doubt and were sent again: both arrived.
	// They are not in AfterOutage.
	Resent uint64 `json:"duplicatesResent,omitempty"`

	Disordered            uint64 `json:"outOfOrder"`            // messages all of whose copies came behind a later one
	DisorderedRedelivered uint64 `json:"outOfOrderRedelivered"` // part of Disordered that were marked as redelivered

	Damaged   uint64 `json:"damaged"`   // deliveries whose body or ID differs from the one sent
	Illegible uint64 `json:"illegible"` // part of Damaged: the ID, so that it is not known which message it is
	Foreign   uint64 `json:"foreign"`   // deliveries of other runs and tools

	UnconfirmedArrived uint64 `json:"unconfirmedArrived"` // sent without the broker's answer, and arrived
	UnconfirmedMissing uint64 `json:"unconfirmedMissing"` // sent without the broker's answer, and not arrived
	RefusedArrived     uint64 `json:"refusedArrived"`     // refused by the broker, and arrived
	WithheldArrived    uint64 `json:"withheldArrived"`    // rolled back by plan, and arrived

	// Gaps counts the numbers below the highest seen that did not arrive here, where the numbers sent are not known: other
	// consumers may have had them.
	Gaps uint64 `json:"gaps"`
}

func (c *Counts) add(o *Counts) {
	c.Expected += o.Expected
	c.Received += o.Received
	c.Once += o.Once
	c.Lost += o.Lost
	c.Left += o.Left
	c.Early += o.Early
	c.Duplicates += o.Duplicates
	c.Redelivered += o.Redelivered
	c.AfterOutage += o.AfterOutage
	c.Resent += o.Resent
	c.Disordered += o.Disordered
	c.DisorderedRedelivered += o.DisorderedRedelivered
	c.Damaged += o.Damaged
	c.Illegible += o.Illegible
	c.Foreign += o.Foreign
	c.UnconfirmedArrived += o.UnconfirmedArrived
	c.UnconfirmedMissing += o.UnconfirmedMissing
	c.RefusedArrived += o.RefusedArrived
	c.WithheldArrived += o.WithheldArrived
	c.Gaps += o.Gaps
}

// Kind is a defect of a message.
type Kind string

// The kinds of which a [Scope] names examples.
const (
	Lost        Kind = "lost"
	Duplicated  Kind = "duplicated"
	Disordered  Kind = "out of order"
	Damaged     Kind = "damaged"
	Unconfirmed Kind = "unconfirmed but arrived"
	Refused     Kind = "refused but arrived"
	Withheld    Kind = "withheld but arrived"
)

// Message names a message.
type Message struct {
	Run      int64  `json:"run"`
	Producer int64  `json:"producer"`
	Number   uint64 `json:"number"`
}

// Scope is the verification of one subscription: of a queue, of a shared or durable subscription, or of one consumer
// of a topic.
type Scope struct {
	Destination  string `json:"destination"`
	Subscription string `json:"subscription,omitempty"`
	Counts
	// Known: it is known which messages were to arrive. Otherwise Expected, Lost, Left, Early and the counts that depend
	// on the outcomes of sends are zero.
	Known bool `json:"expectedKnown"`
	// Examples names the first few messages of each kind, by producer and number.
	Examples map[Kind][]Message `json:"examples,omitempty"`

	lostBefore []uint64 // see Result.LostBefore
}

// Result is the verification of a run.
type Result struct {
	Total  Counts  `json:"total"`
	Scopes []Scope `json:"subscriptions"`
	// Known: it is known for all scopes which messages were to arrive.
	Known bool `json:"expectedKnown"`
	// Sent is the number of messages that the producers sent, each counted once.
	Sent uint64 `json:"sent"`
	// Unwatched are destinations with messages and without a consumer.
	Unwatched []string `json:"unwatched,omitempty"`
	// Notes are remarks that help to understand the counts.
	Notes []string `json:"notes,omitempty"`
	// LostBefore are, for each of [Sent].Marks, the messages of Total.Lost that were numbered before it, and not before an
	// earlier one.
	LostBefore []uint64 `json:"-"`

	runs int
}

// Allow says which findings do not make a run a failure.
type Allow struct{ Lost, Duplicates, Damaged, Disorder bool }

// Problems lists the reasons why the run is a failure.
func (r *Result) Problems(allow Allow) []string {
	var list []string
	t := &r.Total
	add := func(allowed bool, n uint64, kind Kind, format string, args ...any) {
		if n == 0 || allowed {
			return
		}
		text := fmt.Sprintf(format, args...)
		if first := r.First(kind); first != "" {
			text += "; first: " + first
		}
		list = append(list, text)
	}
	add(allow.Lost, t.Lost, Lost, "messages lost, accepted by the broker but never received: %d of %d", t.Lost, t.Expected)
	copies := t.Duplicates - min(t.AfterOutage+t.Resent, t.Duplicates)
	more := fmt.Sprintf(", %d of them marked as redelivered", min(copies, t.Redelivered))
	if copies < t.Duplicates { // some of those that are marked are among the explained ones
		more = ""
	}
	if t.AfterOutage > 0 {
		more = fmt.Sprintf(", and %d more that an outage explains", t.AfterOutage)
	}
	if t.Resent > 0 {
		more += fmt.Sprintf(", and %d more of messages that were sent again", t.Resent)
	}
	add(allow.Duplicates, copies, Duplicated, "messages received more than once: %d copies too many%s", copies, more)
	illegible := ""
	if t.Illegible > 0 {
		illegible = fmt.Sprintf(", %d of them beyond recognition, so that they count as lost as well", t.Illegible)
	}
	add(allow.Damaged, t.Damaged, Damaged, "messages damaged: %d%s", t.Damaged, illegible)
	add(allow.Disorder, t.Disordered, Disordered, "messages received out of order: %d, %d of them marked as redelivered",
		t.Disordered, t.DisorderedRedelivered)
	add(false, t.RefusedArrived, Refused, "messages refused by the broker, but received: %d", t.RefusedArrived)
	add(false, t.WithheldArrived, Withheld, "messages rolled back, but received: %d", t.WithheldArrived)
	for _, d := range r.Unwatched {
		list = append(list, fmt.Sprintf("no consumer's side of %s is known: its messages are not verified", d))
	}
	return list
}

// First names the first few messages of a kind: "producer-0 12, 57 on queue://A".
func (r *Result) First(kind Kind) string {
	var parts []string
	left := maxExamples
	for i := range r.Scopes {
		s := &r.Scopes[i]
		list := s.Examples[kind]
		list = list[:min(len(list), left)]
		left -= len(list)
		if len(list) == 0 {
			continue
		}
		text := r.names(list)
		if len(r.Scopes) > 1 {
			text += " on " + s.Name()
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func (r *Result) names(list []Message) string {
	var b strings.Builder
	for i, m := range list {
		switch {
		case i > 0 && m.Run == list[i-1].Run && m.Producer == list[i-1].Producer:
			fmt.Fprintf(&b, ", %d", m.Number)
			continue
		case i > 0:
			b.WriteString(", ")
		}
		if r.runs > 1 {
			fmt.Fprintf(&b, "run %d ", m.Run)
		}
		fmt.Fprintf(&b, "producer-%d %d", m.Producer, m.Number)
	}
	return b.String()
}

// Name returns destination and subscription.
func (s *Scope) Name() string {
	if s.Subscription == "" {
		return s.Destination
	}
	return s.Destination + " (" + s.Subscription + ")"
}

// example notes a message, if there is room for it.
func (s *Scope) example(kind Kind, key streamKey, n uint64) (more bool) {
	list := s.Examples[kind]
	if len(list) >= maxExamples {
		return false
	}
	m := Message{Run: key.run, Producer: key.producer, Number: n}
	if !slices.Contains(list, m) {
		s.Examples[kind] = append(list, m)
	}
	return len(s.Examples[kind]) < maxExamples
}
