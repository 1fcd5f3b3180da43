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
	}}}
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
		// Unknown.
		"none = 'x'": false, "NOT none = 'x'": false, "none <> 'x'": false, "none = 'x' OR on = TRUE": true, "none = 'x' AND on = TRUE": false,
		"NOT (none = 'x' AND on = FALSE)": true, "NOT (none = 'x' OR on = FALSE)": false,
		"none LIKE '%'": false, "none NOT LIKE '%'": false,
		"color LIKE 'r%'": true, "color LIKE '_e_'": true, "color LIKE 'r'": false, "color LIKE '%d'": true, "color LIKE 'e'": false,
		"color NOT LIKE 'b%'": true, "empty LIKE ''": true, "empty LIKE '_'": false, "color LIKE 'RED'": false,
		"umlaut LIKE 'gr__e'": true, "long LIKE '7'": false, "color LIKE '.*'": false,
		// Precedence, and keywords of any case.
		"long=1 AND long=1 OR long=7": true, "long=7 OR long=1 AND long=1": true, "(long=7 OR long=1) AND long=1": false,
		"not long=1 and on=true": true, "NOT NOT long=7": true, "NOT (long=7 OR long=1)": false,
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
		"color":          "found the end where a comparison or LIKE is expected",
		"color =":        "found the end where a value is expected",
		"color = 'red":   `unexpected "'red"`,
		"color == 'red'": "found = where a value is expected",
		"color != 'red'": `unexpected "!= 'red'"`,
		"größe = 1 x":    "found x where AND, OR or the end is expected",
		"(a = 1":         "found the end where ) is expected",
		"a = 1 AND":      "found the end where a property is expected",
		"'red' = color":  "found 'red' where a property is expected",
		"a = b":          "found b where a value is expected",
		"a IN (1)":       "found IN where a comparison or LIKE is expected",
		"a NOT = 1":      "found = where LIKE is expected",
		"a LIKE 7":       "LIKE takes a pattern in single quotes",
		"a LIKE '" + strings.Repeat("x", 1025) + "'": "the pattern is longer than 1024 bytes",
		"a > 'x'":    "strings and truth values can be compared by = and <> only",
		"NULL = 'x'": "found NULL where a property is expected", "true = TRUE": "found true where a property is expected",
		"NOT IS NULL": "found IS where a property is expected", "a = 1 OR escape = 1": "found escape where",
		"Between = 1": "found Between where", "AND = 1": "found AND where", "LIKE LIKE 'x'": "found LIKE where",
		"JMSReplyTo = 'x'": "JMSReplyTo is a header: only properties can be selected by", "JMSPriority > 4": "JMSPriority is a header",
		"a = 1 + 2": `unexpected "+ 2"`,
		strings.Repeat("(", 300) + "a=1" + strings.Repeat(")", 300): "nested more than 200 deep",
		strings.Repeat("NOT ", 300) + "a=1":                         "nested more than 200 deep",
		strings.Repeat(" ", 1<<16) + "a=1":                          "longer than 65536 bytes",
	} {
		_, err := Parse(text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestFilterAllocatesNothing(t *testing.T) {
	m := message()
	filter := musttest.Get(Parse("color LIKE 'r%d' AND text > 2 AND color <> 'x'"))(t)
	assert.True(t, filter(m))
	least := testing.AllocsPerRun(1, func() { filter(m) })
	for range 100 { // regexp has a pool, which a collection empties, and the race detector at random
		least = min(least, testing.AllocsPerRun(1, func() { filter(m) }))
	}
	assert.Zero(t, least)
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"color = 'red' AND NOT (long > -1)", "color = 'b''c'", "a LIKE '%_' OR b <> 1", "(((", "\xff = 1", "a=.e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := Parse(text)
		if err != nil || filter == nil {
			return
		}
		negated, err := Parse("NOT (" + text + ")")
		if err == nil && filter(message()) && negated(message()) {
			t.Errorf("%q and its negation are both true", text)
		}
	})
}
