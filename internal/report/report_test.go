package report

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
)

// scripted is a reporter that records its calls and fails in chosen ones.
type scripted struct {
	name  string
	fail  []string // calls that return an error
	calls *[]string
}

func (s *scripted) call(what string) error {
	*s.calls = append(*s.calls, s.name+" "+what)
	if slices.Contains(s.fail, what) {
		return errors.New(s.name + " cannot " + what)
	}
	return nil
}

func (s *scripted) Start(stats.Run) error          { return s.call("start") }
func (s *scripted) Interval(*stats.Snapshot) error { return s.call("interval") }
func (s *scripted) Summary(*stats.Summary) error   { return s.call("summary") }
func (s *scripted) Close() error                   { return s.call("close") }

func TestFan(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		fail       []string // of reporter b, between a and c
		start, end string
		told       int
		callsOfB   []string
	}{
		{"all is well", nil, "", "", 0, []string{"start", "interval", "interval", "summary", "close"}},
		{"start", []string{"start", "close"}, "b cannot start", "", 0, []string{"start", "close"}},
		{"interval", []string{"interval", "close"}, "", "b cannot interval", 1, []string{"start", "interval", "close"}},
		{"summary", []string{"summary"}, "", "b cannot summary", 1, []string{"start", "interval", "interval", "summary", "close"}},
		{"close", []string{"close"}, "", "b cannot close", 0, []string{"start", "interval", "interval", "summary", "close"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			var told []error
			f := NewFan(&scripted{"a", nil, &calls}, &scripted{"b", test.fail, &calls}, &scripted{"c", nil, &calls})
			f.OnError = func(err error) { told = append(told, err) }
			requireError(t, test.start, f.Start(stats.Run{}))
			require.NoError(t, f.Interval(nil))
			require.NoError(t, f.Interval(nil))
			require.NoError(t, f.Summary(nil))
			requireError(t, test.end, f.Close())
			require.Len(t, told, test.told)
			var want []string
			for _, step := range []string{"start", "interval", "interval", "summary", "close"} {
				want = append(want, "a "+step)
				if len(test.callsOfB) > 0 && test.callsOfB[0] == step {
					want, test.callsOfB = append(want, "b "+step), test.callsOfB[1:]
				}
				want = append(want, "c "+step)
			}
			require.Equal(t, want, calls)
		})
	}
}

func requireError(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.EqualError(t, err, want)
}
