package load

import (
	"container/heap"
	"math"
)

// MaxCycle is the maximum length of the cycle of a [Mix]: the sum of its weights over their greatest common divisor.
const MaxCycle = 1_000_000

// Mix determines the variant of each message of a load by weights. Of the first n messages each variant has
// n*weight/sum, with an error below one; the order is the same in every run. A Mix is immutable and may be shared
// between goroutines.
type Mix struct {
	// cycle holds variants; message n is of variant cycle[n mod len]. Nil if there is one variant only.
	cycle []uint16
}

// NewMix returns the mix of variants with these weights, from 1 to [pkg/driver.MaxVariants] of them, all above 0. Equal
// weights make them take turns. [CycleLength] must not be above [MaxCycle].
func NewMix(weights []int) Mix {
	if len(weights) < 2 {
		return Mix{}
	}
	// Job j of a variant may be put anywhere from floor(j*sum/weight) on, and must be before ceil((j+1)*sum/weight). Of
	// the jobs that may be put at a place, the one with the earliest bound is taken. Each then finds its place, since the
	// weights add up to the length: no other order has an error below one at every place (Tijdeman, The chairman
	// assignment problem, 1980; as Pfair scheduling of one processor).
	divisor := 0
	for _, w := range weights {
		divisor = gcd(divisor, w)
	}
	length := CycleLength(weights)
	m := Mix{cycle: make([]uint16, 0, length)}
	var ready jobs
	from := make([]int32, length+1) // the first variant that may be put at a place, from 1; others follow by next
	next := make([]int32, len(weights))
	jobsOf := make([]int, len(weights)) // that were put
	wait := func(variant, place int) {
		next[variant] = from[place]
		from[place] = int32(variant + 1) //nolint:gosec // few
	}
	for i := range weights {
		wait(i, 0)
	}
	for place := range length {
		for i := from[place]; i > 0; i = next[i-1] {
			weight := weights[i-1] / divisor
			heap.Push(&ready, job{variant: int(i - 1), before: ((jobsOf[i-1]+1)*length + weight - 1) / weight})
		}
		variant := heap.Pop(&ready).(job).variant
		m.cycle = append(m.cycle, uint16(variant)) //nolint:gosec // few
		jobsOf[variant]++
		wait(variant, min(max(place+1, jobsOf[variant]*length/(weights[variant]/divisor)), length))
	}
	return m
}

// CycleLength returns the length of the cycle of a mix with these weights; math.MaxInt if their sum overflows or one is
// below 1.
func CycleLength(weights []int) int {
	sum, divisor := 0, 0
	for _, w := range weights {
		if w < 1 || sum > math.MaxInt-w {
			return math.MaxInt
		}
		sum += w
		divisor = gcd(divisor, w)
	}
	return sum / max(divisor, 1)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// job is a place to be found for a message of a variant.
type job struct{ variant, before int }

// jobs is a heap, the job that must be first on top.
type jobs []job

func (j jobs) Len() int { return len(j) }
func (j jobs) Less(a, b int) bool {
	return j[a].before < j[b].before || j[a].before == j[b].before && j[a].variant < j[b].variant
}
func (j jobs) Swap(a, b int) { j[a], j[b] = j[b], j[a] }
func (j *jobs) Push(x any)   { *j = append(*j, x.(job)) } //nolint:forcetypeassert // only ours
func (j *jobs) Pop() any {
	last := (*j)[len(*j)-1]
	*j = (*j)[:len(*j)-1]
	return last
}

// turns are the variants of the messages of one producer. In a round of all producers each sends one message, and
// together they send the cycle's messages for the round. If the number of producers and the length of the cycle have a
// common divisor, a producer would never get to some places of the cycle, so producers swap their places in the rounds.
// Of each len(cycle) messages of a producer each variant has its exact share.
type turns struct {
	cycle  []uint16
	at     int    // place in the cycle of the next message
	step   int    // distance to the place of the message after it
	rank   int    // of the producer within a round
	total  int    // producers
	rounds int    // before ranks change; 0 if they need not
	left   int    // of these rounds
	whole  uint64 // messages from this number on are of a round that is not whole: there is no swap
}

// turns returns the turns of a producer.
func (m Mix) turns(l *Load) turns {
	length := len(m.cycle)
	if length == 0 {
		return turns{}
	}
	t := turns{
		cycle: m.cycle, at: l.Index % length, step: l.Total % length, rank: l.Index, total: l.Total,
		whole: math.MaxUint64,
	}
	if divisor := gcd(l.Total, length); divisor > 1 {
		t.rounds = length / divisor
		t.left = t.rounds
	}
	if n := l.messages(); n > 0 {
		t.whole = n - n%uint64(l.Total)
	}
	return t
}

// messages returns the number of messages that all producers will send; 0 if unknown.
func (l *Load) messages() uint64 {
	n := l.Count
	until := l.Until
	if end, ends := l.Schedule.End(); ends && (until == 0 || end < until) {
		until = end
	}
	if due := l.Schedule.Due(until); due > 0 && (n == 0 || due < n) {
		n = due
	}
	return n
}

// next returns the variant of the producer's next message, which is message n of all producers.
func (t *turns) next(n uint64) int {
	if n >= t.whole {
		return int(t.cycle[n%uint64(len(t.cycle))])
	}
	variant := t.cycle[t.at]
	if t.at += t.step; t.at >= len(t.cycle) {
		t.at -= len(t.cycle)
	}
	if t.rounds > 0 {
		if t.left--; t.left == 0 {
			t.swap()
		}
	}
	return int(variant)
}

// swap gives the producer the rank of the one after it.
func (t *turns) swap() {
	t.left = t.rounds
	t.rank++
	t.at++
	if t.rank == t.total {
		t.rank = 0
		t.at += len(t.cycle) - t.total%len(t.cycle)
	}
	t.at %= len(t.cycle)
}
