package verify_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// message names a message in the model.
type message struct {
	run, producer, number int64
}

// copies is the model's knowledge of a message at one subscription.
type copies struct{ n, marked, inTime, markedLate int }

// model judges with maps and no thought for speed or memory.
type model struct {
	outcomes map[message]driver.Outcome
	copies   map[message]*copies
	damaged  uint64
}

func newModel() *model {
	return &model{outcomes: map[message]driver.Outcome{}, copies: map[message]*copies{}}
}

func (m *model) counts() result.Verified {
	var c result.Verified
	for name, o := range m.outcomes {
		_, arrived := m.copies[name]
		switch {
		case o.State == driver.Accepted && !o.Withheld:
			c.Expected++
			if !arrived {
				c.Lost++
			}
		case o.State == driver.Accepted && arrived:
			c.WithheldArrived++
		case o.State == driver.Unknown && arrived:
			c.UnconfirmedArrived++
		case o.State == driver.Unknown:
			c.UnconfirmedMissing++
		case o.State != driver.Accepted && arrived:
			c.RefusedArrived++
		}
	}
	for name, k := range m.copies {
		if _, sent := m.outcomes[name]; !sent {
			c.Foreign += uint64(k.n)
			continue
		}
		c.Received++
		if k.n == 1 {
			c.Once++
		}
		c.Duplicates += uint64(k.n - 1)
		c.Redelivered += uint64(min(k.marked, k.n-1))
		if k.inTime == 0 {
			c.Disordered++
			if k.markedLate > 0 {
				c.DisorderedRedelivered++
			}
		}
	}
	c.Damaged = m.damaged
	return c
}

// part is the consumers that one process has in the subscription.
type part struct {
	tracker  *verify.Tracker
	checkers []*verify.Checker
	highest  []map[[2]int64]int64 // by consumer
}

func newPart(consumers int) *part {
	p := &part{tracker: verify.NewTracker()}
	for range consumers {
		p.checkers = append(p.checkers, verify.NewChecker(p.tracker, 0))
		p.highest = append(p.highest, map[[2]int64]int64{})
	}
	return p
}

// deliver gives a message to a consumer and to the model.
func (p *part) deliver(m *model, consumer int, id driver.ID, body []byte, intact, marked bool) {
	d := driver.Delivery{ID: id, Body: body, Redelivered: marked}
	if !intact {
		d.Body = append(slices.Clone(body), 0)
	}
	p.checkers[consumer].Check(&d, 1)
	name := message{id.Run, id.Producer, id.Number}
	k := m.copies[name]
	if k == nil {
		k = &copies{}
		m.copies[name] = k
	}
	k.n++
	if !intact {
		m.damaged++
	}
	key := [2]int64{id.Run, id.Producer}
	highest, known := p.highest[consumer][key]
	late := known && id.Number < highest
	if !late {
		p.highest[consumer][key] = id.Number
		k.inTime++
	} else if marked {
		k.markedLate++
	}
	if marked {
		k.marked++
	}
}

// scenario says how random a run is.
type scenario struct {
	runs, producers, messages, parts, consumers int

	lose, double, refuse, damage, shuffle float64
	sticky                                float64 // the next message goes to the same consumer
}

// Whatever happens to messages, however they spread over consumers, processes and buffers: the verification agrees with
// the model, before and after the sides went through files.
func TestVerificationIsTheModel(t *testing.T) {
	for i, s := range []scenario{
		{runs: 1, producers: 1, messages: 500, parts: 1, consumers: 1},
		{runs: 1, producers: 3, messages: 2000, parts: 1, consumers: 4, sticky: 0.99},
		{runs: 2, producers: 2, messages: 3000, parts: 3, consumers: 2},
		{runs: 1, producers: 2, messages: 2000, parts: 1, consumers: 2, lose: .1, sticky: .9},
		{runs: 1, producers: 2, messages: 2000, parts: 2, consumers: 2, double: .2, sticky: .5},
		{runs: 2, producers: 2, messages: 2000, parts: 3, consumers: 2, refuse: .3},
		{runs: 2, producers: 3, messages: 2000, parts: 3, consumers: 3, lose: .05, double: .3, refuse: .2, damage: .05, shuffle: .2, sticky: .8},
		{runs: 1, producers: 1, messages: 5000, parts: 4, consumers: 1, double: 1, shuffle: 1},
		{runs: 1, producers: 1, messages: 3000, parts: 1, consumers: 1, lose: 1},
	} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%d seed %d", i, seed), func(t *testing.T) { compareWithModel(t, s, rand.New(rand.NewPCG(seed, 0))) })
		}
	}
}

