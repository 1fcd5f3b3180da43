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
	require.Equal(t, s, load.ConstantSchedule(0))
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
			want := exactly(r, n)
			require.Equal(t, want, load.ConstantSchedule(r).At(n))
			require.Equal(t, want, plain.At(n), "%s: message %d", text, n)
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

// exactly returns n divided by a rate, rounded down.
func exactly(r load.Rate, n uint64) time.Duration {
	q := new(big.Int).Mul(new(big.Int).SetUint64(n), big.NewInt(1e18))
	if q.Quo(q, new(big.Int).SetUint64(uint64(r))); !q.IsInt64() {
		return never
	}
	return time.Duration(q.Int64())
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

func TestParseSchedule(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		end        time.Duration // 0 for none
		messages   uint64        // due before the end, or in the first hour
		peak       float64
	}{
		{"30000", "30000", 0, 30000 * 3600, 30000},
		{"0.5", "0.5", 0, 1800, 0.5},
		{" +1e3 ", "1000", 0, 3_600_000, 1000},
		{"5000 for 30s", "5000 for 30s", 30 * time.Second, 150_000, 5000},
		{"5000 for 30", "5000 for 30s", 30 * time.Second, 150_000, 5000},
		{"5000   for 1m30s,2.5", "5000 for 1m30s, 2.5", 0, 450_000 + 8775, 5000},
		{"ramp 1000 to 5000 for 60s", "ramp 1000 to 5000 for 1m", time.Minute, 180_000, 5000},
		{"ramp 5000 to 0 for 0.5", "ramp 5000 to 0 for 500ms", 500 * time.Millisecond, 1250, 5000},
		{"ramp 7 to 7 for 1h", "ramp 7 to 7 for 1h", time.Hour, 25200, 7},
		{"stair 1000 to 5000 by 1000 every 30s", "stair 1000 to 5000 by 1000 every 30s", 150 * time.Second, 450_000, 5000},
		{"stair 5000 to 1000 by 1500 every 10s", "stair 5000 to 1000 by 1500 every 10s", 40 * time.Second, 115_000, 5000},
		{"stair 0 to 10 by 20 every 1s", "stair 0 to 10 by 20 every 1s", 2 * time.Second, 10, 10},
		{"stair 10 to 10 by 1 every 1s", "stair 10 to 10 by 1 every 1s", time.Second, 10, 10},
		{"burst 10000 for 1s every 10s for 5m", "burst 10000 for 1s every 10s for 5m", 5 * time.Minute, 300_000, 10000},
		{
			"burst 10000 for 1s every 10s for 5m over 500", "burst 10000 for 1s every 10s for 5m over 500",
			5 * time.Minute, 30 * (10_000 + 4500), 10000,
		},
		{"burst 10 for 1s every 10s for 15s over 0", "burst 10 for 1s every 10s for 15s", 15 * time.Second, 20, 10},
		{"burst 10 for 4s every 10s for 12s over 1", "burst 10 for 4s every 10s for 12s over 1", 12 * time.Second, 66, 10},
		{"pause 10s, 1", "pause 10s, 1", 0, 3590, 1},
		{"1 for 1h1ns,pause 1500us", "1 for 1h0m0.000000001s, pause 1.5ms", time.Hour + 1500*time.Microsecond + 1, 3601, 1},
		{"0.000000001 for 1h", "0.000000001 for 1h", time.Hour, 1, 1e-9},
		{"1000000000 for 1h", "1000000000 for 1h", time.Hour, 3_600_000_000_000, 1e9},
	} {
		s := schedule(t, tt.text)
		require.Equal(t, tt.want, s.String())
		require.Equal(t, s, schedule(t, s.String()), "%s: what it prints is the same schedule", tt.text)
		require.False(t, s.IsZero())
		end, ok := s.End()
		require.Equal(t, tt.end > 0, ok, tt.text)
		require.Equal(t, tt.end, end, tt.text)
		if tt.end == 0 {
			end = time.Hour
		}
		require.Equal(t, tt.messages, s.Due(end), tt.text)
		require.InEpsilon(t, tt.peak, s.Peak(), 1e-12, tt.text)
		if tt.messages > 1 {
			require.InEpsilon(t, float64(tt.messages)/end.Seconds(), s.Average(end), 1e-3, tt.text)
		}
	}
}

func TestConstant(t *testing.T) {
	s := schedule(t, "7")
	r, ok := s.Constant()
	require.True(t, ok)
	require.Equal(t, rate(t, "7"), r)
	_, ok = schedule(t, "7 for 1s").Constant()
	require.False(t, ok)
}

