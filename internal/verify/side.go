package verify

import (
	"math"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Side is the knowledge of one process of a run: the messages that it sent, received, or both. Times are microseconds
// since the Unix epoch, by that process' clock.
type Side struct {
	// ID tells processes apart; it is the Run in the IDs of the messages that the process sent. Above zero.
	ID   int64  `json:"id"`
	Role string `json:"role"` // client, producer or consumer
	// Shard is the number of the process among the Shards that share the ID, from 1; both are 0 for a process with an ID
	// of its own.
	Shard  int `json:"shard,omitempty"`
	Shards int `json:"shards,omitempty"`
	// Turn: the side has what the process learned until At, and had passed on before. Last: it is the last one. Window is
	// the time within which messages are to arrive, in microseconds.
	Turn   bool  `json:"turn,omitempty"`
	Last   bool  `json:"lastTurn,omitempty"`
	At     int64 `json:"at,omitempty"`
	Window int64 `json:"window,omitempty"`
	// TTL: the messages sent may expire.
	TTL      bool        `json:"ttl,omitempty"`
	Sent     []*Sent     `json:"sent,omitempty"`
	Received []*Received `json:"received,omitempty"`
}

// Shift moves all moments of the side by that many microseconds: to another clock.
func (s *Side) Shift(by int64) {
	for _, sent := range s.Sent {
		sent.Started, sent.Ended = sent.Started+by, sent.Ended+by
	}
	for _, r := range s.Received {
		for _, at := range []*int64{&r.Opened, &r.Ended, &r.Last} {
			if *at != 0 {
				*at += by
			}
		}
	}
}

// Sent are the messages that one producer sent.
type Sent struct {
	Producer    int64  `json:"producer"`
	Destination string `json:"destination"` // see [hidden]
	Count       uint64 `json:"count"`       // messages, numbered from 0
	// Started is when the load began, Ended when the last step with this producer ended.
	Started int64 `json:"started"`
	Ended   int64 `json:"ended"`
	Delay   int64 `json:"delay,omitempty"` // of the delivery, in microseconds

	ended *roaring64.Bitmap // in a turn

	outcomes
	// Resent counts the resends of each message, by number.
	Resent tally `json:"resent,omitempty"`

	// Marks are, at each [Ledger.Mark], the messages numbered and not judged as lost yet. Files do not hold them.
	Marks []Bounds `json:"-"`
}

// Received are the messages that arrived at one subscription, or at the part of its consumers that the process had.
type Received struct {
	Destination string `json:"destination"` // see [hidden]
	// Subscription is the name under which consumers share the messages, across processes too; "" for a queue.
	Subscription string `json:"subscription,omitempty"`
	// Private: no other process has a part in this subscription, whatever it is called.
	Private bool `json:"private,omitempty"`
	// Selective: not all messages are meant to arrive.
	Selective bool `json:"selective,omitempty"`
	// Late: messages sent before Opened may not arrive, as the subscription did not exist.
	Late bool `json:"late,omitempty"`
	// Opened and Ended are when the consumers were opened and stopped receiving, Last when the last message came, 0 if
	// none did.
	Opened int64 `json:"opened"`
	Ended  int64 `json:"ended"`
	Last   int64 `json:"last"`
	// Sent are the messages sent while the subscription existed, for producers with such a limit. Other messages of
	// these producers are not for it.
	Sent Periods `json:"sent,omitempty"`
	// Drained: the consumers waited for more at the end, the broker gave a sign of life, and nothing came.
	Drained bool `json:"drained,omitempty"`
	// CutOff: consumers lost their connections and went on, with --reconnect. The broker may have given the messages that
	// they had not settled to another process.
	CutOff bool `json:"cutOff,omitempty"`
	// Receiving: in a turn, all consumers were connected.
	Receiving bool `json:"receiving,omitempty"`
	// Foreign counts deliveries without an ID or of too many producers, Illegible deliveries with a damaged ID.
	Foreign   uint64 `json:"foreign,omitempty"`
	Illegible uint64 `json:"illegible,omitempty"`

	Streams []*stream `json:"streams,omitempty"`
}

// hidden returns the name of a destination without a password, if it looks like a URL with one: files hold it.
func hidden(d driver.Destination) string { return safetext.URLs(d.String()) }

// SetName sets destination and subscription.
func (r *Received) SetName(where driver.Destination, subscription string) {
	plain := strings.TrimPrefix(hidden(where), where.Kind.String()+"://")
	r.Destination, r.Subscription = hidden(where), strings.ReplaceAll(subscription, where.Name, plain)
}

// Stream are the messages of a producer of a run.
type Stream struct {
	Run      int64 `json:"run"`
	Producer int64 `json:"producer"`
}

// Bounds are numbers of messages: From and those after it, below To.
type Bounds struct {
	From uint64 `json:"from,omitempty"`
	To   uint64 `json:"to"`
}

// Periods are the messages of each producer that were sent while a subscription existed.
type Periods map[Stream]Bounds

// of returns the numbers of a set that are within the bounds.
func (b Bounds) of(numbers *roaring64.Bitmap) *roaring64.Bitmap {
	if numbers.IsEmpty() || b.From <= numbers.Minimum() && numbers.Maximum() < b.To {
		return numbers
	}
	within := numbers.Clone()
	within.RemoveRange(0, b.From)
	within.RemoveRange(b.To, math.MaxUint64)
	return within
}

// join returns the messages of one producer that arrived at two places that share them; of each place with whether its
// consumers were cut off, see [Received].
func (s *stream) join(o *stream, sCutOff, oCutOff bool) *stream {
	if o.Window != nil {
		s, o, sCutOff, oCutOff = o, s, oCutOff, sCutOff
	}
	inBoth := roaring64.And(s.arrived, o.arrived)
	j := &stream{
		Stream: s.Stream, Copies: s.Copies + o.Copies,
		Duplicates: s.Duplicates + o.Duplicates + inBoth.GetCardinality(),
		arrived:    roaring64.Or(s.arrived, o.arrived),
		marked:     inAll(s.marked, s.arrived, o.marked, o.arrived),
		late:       inAll(s.late, s.arrived, o.late, o.arrived),
		Damaged:    s.Damaged + o.Damaged, DamagedFirst: slices.Concat(s.DamagedFirst, o.DamagedFirst),
	}
	copies := s.extra().plus(o.extra()).plus(tally{inBoth})
	j.doubled, j.More = copies[0], copies[1:]
	// A message that came to both is redelivered if all its copies at one of them were: see again. An outage of the other
	// one explains that.
	moved := roaring64.New()
	if sCutOff {
		moved.Or(o.marked)
	}
	if oCutOff {
		moved.Or(s.marked)
	}
	moved.And(inBoth)
	j.AfterOutage = s.AfterOutage + o.AfterOutage + moved.GetCardinality()
	j.Outaged = s.Outaged.plus(o.Outaged)
	if !moved.IsEmpty() {
		j.Outaged = j.Outaged.plus(tally{moved})
	}
	j.Redelivered = s.Redelivered + o.Redelivered + inBoth.AndCardinality(roaring64.Or(s.marked, o.marked))
	j.lateMarked = roaring64.And(roaring64.Or(s.lateMarked, o.lateMarked), j.late)
	if s.Window != nil { // the window is of the process that sent them
		s.Window.joined(j, o)
	}
	return j
}

// inAll returns the numbers that are in x if they are in a, and in y if they are in b. X is part of a, y of b.
func inAll(x, a, y, b *roaring64.Bitmap) *roaring64.Bitmap {
	one := roaring64.Or(roaring64.AndNot(x, b), roaring64.AndNot(y, a))
	one.Or(roaring64.And(x, y))
	return one
}
