package mem

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func TestSelector(t *testing.T) {
	red := []driver.Property{{Key: "color", Value: "red"}, {Key: "size", Value: "1"}}
	tests := map[string]struct {
		matches bool
		mistake bool
	}{
		"":                             {matches: true},
		"color = 'red'":                {matches: true},
		"color='red' AND size = '1'":   {matches: true},
		"color = 'red' AND size = '2'": {},
		"color = 'blue'":               {},
		"shape = 'round'":              {},
		"color = 'it''s'":              {mistake: true},
		"color > 'a'":                  {mistake: true},
		"color = red":                  {mistake: true},
		"color = 'red' OR size = '1'":  {mistake: true},
		"color":                        {mistake: true},
		"color = '":                    {mistake: true},
	}
	for text, tt := range tests {
		sel, err := parseSelector(text)
		require.Equalf(t, tt.mistake, err != nil, "%q: %v", text, err)
		if err == nil {
			require.Equalf(t, tt.matches, sel.matches(red), "%q", text)
		}
	}
}

// FuzzSelector: whatever is understood matches the properties that it names, and nothing without them.
func FuzzSelector(f *testing.F) {
	for _, s := range []string{"color = 'red'", "a='b' AND c='d'", "a='b' AND a='c'", "''='", " AND "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sel, err := parseSelector(text)
		if err != nil || sel == nil {
			require.True(t, err != nil || strings.TrimSpace(text) == "")
			return
		}
		require.False(t, sel.matches(nil))
		values := map[string]string{}
		contradicts := false
		for _, p := range sel {
			if v, ok := values[p.Key]; ok && v != p.Value {
				contradicts = true
			}
			values[p.Key] = p.Value
		}
		require.Equal(t, !contradicts, sel.matches(sel))
	})
}

func TestRing(t *testing.T) {
	var r ring[int]
	var model []int
	for i := range 1000 {
		switch {
		case i%7 == 3:
			r.pushFront(&i)
			model = append([]int{i}, model...)
		case i%3 == 2:
			require.Equal(t, model[0], r.pop())
			model = model[1:]
		default:
			r.push(&i)
			model = append(model, i)
		}
		require.Equal(t, len(model), r.len())
	}
	for _, want := range model {
		require.Equal(t, want, r.pop())
	}
}
