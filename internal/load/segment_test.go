//go:build !race

package load_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
)

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
		{"0.0000000001", "0.0000000001", 0, 1, 1e-10},
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
		"ramp 1 to 0.0000000001 for 5":         `a rate must have at most nine decimals` + ramp,
		"0.0000000001 for 5":                   `a rate must have at most nine decimals; for example "5000 for 30s"`,
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
