package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Mistakes in what variables gave name the variable, not a flag that nobody wrote.
func TestMistakesNameVariables(t *testing.T) {
	for _, c := range []struct{ environ, args, want string }{
		{"PERFMQ_URL=beta://h", "alpha client", "error: PERFMQ_URL beta://h: beta is no scheme of alpha\nhint: use perfmq beta client\n"},
		{"PERFMQ_URL=h:1", "alpha client", "error: PERFMQ_URL h:1 has no scheme\nhint: write alpha://h:1\n"},
		{"PERFMQ_URL=beta://h", "alpha client --url http://h", "error: --url http://h: http is no scheme of alpha\nhint: alpha URLs begin with alpha://, alphas://\n"},
		{"PERFMQ_CLIENT=x", "alpha client", "error: PERFMQ_CLIENT x: the clients of alpha are native, alphalib\nhint: choose native or library\n"},
		{"PERFMQ_PROTOCOL=beta", "alpha client", "error: PERFMQ_PROTOCOL beta does not agree with the command perfmq alpha\nhint: use perfmq beta client\n"},
		{"PERFMQ_USER=u PERFMQ_PASSWORD=x PERFMQ_PASSWORD_FILE=/no", "alpha client", "error: PERFMQ_PASSWORD and PERFMQ_PASSWORD_FILE are both given\nhint: leave one of them out\n"},
		{"PERFMQ_BODY_FILE=/no/file", "alpha client", "error: PERFMQ_BODY_FILE: /no/file: no such file or directory\nhint: check the path\n"},
		{"PERFMQ_INTERVAL=500ms", "alpha client", "error: PERFMQ_INTERVAL=500ms: 500ms is shorter than 1s\n"},
		{"PERFMQ_COMMIT_INTERVAL=5", "beta client topic://T", "error: PERFMQ_COMMIT_INTERVAL: Beta does not support that\nhint: leave PERFMQ_COMMIT_INTERVAL out\n"},
		{"PERFMQ_OPTION=setle=late", "alpha client", "error: PERFMQ_OPTION setle: there is no such option\nhint: did you mean settle?\n"},
		{"PERFMQ_RATE=5", "alpha client --rte 6", "error: unknown flag --rte\nhint: did you mean --rate?\n"},
		{"PERFMQ_NUM_DESTINATIONS=100000", "alpha client A B", "error: PERFMQ_NUM_DESTINATIONS 100000: there may be 1 to 100000 destinations\n"},
	} {
		t.Run(c.environ+" "+c.args, func(t *testing.T) {
			got := call(strings.Fields(c.environ), strings.Fields(c.args)...)
			require.Equal(t, exitUsage, got.status, got.stderr)
			require.Equal(t, c.want, got.stderr)
		})
	}
}

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
		{
			"PERFMQ_URL=alpha://env PERFMQ_USER=joe PERFMQ_PASSWORD=x PERFMQ_OPTION=settle=late,size=5", "run " + mem + " --dry-run",
			[]string{
				"PERFMQ_URL applies to no broker of " + mem + ": these speak mem\n",
				"PERFMQ_USER applies to no broker", "PERFMQ_PASSWORD applies to no broker", "PERFMQ_OPTION settle applies to no broker", "PERFMQ_OPTION size applies to no broker",
			},
			[]string{"alpha://env", "joe"},
		},
		{
			"PERFMQ_URL=beta://env PERFMQ_USER=joe PERFMQ_OPTION=settle=late", "run " + both + " --dry-run",
			[]string{
				"alpha://file", "beta://env", "PERFMQ_URL applies to broker two\n",
				"PERFMQ_USER applies to broker two\n", "PERFMQ_OPTION settle applies to no broker",
			},
			[]string{"beta://file"},
		},
		{"", "run " + both + " --url beta://flag --user joe --dry-run", []string{"alpha://file", "beta://flag", "--user applies to broker one, broker two\n"}, nil},
		{"", "run " + both + " -o settle=late --dry-run", []string{"late", "--option settle applies to broker one\n"}, nil},
	} {
		got := call(strings.Fields(c.environ), strings.Fields(c.args)...)
		require.Equal(t, exitOK, got.status, got.stderr)
		for _, want := range c.want {
			require.Contains(t, got.stdout, want)
		}
		for _, not := range c.not {
			require.NotContains(t, strings.ReplaceAll(got.stdout, "applies to", ""), not)
		}
	}
	for _, c := range []struct{ environ, args, want string }{
		{"", "run " + mem + " --url beta://h", "error: --url applies to no broker of " + mem + ": these speak mem\nhint: leave it out\n"},
		{"", "run " + mem + " -o reject=5 -o settle=late", "error: --option settle applies to no broker of " + mem + ": these speak mem\nhint: leave it out\n"},
		{"PERFMQ_URL=http://h", "run " + mem, "error: " + mem + ": broker one: PERFMQ_URL http://h: http is no scheme of mem\nhint: mem URLs begin with mem://\n" +
			"error: " + mem + ": broker two: PERFMQ_URL http://h: http is no scheme of mem\nhint: mem URLs begin with mem://\n"},
		{"PERFMQ_CLIENT=memlb", "run " + mem, "error: " + mem + ": broker one: PERFMQ_CLIENT memlb: the clients of mem are native, memlib\nhint: choose native or library\n" +
			"error: " + mem + ": broker two: PERFMQ_CLIENT memlb: the clients of mem are native, memlib\nhint: choose native or library\n"},
		{"PERFMQ_OPTION=xyzxyz=1", "run " + mem, "PERFMQ_OPTION xyzxyz: there is no such option\n"},
	} {
		got := call(strings.Fields(c.environ), strings.Fields(c.args)...)
		require.Equal(t, exitUsage, got.status, got.stderr)
		require.Contains(t, got.stderr, c.want)
		require.NotRegexp(t, `yaml:\d`, got.stderr, "the file is not to blame")
	}
}