func TestScheduleMistakes(t *testing.T) {
	const (
		form = `: must be messages per second, a number above 0 and at most 1000000000, such as 30000, 30k or 0.5`
		span = `: must be a time such as 20, 20s, 1m30s or 250ms; a plain number is in seconds`
	)
	ramp, stair := `; for example "ramp 1000 to 5000 for 60s"`, `; for example "stair 1000 to 5000 by 1000 every 30s"`
	burst := `; for example "burst 10000 for 1s every 10s for 5m over 500"`
	words := `, or a word that begins a segment: ramp, stair, burst or pause; for example "5000 for 30s"`
	for text, want := range map[string]string{
		"10,000":                               `must be a number of messages per second without commas and units: write 10000`,
		"10k/s":                                `must be a number of messages per second without commas and units: write 10k`,
		"":                                     `is empty; must be a rate such as 5000 for 30s, a ramp, stair, burst or pause`,
		"abc":                                  `"abc"` + form + words,
		"0":                                    `"0"` + form + words,
		"-1":                                   `"-1"` + form + words,
		"1e10":                                 `"1e10"` + form + words,
		"0 for 5s":                             `"0"` + form + words,
		"constant 5":                           `"constant"` + form + words,
		"RAMP 1 to 2":                          `"RAMP"` + form + words,
		"5 10":                                 `expected "for", not "10"; for example "5000 for 30s"`,
		"5 for":                                `expected a time after "for"; for example "5000 for 30s"`,
		"5 for 0":                              `"0": must be above 0; for example "5000 for 30s"`,
		"5 for 1d":                             `"1d"` + span + `; for example "5000 for 30s"`,
		"5 for +1s":                            `"+1s"` + span + `; for example "5000 for 30s"`,
		"5 for 0.1ns":                          `"0.1ns": must be above 0; for example "5000 for 30s"`,
		"pause 10s poisson, 5":                 `segment 1 of 2, "pause 10s poisson": a pause has no arrivals: leave poisson out; for example "pause 10s"`,
		"poisson 5 for 1s even":                `expected a comma or the end after "1s", not "even"; for example "5000 for 30s"`,
		"5 for 1s 6":                           `expected a comma or the end after "1s", not "6"; for example "5000 for 30s"`,
		"5,":                                   `segment 1 of 2, "5": goes on until the load ends, so only the last segment can do without a time; add a time: "5 for 30s"`,
		"5 for 1s,":                            `segment 2 of 2, "": is empty; must be a rate such as 5000 for 30s, a ramp, stair, burst or pause`,
		"5, 6 for 1s":                          `segment 1 of 2, "5": goes on until the load ends, so only the last segment can do without a time; add a time: "5 for 30s"`,
		"pause":                                `expected a time after "pause"; for example "pause 10s"`,
		"pause 10s":                            `must have a rate above 0 beside the pauses`,
		"pause for 10s":                        `"for"` + span + `; for example "pause 10s"`,
		"1 for 1s, x\x1b":                      `segment 2 of 2, "x\x1b": "x\x1b"` + form + words,
		"ramp 1 upto 5 for 1m":                 `expected "to", not "upto"` + ramp,
		"ramp 0 to 0 for 1m":                   `must have a rate above 0 at one end at least, or be a pause` + ramp,
		"ramp 1 to 2":                          `expected "for" after "2"` + ramp,
		"ramp 1 to 0.0000000001 for 5":         `"0.0000000001": must have at most nine decimals` + ramp,
		"1.00000000000000000001 for 1s":        `"1.00000000000000000001": must have at most nine decimals` + words,
		"ramp -1 to 2 for 5":                   `"-1"` + form + ramp,
		"stair 1 to 5 by 0 every 1s":           `"0"` + form + stair,
		"stair 0 to 0 by 1 every 1s":           `must have a rate above 0 at one end at least, or be a pause` + stair,
		"stair 1 to 5 by 1 for 1s":             `expected "every", not "for"` + stair,
		"stair 1 to 2 by 0.000000001 every 1s": "a step, a burst and the time between two bursts count as a segment each: at most 100000 in all are possible, this one has 1000000001",
		"stair 1 to 3 by 1 every 2000000h":     `the schedule is longer than 292 years` + stair,
		"1 for 2000000h, 1 for 2000000h":       `segment 2 of 2, "1 for 2000000h": the schedule is longer than 292 years`,
		"burst 10 for 1s every 1s for 5m":      `bursts must be shorter than the time from one to the next` + burst,
		"burst 10 for 1s every 2s for 5m over 10":  `the rate between the bursts must be lower than in them` + burst,
		"burst 10 for 1s every 2s":                 `expected "for" after "2s"` + burst,
		"burst 0 for 1s every 2s for 5m":           `"0"` + form + burst,
		"burst 10 for 1s every 2s for 5m above 1":  `expected "over", not "above"` + burst,
		"burst 10 for 1ms every 2ms for 1m, 1":     "",
		"burst 10 for 1ms every 2ms for 101s, 1":   `segment 1 of 2, "burst 10 for 1ms every 2ms for 101s": a step, a burst and the time between two bursts count as a segment each: at most 100000 in all are possible, this one has 101000`,
		"burst 10 for 1ns every 2ns for 2000000h":  "a step, a burst and the time between two bursts count as a segment each: at most 100000 in all are possible, this one has 7200000000000000000",
		strings.Repeat("1 for 1s,", 100_000) + "1": `segment 100001 of 100001, "1": a step, a burst and the time between two bursts count as a segment each: at most 100000 in all are possible, this one has 1`,
		"ramp 1 to 2 for 1s, 1 for " + strings.Repeat("9", 100): `segment 2 of 2, "1 for ` + strings.Repeat("9", 74) + `": "` +
			strings.Repeat("9", 40) + `"` + span + `; for example "5000 for 30s"`,
	} {
		s, err := load.ParseSchedule(text)
		if want == "" {
			require.NoError(t, err, "%.100s", text)
			continue
		}
		require.EqualError(t, err, want, "%.100s", text)
		require.True(t, s.IsZero())
	}
}

