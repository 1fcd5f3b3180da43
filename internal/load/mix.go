package load

import (
	"cmp"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/perfmq/perfmq/pkg/driver"
)

// MaxCycle is the maximum length of the cycle of a [Mix]: the sum of its weights over their greatest common divisor.
const MaxCycle = 1_000_000

// Mix determines the variant of each message of a load by weights. Each producer sends a cycle of variants again and
// again, in which each variant has exactly its share and is spread evenly. A Mix is immutable and may be shared between
// goroutines.
type Mix struct {
	cycle []uint16 // variants; nil if there is only one
}

// NewMix returns the mix of variants with these weights, from 1 to [pkg/driver.MaxVariants] of them, all above 0. Equal
// weights make them take turns. [CycleLength] must not be above [MaxCycle].
func NewMix(weights []int) (m Mix) {
	if len(weights) < 2 {
		return m
	}
	type turn struct {
		position float64 // as a share of the cycle
		variant  uint16
	}
	var turns []turn
	length, divisor := CycleLength(weights), divisorOf(weights)
	for variant, weight := range weights {
		n := weight / divisor
		for i := range n { // each in the middle of its n-th part of the cycle
			turns = append(turns, turn{float64(2*i+1) / float64(2*n), uint16(variant)}) //nolint:gosec // few
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.position, b.position) })
	m.cycle = make([]uint16, length)
	for i, t := range turns {
		m.cycle[i] = t.variant
	}
	return m
}

// Shuffled returns the same mix in a random order, the same for a seed and a name: [shuffledCycles] cycles are shuffled
// together, so that each variant still has exactly its share of them.
func (m Mix) Shuffled(seed uint64, name string) Mix {
	cycle := slices.Repeat(m.cycle, shuffledCycles)
	random := rand.New(rand.NewPCG(seed, uint64(crc32.ChecksumIEEE([]byte(name))))) //nolint:gosec // no secret
	random.Shuffle(len(cycle), func(i, j int) { cycle[i], cycle[j] = cycle[j], cycle[i] })
	return Mix{cycle}
}

const shuffledCycles = 64

// CycleLength returns the length of the cycle of a mix with these weights; math.MaxInt if their sum overflows or one is
// below 1.
func CycleLength(weights []int) int {
	sum := 0
	for _, w := range weights {
		if w < 1 || sum > math.MaxInt-w {
			return math.MaxInt
		}
		sum += w
	}
	return sum / max(divisorOf(weights), 1)
}

// divisorOf returns the greatest common divisor.
func divisorOf(weights []int) (divisor int) {
	for _, w := range weights {
		for w != 0 {
			divisor, w = w, divisor%w
		}
	}
	return divisor
}

// choose chooses the variant and the group of message n of the load.
func (p *Producer) choose(msg *driver.Message, n uint64) {
	if p.load.Mix.cycle != nil {
		msg.Variant = p.nextVariant()
	}
	if p.load.Draws.Keys != nil {
		msg.Group = p.load.Draws.Keys.of(n)
	}
}

// nextVariant returns the variant of the producer's next message.
func (p *Producer) nextVariant() int {
	cycle := p.load.Mix.cycle
	variant := cycle[p.turn]
	if p.turn++; p.turn == len(cycle) {
		p.turn = 0
	}
	return int(variant)
}