func compareWithModel(t *testing.T, s scenario, random *rand.Rand) {
	chance := func(p float64) bool { return random.Float64() < p }
	dest := driver.Destination{Name: "Q"}
	body := []byte("some body")
	m := newModel()
	var sides []*verify.Side
	type delivery struct {
		id     driver.ID
		marked bool
	}
	var deliveries []delivery
	for run := range s.runs {
		side := &verify.Side{ID: int64(run + 1), Role: "producer"}
		for producer := range s.producers {
			l := verify.NewLedger(side.ID, producer, dest, verify.BodySum(body))
			var inFlight []int64
			for range s.messages {
				if chance(0.01) { // was not sent after all
					l.Next(0)
					l.Unsent()
				}
				id := l.Next(0)
				o := driver.Outcome{}
				if chance(s.refuse) {
					o = []driver.Outcome{
						{State: driver.Rejected}, {State: driver.Released}, {State: driver.Failed}, {State: driver.Unknown}, {Withheld: true},
					}[random.IntN(5)]
				}
				m.outcomes[message{id.Run, id.Producer, id.Number}] = o
				if o.State == driver.Unknown && chance(0.5) {
					inFlight = append(inFlight, id.Number)
				} else {
					l.Done(id.Number, o)
				}
				arrives := !chance(s.lose)
				if o != (driver.Outcome{}) {
					arrives = chance(0.3)
				}
				if !arrives {
					continue
				}
				deliveries = append(deliveries, delivery{id, chance(s.double / 3)})
				for chance(s.double / 2) {
					deliveries = append(deliveries, delivery{id, chance(.7)})
				}
			}
			side.Sent = append(side.Sent, l.Seal(inFlight))
		}
		sides = append(sides, side)
	}
	stranger := verify.NewLedger(99, 0, dest, verify.BodySum(body))
	for range 20 {
		deliveries = append(deliveries, delivery{id: stranger.Next(0)})
	}
	for range int(s.shuffle * float64(len(deliveries))) {
		i, j := random.IntN(len(deliveries)), random.IntN(len(deliveries))
		deliveries[i], deliveries[j] = deliveries[j], deliveries[i]
	}
	var parts []*part
	for range s.parts {
		parts = append(parts, newPart(s.consumers))
	}
	p, c := 0, 0
	for i, d := range deliveries {
		if !chance(s.sticky) {
			p, c = random.IntN(s.parts), random.IntN(s.consumers)
		}
		own := d.id.Run != 99
		parts[p].deliver(m, c, d.id, body, !own || !chance(s.damage), d.marked)
		if i%1000 == 0 {
			parts[p].tracker.Progress(0) // takes the content of the buffers
		}
	}
	for i, p := range parts {
		r := p.tracker.Seal()
		r.SetName(dest, "")
		r.Drained, r.Ended = true, 1
		sides = append(sides, &verify.Side{ID: int64(1000 + i), Role: "consumer", Received: []*verify.Received{r}})
	}
	random.Shuffle(len(sides), func(i, j int) { sides[i], sides[j] = sides[j], sides[i] })
	want := m.counts()
	direct := verify.Judge(sides...)
	require.Equal(t, want, direct.Total)
	require.Equal(t, want.Expected, want.Received-want.UnconfirmedArrived-want.RefusedArrived-want.WithheldArrived+want.Lost)

	var read []*verify.Side
	for _, side := range sides {
		data, err := verify.Encode(side)
		require.NoError(t, err)
		back, err := verify.Decode(data)
		require.NoError(t, err)
		read = append(read, back)
	}
	joined := verify.Judge(read...)
	require.Equal(t, direct, joined)
}
