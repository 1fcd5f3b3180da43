package driver_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func TestIDText(t *testing.T) {
	t.Parallel()
	longest := driver.ID{Run: math.MaxInt64, Producer: math.MaxInt64, Number: math.MaxInt64, Sum: math.MaxInt64, Delay: math.MaxInt64}
	for text, id := range map[string]driver.ID{
		"1-0-0-0":                  {Run: 1},
		"10-2-30-4":                {Run: 10, Producer: 2, Number: 30, Sum: 4},
		"613067237128-0-9999-4011": {Run: 613067237128, Number: 9999, Sum: 4011},
		"10-2-30-4-5000":           {Run: 10, Producer: 2, Number: 30, Sum: 4, Delay: 5000},
		"10-2":                     {Run: 10, Producer: 2, Number: driver.Unnumbered},
		"10-2-5000":                {Run: 10, Producer: 2, Number: driver.Unnumbered, Delay: 5000},
		strings.Repeat("9223372036854775807-", 4) + "9223372036854775807": longest,
	} {
		require.Equal(t, text, string(id.Append(nil)))
		require.Equal(t, id, driver.ParseID(text))
		require.Equal(t, id, driver.ParseID([]byte(text)))
		require.Equal(t, "x"+text, string(id.Append([]byte("x"))))
	}
	require.Len(t, longest.Append(nil), driver.MaxIDText)
}

// A changed text is garbled, or says something else: it is never taken for the same ID.
func TestGarbledID(t *testing.T) {
	t.Parallel()
	require.NotEqual(t, driver.ID{}, driver.GarbledID())
	for _, text := range []string{
		"", "-", "---", "1", "1-2-0", "1-2-3-", "1-2-", "1-2-3-4-0", "1-2-3-4-05", "1-2-3-4-5-6", "-2-3-4", "1--3-4", "1-2-3-4-", "-1-2-3-4", "1-2-3--4",
		"0-2-3-4", "01-2-3-4", "1-00-3-4", "1-2-03-4", "1-2-3-+4", " 1-2-3-4", "1-2-3-4\n", "1.2.3.4", "1-2-3-0x4", "1-2-3-4\x00",
		"9223372036854775808-2-3-4", "1-2-3-9223372036854775808", "1-2-3-99999999999999999999", "1-2-3-18446744073709551617",
		"1-2-3-\xff", "1-2-3-\u0664", strings.Repeat("1", 1<<16),
	} {
		require.Equal(t, driver.GarbledID(), driver.ParseID(text), "%q", text)
		require.Equal(t, driver.GarbledID(), driver.ParseID([]byte(text)), "%q", text)
	}
	id := driver.ID{Run: 1 << 40, Producer: 7, Number: 1234, Sum: 1 << 50}
	text := string(id.Append(nil))
	for i := range text {
		for bit := range 8 {
			broken := []byte(text)
			broken[i] ^= 1 << bit
			require.NotEqual(t, id, driver.ParseID(broken), "%q", broken)
		}
		require.NotEqual(t, id, driver.ParseID(text[:i]+text[i+1:]))
	}
}

// Writing and reading an ID allocates nothing.
func TestIDAllocatesNothing(t *testing.T) {
	id := driver.ID{Run: math.MaxInt64, Producer: 12, Number: 1 << 33, Sum: math.MaxInt64}
	buf := make([]byte, 0, driver.MaxIDText)
	text := string(id.Append(nil))
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		buf = id.Append(buf[:0])
		if driver.ParseID(buf) != id || driver.ParseID(text) != id {
			t.Error("another ID")
		}
	}))
}

func FuzzParseID(f *testing.F) {
	for _, text := range []string{"1-0-0-0", "4611686018427387904-12-99999-4011327420186375208", "1-2-3-9223372036854775808", "01-2-3-4", "", "1-2", "1-0-5", "1-0-3-4-5"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		id := driver.ParseID(text)
		require.Equal(t, id, driver.ParseID(string(text)))
		if id == driver.GarbledID() {
			return
		}
		require.Positive(t, id.Run)
		require.True(t, id.Producer >= 0 && (id.Number >= 0 || id.Number == driver.Unnumbered && id.Sum == 0) && id.Sum >= 0 && id.Delay >= 0)
		require.Equal(t, string(text), string(id.Append(nil)), "the one text of an ID")
	})
}

func TestIDReader(t *testing.T) {
	var ids driver.IDReader
	texts := []string{"5-0", "5-0", "5-1", "5-0", "5-0-7-9", "5-0", "", "x", "6-0", "5-0", "5-00", "5-0-8-9"}
	for _, text := range texts {
		b := []byte(text)
		require.Equal(t, driver.ParseID(text), ids.Read(b), text)
		clear(b) // it must not have kept the caller's bytes
	}
	text := []byte("5-0")
	ids.Read(text)
	require.Zero(t, testing.AllocsPerRun(100, func() { ids.Read(text) }))
}

func TestParseDestination(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]driver.Destination{
		"A":            {Name: "A"},
		"queue://A":    {Name: "A"},
		"topic://A":    {Kind: driver.Topic, Name: "A"},
		"queue://a b ": {Name: "a b "},
		"a?b#c%20/d":   {Name: "a?b#c%20/d"},
		"queue://名前":   {Name: "名前"},
	} {
		got, err := driver.ParseDestination(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"":              "has no name",
		"queue://":      "has no name",
		"exchange://a":  `unknown kind "exchange"`,
		"queue://a\nb":  "control characters",
		"a\x00":         "control characters",
		"a\x1b[31mb":    "control characters",
		"queue://\xffa": "invalid UTF-8",
	} {
		_, err := driver.ParseDestination(text)
		require.ErrorContains(t, err, want, "%q", text)
		require.NotContains(t, err.Error(), "\n")
	}
}
