//go:build !race

package load_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
)

const never = time.Duration(math.MaxInt64)

// requireConsistent holds At and Due against each other.
func requireConsistent(t testing.TB, s load.Schedule, n uint64) {
	t.Helper()
	at := s.At(n)
	require.GreaterOrEqual(t, at, time.Duration(0))
	require.LessOrEqual(t, s.Due(at), n, "%s: messages due before message %d", s, n)
	if at < never {
		require.Greater(t, s.Due(at+1), n, "%s: messages due a nanosecond after message %d", s, n)
	}
	if n > 0 {
		require.LessOrEqual(t, s.At(n-1), at)
	}
}

func TestClosedLoopHasNoTimes(t *testing.T) {
	var s load.Schedule
	require.True(t, s.IsZero())
	require.Equal(t, s, load.ConstantSchedule(load.Rate{}))
	require.Equal(t, never, s.At(0))
	require.Zero(t, s.Due(time.Hour))
	require.Zero(t, s.Peak())
	require.Zero(t, s.Average(time.Hour))
	require.Empty(t, s.String())
	_, ok := s.Constant()
	require.False(t, ok)
	_, ok = s.End()
	require.False(t, ok)
}

// A constant schedule is the rate itself, in whatever way it is written.
func TestConstantScheduleIsTheRate(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, text := range []string{"0.5", "1", "3", "7", "33.333", "30000", "123456.789", "1000000000", "0.000000001", "1.123456789"} {
		r := rate(t, text)
		const length = 250 * 365 * 24 * time.Hour
		plain, parts := schedule(t, text), schedule(t, fmt.Sprintf("%s for 1ms, %s for 7s, %s", text, text, text))
		ended, ramp := schedule(t, fmt.Sprintf("%s for %s", text, length)), schedule(t, fmt.Sprintf("ramp %s to %s for %s", text, text, length))
		for i := range 1500 {
			n := uint64(i)
			if i >= 1000 {
				n = random.Uint64() >> random.IntN(64)
			}
			want := r.At(n)
			require.Equal(t, want, plain.At(n), "%s: message %d", text, n)
			require.Equal(t, want, load.ConstantSchedule(r).At(n))
			require.Equal(t, want, parts.At(n), "%s: message %d", parts, n)
			for _, s := range []load.Schedule{plain, parts, ended, ramp} {
				requireConsistent(t, s, n)
			}
			if want >= length {
				want = never
			}
			require.Equal(t, want, ended.At(n), "%s: message %d", ended, n)
			require.Equal(t, want, ramp.At(n), "%s: message %d", ramp, n)
		}
	}
}

// model is a schedule as the test understands it: lines from one rate to another.
type model struct {
	texts []string
	lines []line
	end   int64 // nanoseconds; of the last line if that has no length
}

type line struct {
	start, length int64    // nanoseconds; length 0 for ever
	from, to      *big.Rat // messages per nanosecond
}

func (m *model) line(from, to *big.Rat, length int64) {
	perNano := func(r *big.Rat) *big.Rat { return new(big.Rat).Mul(r, big.NewRat(1, 1e9)) }
	m.lines = append(m.lines, line{m.end, length, perNano(from), perNano(to)})
	m.end += length
}

// integral returns the messages from the start to t.
func (m *model) integral(t int64) *big.Rat {
	sum := new(big.Rat)
	for _, l := range m.lines {
		s := t - l.start
		if s <= 0 {
			break
		}
		if l.length > 0 {
			s = min(s, l.length)
		}
		mean := new(big.Rat).Set(l.from) // rate in the middle of the time
		if l.length > 0 {
			slope := new(big.Rat).Sub(l.to, l.from)
			mean.Add(mean, slope.Mul(slope, big.NewRat(s, 2)).Mul(slope, big.NewRat(1, l.length)))
		}
		sum.Add(sum, mean.Mul(mean, big.NewRat(s, 1)))
	}
	return sum
}

