package mem

import (
	"slices"
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
		"":                            {matches: true},
		"color = 'red'":               {matches: true},
		"color='red' AND size = '1'":  {mistake: true},
		"color = 'blue'":              {},
		"shape = 'round'":             {},
		"color = 'it''s'":             {mistake: true},
		"color > 'a'":                 {mistake: true},
		"color = red":                 {mistake: true},
		"color = 'red' OR size = '1'": {mistake: true},
		"color":                       {mistake: true},
		"color = '":                   {mistake: true},
	}
	for text, tt := range tests {
		sel, err := parseSelector(text)
		require.Equalf(t, tt.mistake, err != nil, "%q: %v", text, err)
		if err == nil {
			require.Equalf(t, tt.matches, selects(sel, &Message{Variant: driver.Variant{Properties: red}}), "%q", text)
		}
	}
}

// TestFIFO compares the list with a slice.
func TestFIFO(t *testing.T) {
	var f fifo[int]
	var model []int
	for i := range 10_000 {
		switch at := 0; {
		case i%3 == 2 && len(model) > 0 || len(model) > 900:
			require.Equal(t, model[0], f.remove(0))
			model = model[1:]
			continue
		case i%7 != 3: // else to the front
			at = len(model)
			fallthrough
		default:
			f.insert(at, i)
			model = slices.Insert(model, at, i)
		}
		require.Equal(t, model, f.list())
	}
}
