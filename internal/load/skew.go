package load

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/quantity"
)

// Zipf is the exponent of Zipf's law: the k-th of several has a weight of k to the power of minus it; with 0, all of 1.
type Zipf float64

// ParseZipf reads zipf:EXPONENT.
func ParseZipf(text string) (Zipf, error) {
	number, named := strings.CutPrefix(strings.TrimSpace(text), "zipf:")
	exponent, err := quantity.Number(strings.TrimSpace(number))
	if !named || err != nil || exponent.Sign() <= 0 || exponent.Cmp(big.NewRat(10, 1)) > 0 {
		return 0, errors.New("must be zipf:EXPONENT, above 0 and at most 10, such as zipf:1.1")
	}
	z, _ := exponent.Float64()
	return Zipf(z), nil
}

// String returns the law in the form that [ParseZipf] reads; empty for equal weights.
func (z Zipf) String() string {
	if z == 0 {
		return ""
	}
	return "zipf:" + strconv.FormatFloat(float64(z), 'f', -1, 64)
}

// weights returns the weights of n as whole numbers, and their sum. The last bits of math.Pow, which depend on the
// processor, hardly ever change one.
func (z Zipf) weights(n int) (list []uint64, sum uint64) {
	list = make([]uint64, n)
	for i := range list {
		list[i] = uint64(max(1, math.Pow(float64(i+1), -float64(z))*(1<<32)))
		sum += list[i]
	}
	return list, sum
}

// Skew divides the messages of a load among destinations by unequal shares; nil stands for equal shares of all
// producers. Message m of a destination has the place of the load's message (m+phase)*whole/share, rounded down: they
// are spread evenly, and of the load's first n messages a destination has its share, up to a message.
type Skew struct {
	shares []uint64 // of the destinations: producer i sends to destination i modulo their number
	whole  uint64   // the sum of the shares
	each   int      // producers of a destination
}

// NewSkew returns the shares of destinations with so many producers each; nil for the zero law.
func NewSkew(z Zipf, destinations, producers int) *Skew {
	if z == 0 {
		return nil
	}
	shares, whole := z.weights(destinations)
	return &Skew{shares, whole, producers}
}

// Count returns shares that are numbers of messages and add up to n, unless n is 0.
func (s *Skew) Count(n uint64) *Skew {
	if s == nil || n == 0 {
		return s
	}
	counts := make([]uint64, len(s.shares))
	var sum, before uint64
	for i, share := range s.shares {
		sum += share
		x := product(n, sum).plus(wide{lo: s.whole / 2}) // rounded to the nearest
		upTo, _ := bits.Div64(x.hi, x.lo, s.whole)
		counts[i], before = upTo-before, upTo
	}
	return &Skew{counts, n, s.each}
}

// phase returns the phase of a destination in units of 2^-32. Multiples of the golden ratio keep destinations with
// similar shares from sending together.
func phase(destination int) uint64 {
	return uint64(destination) * 2_654_435_769 % (1 << 32) //nolint:gosec // not negative
}

// place returns the number in the load of message own of a producer, both from 0; math.MaxUint64 for none.
func (s *Skew) place(own uint64, index, total int) uint64 {
	if s == nil {
		return uint64(index) + own*uint64(total) //nolint:gosec // not negative
	}
	i := index % len(s.shares)
	own = own*uint64(s.each) + uint64(index/len(s.shares)) //nolint:gosec // not negative
	x := wide{own >> 32, own<<32 | phase(i)}.times(s.whole)
	if !(wide{x.hi, x.mid}).less(product(s.shares[i], 1<<32)) { // also of a share of nothing
		return math.MaxUint64
	}
	n, _ := x.over(s.shares[i])
	return n.hi<<32 | n.lo>>32
}

// Share returns how many of the load's first n messages a producer sends: producer index of total.
func (s *Skew) Share(n uint64, index, total int) uint64 {
	if s != nil {
		i := index % len(s.shares)
		x, rest := product(n, s.shares[i]).times(1 << 32).over(s.whole)
		x = x.plus(wide{lo: 1<<32 - 1 - phase(i) + min(rest, 1)})
		n = x.hi<<32 | x.lo>>32
		index, total = index/len(s.shares), s.each
	}
	first, count := uint64(index), uint64(total) //nolint:gosec // not negative
	if n <= first {
		return 0
	}
	return (n-first-1)/count + 1
}

// Weight returns a producer's part of the load.
func (s *Skew) Weight(index int) float64 {
	return float64(s.shares[index%len(s.shares)]) / (float64(s.whole) * float64(s.each))
}

// Keys are the group keys of a load, of one length: each message has one of them at random.
type Keys struct {
	names []string
	sums  []uint64 // of the weights up to each key
	seed  uint64
}

// NewKeys returns n keys, which the draws choose; nil for none.
func NewKeys(z Zipf, n int, d *Draws) *Keys {
	if n == 0 {
		return nil
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%d keys %s", d.Seed, d.Name))
	k := &Keys{names: make([]string, n), seed: binary.BigEndian.Uint64(key[:])}
	k.sums, _ = z.weights(n)
	for i := range n {
		k.names[i] = KeyName(i, n)
		if i > 0 {
			k.sums[i] += k.sums[i-1]
		}
	}
	return k
}

// KeyName returns the i-th of n keys.
func KeyName(i, n int) string { return fmt.Sprintf("key-%0*d", len(strconv.Itoa(n-1)), i) }

// of returns the key of the load's message n: by SplitMix64, whose n-th number needs none before it.
func (k *Keys) of(n uint64) string {
	x := k.seed + n*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	drawn, _ := bits.Mul64(x^x>>31, k.sums[len(k.sums)-1])
	i, _ := slices.BinarySearch(k.sums, drawn+1)
	return k.names[i]
}