func FuzzParseSchedule(f *testing.F) {
	for _, s := range []string{
		"1", "0.5", "1e-9", "1e-10", "1e999999999", "5000 for 30s, 7", "ramp 0 to 5000 for 60s", "stair 0.1 to 5 by 1.5 every 30s",
		"burst 10000 for 1s every 10s for 5m over 500", "pause 10s, 1 for 1ns", "1 for 2562047h47m16.854775807s",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		begun := time.Now()
		s, err := load.ParseSchedule(text)
		require.Less(t, time.Since(begun), time.Minute, "a mistyped schedule must not keep the user waiting")
		if err != nil {
			require.True(t, s.IsZero())
			return
		}
		again, err := load.ParseSchedule(s.String())
		require.NoError(t, err, s.String())
		require.Equal(t, s.String(), again.String())
		require.Equal(t, s, again)
		end, ends := s.End()
		if !ends {
			end = 24 * time.Hour
		}
		require.LessOrEqual(t, s.Average(end), s.Peak()*(1+1e-9))
		requireConsistent(t, s, 0)
		for _, at := range []time.Duration{end / 3, end, end + 1} {
			n := s.Due(at)
			requireConsistent(t, s, n)
			if n > 0 {
				requireConsistent(t, s, n-1)
			}
		}
	})
}

func mixes() [][]int {
	list := [][]int{{1, 1}, {1, 1, 1}, {80, 15, 5}, {1, 999}, {999, 1}, {3, 2}, {5, 5, 5, 5, 5, 5, 5}, {1, 2, 3, 4, 5}, {7, 1, 1, 1, 1, 1}, {60, 30, 9, 1}}
	random := rand.New(rand.NewPCG(3, 5))
	for range 30 {
		weights := make([]int, 2+random.IntN(12))
		for i := range weights {
			weights[i] = 1 + random.IntN(40)
		}
		list = append(list, weights)
	}
	return list
}

// Each producer has the exact shares in each of its runs through the cycle, and any number of its messages about them.
func TestSharesOfProducers(t *testing.T) {
	for _, weights := range mixes() {
		length := load.CycleLength(weights)
		for _, producers := range []int{1, 2, 3, 7, 10} {
			list := sequence(t, weights, setup{Total: producers, Count: uint64(3 * length * producers)})
			for i := range producers {
				counts := make([]int, len(weights))
				for n := i; n < len(list); n += producers {
					counts[list[n]]++
				}
				for v, w := range weights {
					require.Equal(t, counts[0]*w, counts[v]*weights[0], "producer %d of %d, weights %v", i, producers, weights)
				}
			}
			if producers > 1 {
				continue
			}
			counts := make([]int, len(weights))
			sum := 0
			for _, w := range weights {
				sum += w
			}
			for n, v := range list {
				counts[v]++
				require.InDelta(t, float64(n+1)*float64(weights[v])/float64(sum), counts[v], 2, "of %d, weights %v", n+1, weights)
			}
		}
	}
}

// Equal weights let the variants take turns, and a mix is the same in every run.
func TestCycles(t *testing.T) {
	require.Equal(t, []int{0, 1, 2, 0, 1, 2, 0}, sequence(t, []int{4, 4, 4}, setup{Total: 1, Count: 7}))
	require.Equal(t, []int{0, 0, 1, 0, 0, 0, 1, 0}, sequence(t, []int{3, 1}, setup{Total: 1, Count: 8}))
	require.Equal(t, []int{0, 0, 0}, sequence(t, []int{5}, setup{Total: 1, Count: 3}))
	require.Equal(t, []int{0, 0, 0}, sequence(t, nil, setup{Total: 1, Count: 3}))
	require.Equal(t, []int{0, 1, 1, 0, 0, 1}, sequence(t, []int{1, 1}, setup{Total: 2, Count: 6}), "each producer sends both")
	require.Equal(t, 20, load.CycleLength([]int{80, 15, 5}))
	require.Equal(t, math.MaxInt, load.CycleLength([]int{1, 0}))
	require.Equal(t, math.MaxInt, load.CycleLength([]int{1, math.MaxInt}))
	long := sequence(t, []int{load.MaxCycle - 1, 1}, setup{Total: 1, Count: load.MaxCycle})
	require.Equal(t, 1, long[load.MaxCycle/2-1]+long[load.MaxCycle/2])
}