// newModel makes a random list of segments. Its lengths are of the given order of magnitude in nanoseconds.
func newModel(random *rand.Rand, order float64) *model {
	m := new(model)
	number := func(billionths int64) (*big.Rat, string) {
		r := big.NewRat(billionths, 1e9)
		text := r.FloatString(9)
		return r, strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	anyRate := func() int64 { return 1 + int64(math.Exp(random.Float64()*math.Log(1e18-1))) }
	anyTime := func() int64 { return 1 + int64(math.Exp(random.Float64()*math.Log(order))) }
	if random.IntN(2) == 0 { // round ones, so that messages fall on borders
		anyRate = func() int64 { return int64(math.Pow10(random.IntN(7))) * int64(1+random.IntN(5)) * 1e8 }
		anyTime = func() int64 { return int64(math.Pow10(random.IntN(int(math.Log10(order))))) * int64(1+random.IntN(5)) }
	}
	end := func() int64 { // of a ramp
		if random.IntN(4) == 0 {
			return 0
		}
		return anyRate()
	}
	segments := 1 + random.IntN(8)
	for i := range segments {
		a, text := number(anyRate())
		length := anyTime()
		kind := random.IntN(6)
		if i == 0 && kind == 4 {
			kind = 0 // not only pauses
		}
		switch kind {
		case 0:
			m.texts = append(m.texts, fmt.Sprintf("%s for %s", text, time.Duration(length)))
			m.line(a, a, length)
		case 1, 2:
			b, other := number(end())
			if random.IntN(2) == 0 {
				a, b, text, other = b, a, other, text
			}
			m.texts = append(m.texts, fmt.Sprintf("ramp %s to %s for %s", text, other, time.Duration(length)))
			m.line(a, b, length)
		case 3:
			from, to := anyRate(), end()
			by := 1 + max(from, to)/int64(1+random.IntN(6))
			high, low := max(from, to), min(from, to)
			_, fromText := number(from)
			_, toText := number(to)
			_, byText := number(by)
			m.texts = append(m.texts, fmt.Sprintf("stair %s to %s by %s every %s", fromText, toText, byText, time.Duration(length)))
			for step := int64(0); ; step++ {
				r := max(from-step*by, low)
				if from < to {
					r = min(from+step*by, high)
				}
				v, _ := number(r)
				m.line(v, v, length)
				if r == to {
					break
				}
			}
		case 4:
			m.texts = append(m.texts, "pause "+time.Duration(length).String())
			m.line(new(big.Rat), new(big.Rat), length)
		case 5:
			m.burst(random, anyRate(), length, number)
		}
	}
	if random.IntN(2) == 0 {
		r, text := number(anyRate())
		m.texts = append(m.texts, text)
		m.line(r, r, 0)
	}
	return m
}

func (m *model) burst(random *rand.Rand, rate, burst int64, number func(int64) (*big.Rat, string)) {
	every := burst + 1 + random.Int64N(2*burst)
	length := 1 + random.Int64N(5*every)
	over := max(0, random.Int64N(2*rate)-rate)
	r, text := number(rate)
	o, overText := number(over)
	m.texts = append(m.texts, fmt.Sprintf("burst %s for %s every %s for %s over %s",
		text, time.Duration(burst), time.Duration(every), time.Duration(length), overText))
	for at := int64(0); at < length; at += every {
		m.line(r, r, min(burst, length-at))
		if rest := min(every, length-at) - burst; rest > 0 {
			m.line(o, o, rest)
		}
	}
}

func ceil(r *big.Rat) *big.Int {
	q, rest := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// The messages due before t are the integral of the rate, rounded up, at every t: from nanoseconds to centuries, at
// the borders of segments and between them. Message n is due at the last nanosecond at which the integral is n at most.
func TestScheduleIsTheIntegralOfTheRate(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 5
	}
	for _, order := range []float64{1e2, 1e10, 1e14, 4e16} {
		for seed := range seeds {
			random := rand.New(rand.NewPCG(seed, uint64(order)))
			m := newModel(random, order)
			text := strings.Join(m.texts, ", ")
			s := schedule(t, text)
			last := m.lines[len(m.lines)-1]
			end, ends := s.End()
			require.Equal(t, last.length > 0, ends, text)
			if ends {
				require.EqualValues(t, m.end, end, text)
			}
			m.check(t, s, random, text)
		}
	}
}

// check looks at times on and beside borders, at random ones and beyond the end, and at the messages due then.
func (m *model) check(t *testing.T, s load.Schedule, random *rand.Rand, text string) {
	t.Helper()
	var times []int64
	for _, l := range m.lines {
		times = append(times, l.start-1, l.start, l.start+1)
	}
	for range 30 {
		times = append(times, 1+random.Int64N(m.end+1))
	}
	times = append(times, m.end-1, m.end, m.end+1, m.end+m.end/7)
	total := ceil(m.integral(math.MaxInt64))
	for _, at := range times {
		if at < 0 {
			continue
		}
		want := ceil(m.integral(at))
		n := s.Due(time.Duration(at))
		require.Equal(t, want.Uint64(), n, "%s: messages before %d", text, at)
		for _, n := range []uint64{n - 1, n, n + 1} {
			if n == math.MaxUint64 {
				continue
			}
			due := s.At(n)
			if new(big.Int).SetUint64(n).Cmp(total) >= 0 {
				require.Equal(t, never, due, "%s: message %d of %s", text, n, total)
				continue
			}
			whole := new(big.Rat).SetInt(new(big.Int).SetUint64(n))
			require.LessOrEqual(t, m.integral(int64(due)).Cmp(whole), 0, "%s: message %d at %d", text, n, due)
			require.Positive(t, m.integral(int64(due)+1).Cmp(whole), "%s: message %d at %d", text, n, due)
		}
	}
}

// A fraction of a message at a border is neither lost nor rounded, however many borders there are.
func TestBordersLoseNothing(t *testing.T) {
	// 0.3 messages a second for a second, then a pause: after 1000 of them exactly 300 messages.
	s := schedule(t, "burst 0.3 for 1s every 2s for 2000s, 1 for 1s")
	require.EqualValues(t, 300, s.Due(2000*time.Second))
	require.Equal(t, 2000*time.Second, s.At(300))
	// Message 3 is due a third of a second into the second second of the fourth period... 3 = 10 bursts of 0.3.
	require.Equal(t, 20*time.Second, s.At(3), "at the start of the burst after the one that made it whole")
	require.Equal(t, 6*time.Second+333_333_333, s.At(1), "0.9 in three bursts, the rest in a third of the fourth")

	// Thirty days of a ramp up, a ramp down and a rate that no binary number is equal to.
	day := 24 * time.Hour
	s = schedule(t, "ramp 0 to 33.333 for 240h, 33.333 for 240h, ramp 33.333 to 0 for 240h")
	require.EqualValues(t, 28_799_712*2, s.Due(30*day)) // 33.333 * 864000 s * (1/2 + 1 + 1/2)
	require.EqualValues(t, 14_399_856, s.Due(10*day))
	require.Equal(t, 10*day, s.At(14_399_856))
	require.Equal(t, never, s.At(28_799_712*2))
}

func TestAtAllocatesNothing(t *testing.T) {
	s := schedule(t, "ramp 0 to 2000 for 1000s, stair 1 to 100 by 1 every 1s, pause 1s, 5")
	var n uint64
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		n += 1017
		s.Due(s.At(n))
	}))
}
