package quantity_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/quantity"
)

func TestNumber(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "1": "1", "30000": "30000", "0.5": "1/2", ".5": "1/2", "5.": "5", "1e6": "1000000", "1E3": "1000", "1e+3": "1000", "1e-3": "1/1000",
		"1k": "1000", "1K": "1000", "1.5k": "1500", "10M": "10000000", "2G": "2000000000", "1e3k": "1000000", "007": "7",
	} {
		got, err := quantity.Number(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got.RatString(), text)
	}
	for _, text := range []string{
		"", " ", "x", ".", "1 ", " 1", "1 k", "1m", "1g", "1T", "1kk", "1e", "1e99", "1e999999999999", "1.2.3", "1_000", "0x10", "1/2", "NaN", "Inf", "+1",
		strings.Repeat("1", 65),
	} {
		_, err := quantity.Number(text)
		require.ErrorContains(t, err, "must be a number such as", text)
	}
	_, err := quantity.Number("-5")
	require.EqualError(t, err, "must not be negative")
}

func TestWhole(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1e6": 1_000_000, "1.5k": 1500, "10M": 10_000_000, "9223372036854775807": math.MaxInt64} {
		got, err := quantity.Whole(text, 0, math.MaxInt64)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, c := range []struct {
		text            string
		lowest, highest int64
		want            string
	}{
		{"x", 1, math.MaxInt32, "must be a whole number of at least 1"},
		{"0", 1, math.MaxInt32, "must be a whole number of at least 1"},
		{"0.5", 0, math.MaxInt32, "must be a whole number of at least 0"},
		{"-1", 0, math.MaxInt64, "must be a whole number of at least 0"},
		{"3G", 0, math.MaxInt32, "must be at most 2147483647"},
		{"9223372036854775808", 0, math.MaxInt64, "must be at most 9223372036854775807"},
		{"10", 0, 9, "must be a whole number from 0 to 9"},
		{"64KiB", 0, 1024, "must be a whole number from 0 to 1024"},
	} {
		_, err := quantity.Whole(c.text, c.lowest, c.highest)
		require.EqualError(t, err, c.want, c.text)
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "1024": 1024, "10B": 10, "10KB": 10_000, "10kb": 10_000, "10KiB": 10_240, "10 KiB": 10_240, "1MB": 1_000_000,
		"1MiB": 1 << 20, "1.5MiB": 3 << 19, "0.5KB": 500, "1GiB": 1 << 30, "1GB": 1_000_000_000, "1073741824": 1 << 30,
		"1k": 1000, "1K": 1000, "10M": 10_000_000, "1G": 1_000_000_000, "1e6": 1_000_000, "64Ki": 1 << 16, "1e3KiB": 1_024_000,
	} {
		got, err := quantity.Bytes(text, 1<<30)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"": "must be a number of bytes", "x": "must be a number of bytes", "KiB": "must be a number of bytes", "10TB": "must be a number of bytes",
		"1.2.3": "must be a number of bytes", "1_000": "must be a number of bytes", "10m": "must be a number of bytes", "10g": "must be a number of bytes",
		"-5": "must not be negative", "0.5": "is not a whole number of bytes", "1.0001KiB": "is not a whole number of bytes",
		"1073741825": "must be at most 1GiB", "2GiB": "must be at most 1GiB", "1e30GiB": "must be at most 1GiB",
	} {
		_, err := quantity.Bytes(text, 1<<30)
		require.ErrorContains(t, err, want, text)
	}
	require.Equal(t, []string{"1GiB", "3MiB", "10KiB", "1025 bytes", "0 bytes"}, []string{
		quantity.FormatBytes(1 << 30), quantity.FormatBytes(3 << 20), quantity.FormatBytes(10 << 10), quantity.FormatBytes(1025), quantity.FormatBytes(0),
	})
}

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		text string
		unit time.Duration
		want time.Duration
	}{
		{"20", time.Second, 20 * time.Second},
		{"0", time.Second, 0},
		{"0", 0, 0},
		{"0.5", time.Second, 500 * time.Millisecond},
		{"1e3", time.Second, 1000 * time.Second},
		{"20s", time.Second, 20 * time.Second},
		{"1m30s", 0, 90 * time.Second},
		{"250ms", time.Second, 250 * time.Millisecond},
		{"1.5h", time.Second, 90 * time.Minute},
		{"5000", time.Millisecond, 5 * time.Second},
		{"5s", time.Millisecond, 5 * time.Second},
		{"0.25", time.Millisecond, 250 * time.Microsecond},
	} {
		got, err := quantity.Duration(c.text, c.unit)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, c.text)
	}
	for _, text := range []string{"", "x", "1d", "20 s", "+5", "NaN", "s", ".", "1.2.3", "10k", "1e3s", "1e99", strings.Repeat("1h", 33)} {
		_, err := quantity.Duration(text, time.Second)
		require.ErrorContains(t, err, "a plain number is in seconds", text)
	}
	for _, c := range []struct {
		text string
		unit time.Duration
		want string
	}{
		{"x", time.Millisecond, "must be a time such as 20, 20s, 1m30s or 250ms; a plain number is in milliseconds"},
		{"5", 0, "must be a time such as 20s, 1m30s or 250ms"},
		{"-5s", time.Second, "must not be negative"},
		{"10M", time.Second, "must be a time: minutes are written m, such as 10m"},
		{"99999999999999999999", time.Second, "must be at most 292 years"},
	} {
		_, err := quantity.Duration(c.text, c.unit)
		require.EqualError(t, err, c.want, c.text)
	}
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"20", "0.5", "1m30s", "-1", "1.2.3", ".", "9223372036", "1e9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := quantity.Duration(s, time.Second)
		if err != nil {
			require.Zero(t, d)
			return
		}
		require.GreaterOrEqual(t, d, time.Duration(0))
		again := musttest.Get(quantity.Duration(d.String(), time.Second))(t)
		require.Equal(t, d, again)
	})
}

func FuzzBytes(f *testing.F) {
	for _, s := range []string{"1024", "10KiB", "1.5MB", "-1", "1..2", "99999999999999999999GB", "1e30"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := quantity.Bytes(s, 1<<40)
		if err != nil {
			require.Zero(t, n)
			return
		}
		require.GreaterOrEqual(t, n, int64(0))
		again := musttest.Get(quantity.Bytes(strings.TrimSuffix(quantity.FormatBytes(n), " bytes"), 1<<40))(t)
		require.Equal(t, n, again)
	})
}
