package safetext_test

import (
	"html/template"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/safetext"
)

type inner struct {
	Text   string
	Number int
	hidden string
}

type outer struct {
	inner
	Inner   inner
	List    []string
	Next    *outer
	Named   template.HTML
	Any     any
	Map     map[string]string
	By      map[string]inner
	Counts  []uint64
	Numbers map[string]map[string]uint64
}

// TestEach: all texts change, in a copy; the original stays as it is.
func TestEach(t *testing.T) {
	t.Parallel()
	whole := func() outer {
		return outer{
			inner: inner{Text: "embedded"}, Inner: inner{"a", 1, "b"}, List: []string{"c", "d"}, Next: &outer{List: []string{"e"}},
			Named: "<p>", Any: "f", Map: map[string]string{"k": "v", "K": "w"}, By: map[string]inner{"x": {Text: "y"}}, Counts: []uint64{1}, Numbers: map[string]map[string]uint64{"state": {"class": 1}},
		}
	}
	v := whole()
	got := safetext.Each(v, strings.ToUpper)
	require.Equal(t, outer{
		Inner: inner{"A", 1, "b"}, List: []string{"C", "D"}, Next: &outer{List: []string{"E"}},
		inner: inner{Text: "embedded"}, Named: "<p>", Any: "f", Map: map[string]string{"K": "W"}, By: map[string]inner{"X": {Text: "Y"}}, Counts: []uint64{1}, Numbers: map[string]map[string]uint64{"state": {"class": 1}},
	}, got)
	require.Equal(t, whole(), v, "the original")
	require.Same(t, &v.Counts[0], &got.Counts[0], "shared")
	same := safetext.Each(&v, func(s string) string { return s })
	require.Same(t, &v, same, "nothing to copy")
}
