package selector

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/musttest"
)

func message() *store.Message {
	return &store.Message{Content: storetest.Content{List: []store.Property{
		{Key: "color", Value: "red"},
		{Key: "text", Value: "7"},
		{Key: "long", Value: int64(7)},
		{Key: "double", Value: 2.5},
		{Key: "on", Value: true},
		{Key: "a.b", Value: "dot"},
		{Key: "bytes", Value: []byte("red")},
		{Key: "umlaut", Value: "größe"},
		{Key: "empty", Value: ""},
		{Key: "JMSXGroupID", Value: "g"},
	}, Address: store.Addressing{CorrelationID: "7-1-99"}}}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"color = 'red'": true, "color='blue'": false, "color <> 'blue'": true, "color <> 'red'": false,
		"Color = 'red'": false, "a.b = 'dot'": true, "JMSXGroupID = 'g'": true, "color = 'it''s'": false, "bytes = 'red'": false,
		// Numbers, and text that reads as a number.
		"long = 7": true, "long <> 7": false, "long > 6": true, "long >= 7": true, "long < 7": false, "long <= 7": true,
		"long >-1": true, "double = 25e-1": true, "long < .5": false, "double = '2.5'": false, "long = '7'": false, "long = TRUE": false,
		"text = 7": true, "text > 6": true, "text = 7.0": true, "color > 7": false, "color <> 7": false, "text = '7'": true, "empty = 0": false,
		"on = TRUE": true, "on <> false": true, "on = 'true'": false, "on = 1": false, "color = TRUE": false,
		"none = 'x'": false, "none <> 'x'": false, "umlaut = 'größe'": true, "text <> '8'": true,
		"JMSCorrelationID LIKE '7-1-%'": true, "JMSCorrelationID like '7-11-%'": false, "JMSCorrelationID = '7-1-99'": true,
		"color LIKE 're%' AND on = TRUE": true, "color LIKE 'red%'": true, "color LIKE 'redd%'": false, "none LIKE '%'": false, "long LIKE '7%'": false,
		"long=7 AND on=true": true, "long=7 and on=false": false, "long=1\tAnd\non=true": false, "color = 'a AND b'": false,
		"long = 7 AND color = 'red' AND double < 3 AND none = 1": false, " long = 7 AND color = 'red' AND double < 3 ": true,
	} {
		filter, err := Parse(text)
		if assert.NoError(t, err, text) {
			assert.Equal(t, want, filter(message()), text)
		}
	}
	for _, text := range []string{"", " \t\n"} {
		assert.Nil(t, musttest.Get(Parse(text))(t))
	}
}

func TestParseMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"color":                            `does not understand "color"`,
		"color =":                          `does not understand "color ="`,
		"color = 'red":                     `does not understand "color = 'red"`,
		"color == 'red'":                   "joined by AND, and does not understand",
		"color != 'red'":                   "does not understand",
		"größe = 1 x":                      "does not understand",
		"a = 1 AND":                        "does not understand",
		"a = 1 AND ":                       `does not understand ""`,
		"'red' = color":                    "does not understand",
		"a = b":                            "does not understand",
		"a = TRUEx":                        "does not understand",
		"a = 1 + 2":                        "does not understand",
		"a = 1 AND b IN (1)":               `does not understand "b IN (1)"`,
		"a = 1 OR b = 2":                   "does not understand",
		"(a = 1)":                          "does not understand",
		"NOT a = 1":                        "does not understand",
		"a LIKE 'x'":                       "LIKE takes a prefix: name LIKE 'prefix%'",
		"a LIKE 'x%y%'":                    "LIKE takes a prefix",
		"a LIKE 'x_y%'":                    "LIKE takes a prefix",
		"a LIKE 7":                         "LIKE takes a prefix",
		"a LIKEN 'x%'":                     `invalid selector "a LIKEN 'x%'": this broker knows comparisons such as color = 'red'`,
		"a > 'x'":                          "strings and truth values can be compared by = and <> only",
		"a < TRUE":                         "strings and truth values can be compared by = and <> only",
		"NULL = 'x'":                       "does not understand",
		"a = 1 AND escape = 1":             `does not understand "escape = 1"`,
		"JMSReplyTo = 'x'":                 "JMSReplyTo is a header: only properties can be selected by",
		"JMSPriority > 4":                  "JMSPriority is a header",
		strings.Repeat(" ", 1<<16) + "a=1": "longer than 65536 bytes",
	} {
		_, err := Parse(text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestFilterAllocatesNothing(t *testing.T) {
	m := message()
	filter := musttest.Get(Parse("color = 'red' AND text > 2 AND color <> 'x'"))(t)
	assert.True(t, filter(m))
	assert.Zero(t, testing.AllocsPerRun(100, func() { filter(m) }))
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"color = 'red' AND long > -1", "color = 'b''c'", "a = 1 AND b <> 1", "(((", "\xff = 1", "a=.e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := Parse(text)
		if err != nil || filter == nil {
			return
		}
		narrower, err := Parse(text + " AND color = 'blue'")
		if err == nil && narrower(message()) {
			t.Errorf("%q selects a message that it excludes", text)
		}
	})
}
