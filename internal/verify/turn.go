package verify

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// A process without both sides of its messages judges nothing. Each second it passes on what it has learned, as a side
// with Turn, and forgets it. [Joined] puts such sides together.

// Take returns what the ledger has learned since the last call, and forgets it.
func (l *Ledger) Take() *Sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended.AddRange(l.run.From, l.run.To)
	s := l.contents()
	s.Delay, s.ended = l.delay.Microseconds(), l.ended
	l.ended, l.run, l.resent, l.outcomes = roaring64.New(), Bounds{}, nil, newOutcomes()
	return s
}

// Take returns what the tracker has learned since the last call, and forgets it. The caller fills in the rest.
func (t *Tracker) Take() *Received {
	n := t.flush()
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &Received{
		Foreign: n.foreign - t.taken.foreign, Illegible: n.illegible - t.taken.illegible,
		Last: n.last, CutOff: t.cutOff(),
	}
	t.taken = n
	for _, s := range t.own {
		if s.Copies == 0 {
			continue
		}
		if !r.CutOff {
			s.AfterOutage, s.Outaged = 0, nil
		}
		r.Streams = append(r.Streams, new(*s))
		*s = *newStream(s.Stream) // checkers keep its address
	}
	return r
}

// Joined judges the sides of a run, in several processes, while it continues. It is for one goroutine.
type Joined struct {
	window  time.Duration
	ledgers map[Stream]*Ledger
	places  map[string][]*Ledger // by destination
	subs    map[part]*joined
	order   []part
	from    map[Stream]uint64 // numbers below are not known, as their side was read later
	sides   map[int64]*Side   // by run, without their messages
	stopped map[string]int64  // by destination, when the last of its producers ended
	turned  int64
}

// part is a subscription, of one side if it is private.
type part struct {
	destination, subscription string
	side                      int
}

// joined is a subscription as all sides know it.
type joined struct {
	Received
	tracker *Tracker
	alive   map[int]bool // sides whose consumers could receive at their last turn
	strange map[Stream]int64
}

// NewJoined returns the judge of sides with that window.
func NewJoined(window time.Duration) *Joined {
	return &Joined{
		window: window, ledgers: map[Stream]*Ledger{}, places: map[string][]*Ledger{}, subs: map[part]*joined{},
		from: map[Stream]uint64{}, sides: map[int64]*Side{}, stopped: map[string]int64{},
	}
}

// AddSent adds the messages sent of a turn; late is the first one that is read of its side, and not its first.
func (j *Joined) AddSent(side *Side, late bool) error {
	have := j.sides[side.ID]
	if have == nil {
		have = &Side{ID: side.ID, Shard: side.Shard, Shards: side.Shards, Role: side.Role}
		j.sides[side.ID] = have
	}
	have.TTL = have.TTL || side.TTL
	for _, s := range side.Sent {
		key := Stream{side.ID, s.Producer}
		j.stopped[s.Destination] = max(j.stopped[s.Destination], s.Ended)
		l := j.ledgers[key]
		if l == nil {
			dest, err := driver.ParseDestination(s.Destination)
			if err != nil {
				return err
			}
			l = NewLedger(side.ID, int(s.Producer), dest)
			l.Window()
			l.Delay(time.Duration(s.Delay) * time.Microsecond)
			j.ledgers[key] = l
			j.places[s.Destination] = append(j.places[s.Destination], l)
		}
		if late {
			j.from[key] = s.Count
			for _, sub := range j.subs {
				sub.Sent[key] = Bounds{From: s.Count, To: maxNumbers}
			}
		}
		l.add(s, j.from[key])
	}
	return nil
}

// add takes over what another ledger has learned, of numbers from a lowest one on.
func (l *Ledger) add(s *Sent, from uint64) {
	l.next.Store(int64(max(l.Count(), s.Count))) //nolint:gosec // below maxNumbers
	more := append(s.byOutcome(), s.ended)
	for i, set := range append(l.byOutcome(), l.ended) {
		more[i].RemoveRange(0, from)
		set.Or(more[i])
	}
	l.resent = l.resent.plus(s.Resent)
}

// AddReceived adds the messages received of a turn. number tells sides apart.
func (j *Joined) AddReceived(side *Side, number int) {
	for _, r := range side.Received {
		key := part{destination: r.Destination, subscription: r.Subscription}
		if r.Private {
			key.side = number + 1
		}
		sub := j.subs[key]
		if sub == nil {
			sub = &joined{Received: *r, tracker: NewTracker(), alive: map[int]bool{}, strange: map[Stream]int64{}}
			sub.Sent = j.bounds(r)
			sub.Foreign, sub.Illegible, sub.Streams = 0, 0, nil
			j.subs[key] = sub
			j.order = append(j.order, key)
		}
		delete(sub.alive, -1) // see Gone
		sub.alive[number] = r.Receiving
		sub.Foreign, sub.Illegible = sub.Foreign+r.Foreign, sub.Illegible+r.Illegible
		if r.Drained {
			sub.Ended, sub.Drained = max(sub.Ended, r.Ended), true
		}
		sub.Selective = sub.Selective || r.Selective
		if sub.CutOff = sub.CutOff || r.CutOff; sub.CutOff {
			sub.tracker.wasCutOff = true
		}
		for _, s := range r.Streams {
			sub.tracker.join(s, j.from[s.Stream], r.CutOff)
			if j.ledgers[s.Stream] == nil && sub.strange[s.Stream] == 0 {
				sub.strange[s.Stream] = side.At
			}
		}
	}
}

