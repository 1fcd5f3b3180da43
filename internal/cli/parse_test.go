package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestParseDuration(t *testing.T) {
	for _, c := range []struct {
		text, unit string
		want       time.Duration
	}{
		{"20", "s", 20 * time.Second},
		{"0", "s", 0},
		{"0.5", "s", 500 * time.Millisecond},
		{"20s", "s", 20 * time.Second},
		{"1m30s", "s", 90 * time.Second},
		{"250ms", "s", 250 * time.Millisecond},
		{"1.5h", "s", 90 * time.Minute},
		{"5000", "ms", 5 * time.Second},
		{"5s", "ms", 5 * time.Second},
		{"0.25", "ms", 250 * time.Microsecond},
	} {
		got, err := parseDuration(c.text, c.unit)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, c.text)
	}
	for _, text := range []string{"", "x", "1d", "20 s", "+5", "1e3", "NaN", "s", ".", "1.2.3", "99999999999999999999"} {
		_, err := parseDuration(text, "s")
		require.ErrorContains(t, err, "a plain number is in seconds", text)
	}
	_, err := parseDuration("x", "ms")
	require.ErrorContains(t, err, "a plain number is in milliseconds")
	_, err = parseDuration("-5s", "s")
	require.EqualError(t, err, "must not be negative")
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "1": 1, "1024": 1024, "10B": 10, "10KB": 10_000, "10kb": 10_000, "10KiB": 10_240, "10 KiB": 10_240, "1MB": 1_000_000,
		"1MiB": 1 << 20, "1.5MiB": 3 << 19, "0.5KB": 500, "1GiB": 1 << 30, "1GB": 1_000_000_000, "1073741824": 1 << 30,
	} {
		got, err := parseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"":           "want bytes such as",
		"x":          "want bytes such as",
		"KiB":        "want bytes such as",
		"10TB":       "want bytes such as",
		"1.2.3":      "want bytes such as",
		"1e3":        "want bytes such as",
		"1_000":      "want bytes such as",
		"10K":        "write KiB for powers of 1024 or KB for powers of 1000",
		"10m":        "write MiB for powers of 1024 or MB for powers of 1000",
		"-5":         "must not be negative",
		"0.5":        "is not a whole number of bytes",
		"1.0001KiB":  "is not a whole number of bytes",
		"1073741825": "want at most 1GiB",
		"2GiB":       "want at most 1GiB",
	} {
		_, err := parseSize(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestParseProperty(t *testing.T) {
	for text, want := range map[string]driver.Property{
		"a=b":   {Key: "a", Value: "b"},
		"a=":    {Key: "a"},
		"a=b=c": {Key: "a", Value: "b=c"},
		"a=b c": {Key: "a", Value: "b c"},
	} {
		got, err := parseProperty(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "a", "=b", "a b=c", "a\n=c"} {
		_, err := parseProperty(text)
		require.Error(t, err, text)
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"20", "0.5", "1m30s", "-1", "1.2.3", ".", "9223372036"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := parseDuration(s, "s")
		if err != nil {
			require.Zero(t, d)
			return
		}
		require.GreaterOrEqual(t, d, time.Duration(0))
		again, err := parseDuration(d.String(), "s")
		require.NoError(t, err)
		require.Equal(t, d, again)
	})
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"1024", "10KiB", "1.5MB", "-1", "1..2", "99999999999999999999GB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseSize(s)
		if err != nil {
			require.Zero(t, n)
			return
		}
		require.GreaterOrEqual(t, n, 0)
		require.LessOrEqual(t, n, plan.MaxMessageSize)
	})
}

func FuzzParseProperty(f *testing.F) {
	for _, s := range []string{"a=b", "=", "a", "a=b=c", "a b=c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parseProperty(s)
		if err == nil {
			require.Equal(t, s, p.Key+"="+p.Value)
			require.NotEmpty(t, p.Key)
			require.False(t, strings.Contains(p.Key, "="))
		}
	})
}
