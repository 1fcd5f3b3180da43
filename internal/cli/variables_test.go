package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A broker of a scenario gets no URL, login or options of another protocol, and the file is not to blame for a
// variable.
func TestVariablesOfOtherProtocols(t *testing.T) {
	const groups = "groups:\n  a: {role: producer, broker: one, destination: topic://T}\n  b: {role: consumer, broker: two, destination: topic://T}\nsteps:\n  - {name: s, duration: 1s}\n"
	mem := write(t, "mem.yaml", "brokers:\n  one: {protocol: mem}\n  two: {protocol: mem}\n"+groups)
	both := write(t, "both.yaml", "brokers:\n  one: {protocol: alpha, url: \"alpha://file\"}\n  two: {protocol: beta, url: \"beta://file\"}\n"+groups)
	for _, c := range []struct {
		environ, args string
		want          []string // in the plan and its notes
		not           []string
	}{
		{"PERFMQ_URL=beta://env PERFMQ_OPTION=settle=late", "run " + both + " --dry-run", []string{"alpha://file", "beta://env"}, []string{"beta://file", "settle"}},
		{"PERFMQ_URL=alpha://env PERFMQ_USER=joe PERFMQ_PASSWORD=x", "run " + mem + " --dry-run", []string{"protocol: mem"}, []string{"alpha://env", "joe"}},
		{"PERFMQ_USER=joe PERFMQ_PASSWORD=x", "run " + both + " --dry-run", []string{"user: joe"}, nil},
		{"PERFMQ_URL=alpha://env", "run " + mem + " --dry-run", []string{"protocol: mem"}, []string{"alpha://env"}},
		{"", "run " + both + " --url beta://flag --dry-run", []string{"alpha://file", "beta://flag"}, []string{"beta://file"}},
		{"", "run " + both + " -o settle=late --dry-run", []string{"settle: late"}, nil},
	} {
		got := call(strings.Fields(c.environ), strings.Fields(c.args)...)
		require.Equal(t, exitOK, got.status, got.stderr)
		for _, want := range c.want {
			require.Contains(t, got.stdout, want)
		}
		for _, not := range c.not {
			require.NotContains(t, got.stdout, not)
		}
	}
	for _, c := range []struct{ environ, args, want string }{
		{"", "run " + mem + " --url beta://h", "error: " + mem + ": broker one: --url beta://h: beta is no scheme of mem\n"},
		{"", "run " + mem + " -o reject=5 -o settle=late", "--option settle: there is no such option\n"},
		{"PERFMQ_URL=http://h", "run " + mem, "error: " + mem + ": broker one: --url http://h: http is no scheme of mem\nhint: mem URLs begin with mem://\n" +
			"error: " + mem + ": broker two: --url http://h: http is no scheme of mem\nhint: mem URLs begin with mem://\n"},
		{"PERFMQ_CLIENT=memlb", "run " + mem, "error: " + mem + ": broker one: --client memlb: must be one of native, memlib\nhint: did you mean memlib?\n" +
			"error: " + mem + ": broker two: --client memlb: must be one of native, memlib\nhint: did you mean memlib?\n"},
		{"PERFMQ_OPTION=xyzxyz=1", "run " + mem, "--option xyzxyz: there is no such option\n"},
	} {
		got := call(strings.Fields(c.environ), strings.Fields(c.args)...)
		require.Equal(t, exitUsage, got.status, got.stderr)
		require.Contains(t, got.stderr, c.want)
		require.NotRegexp(t, `yaml:\d`, got.stderr, "the file is not to blame")
	}
}