// bounds returns the messages of the producers so far that are for a subscription that begins now.
func (j *Joined) bounds(r *Received) Periods {
	p := Periods{}
	for key, from := range j.from {
		p[key] = Bounds{From: from, To: maxNumbers}
	}
	if !r.Late {
		return p
	}
	for _, l := range j.places[r.Destination] {
		p[l.Stream()] = Bounds{From: l.Count(), To: maxNumbers}
	}
	return p
}

// join takes over deliveries of messages from a number on.
func (t *Tracker) join(s *stream, from uint64, cutOff bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if from > 0 {
		early := roaring64.New()
		early.AddRange(0, from)
		s.remove(early)
	}
	have := t.streams[s.Stream]
	if have == nil {
		t.streams[s.Stream] = s
		t.own = append(t.own, s)
		return
	}
	*have = *have.join(s, t.cutOff(), cutOff)
	have.cut = roaring64.New()
}

// Turn judges the messages whose window has ended at that time, in microseconds since the Unix epoch: all sides are
// known until then. It returns the newly lost ones.
func (j *Joined) Turn(at int64) (lost uint64, texts []string) {
	elapsed := time.Duration(at-cmp.Or(j.turned, at)) * time.Microsecond
	j.turned = at
	for _, place := range slices.Sorted(maps.Keys(j.places)) {
		var subs []Watched
		for _, key := range j.order {
			if sub := j.subs[key]; key.destination == place {
				w := Watched{Tracker: sub.tracker, Sent: sub.Sent, Selective: sub.Selective}
				if !slices.Contains(slices.Collect(maps.Values(sub.alive)), false) {
					w.Elapsed = elapsed
				}
				subs = append(subs, w)
			}
		}
		n, first := Turn(j.window, j.places[place], subs)
		if lost += n; n > 0 {
			texts = append(texts, Names(first)+" on "+place)
		}
	}
	for _, sub := range j.subs {
		j.dropStrange(sub, at)
	}
	return lost, texts
}

// dropStrange forgets the messages of producers that no side has named for long.
func (j *Joined) dropStrange(sub *joined, at int64) {
	t := sub.tracker
	for key, since := range sub.strange {
		switch {
		case j.ledgers[key] != nil:
			delete(sub.strange, key)
		case at-since > 2*j.window.Microseconds():
			delete(sub.strange, key)
			sub.Foreign += t.streams[key].Copies
			delete(t.streams, key)
			t.own = slices.DeleteFunc(t.own, func(s *stream) bool { return s.Stream == key })
		}
	}
}

// Gone notes that nothing more is known of a side: its consumers, if it had any, are no longer waited for.
func (j *Joined) Gone(number int) {
	for _, sub := range j.subs {
		if delete(sub.alive, number); len(sub.alive) == 0 {
			sub.alive[-1] = false
		}
	}
}

// Progress returns the counts so far.
func (j *Joined) Progress() (sum result.Progress) {
	for key, sub := range j.subs {
		p := sub.tracker.Progress(0, j.places[key.destination]...)
		p.Foreign, p.Damaged = p.Foreign+sub.Foreign, p.Damaged+sub.Illegible
		sum.Add(&p)
	}
	return sum
}

// Judge judges what is left when all sides have ended.
func (j *Joined) Judge() *Result {
	var sides []*Side
	for _, run := range slices.Sorted(maps.Keys(j.sides)) {
		side := *j.sides[run]
		side.Shard, side.Shards = 0, 0
		for key, l := range j.ledgers {
			if key.Run == run {
				side.Sent = append(side.Sent, l.Seal(nil))
			}
		}
		slices.SortFunc(side.Sent, func(a, b *Sent) int { return cmp.Compare(a.Producer, b.Producer) })
		sides = append(sides, &side)
	}
	if len(sides) == 0 {
		sides = []*Side{{ID: 1}}
	}
	for _, key := range j.order {
		r := j.subs[key].Received
		r.Streams, r.Late = j.subs[key].tracker.own, false
		r.Drained = r.Drained && r.Ended >= j.stopped[key.destination]
		sides[0].Received = append(sides[0].Received, &r)
	}
	v := Judge(sides...)
	v.Window = j.window.Microseconds()
	return v
}
