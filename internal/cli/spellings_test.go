package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/config"
)

// Each number, size and time of the table is understood in the spellings that people use, by flag, variable, key of a
// scenario file and
// --set, and comes to the same plan as the plain spelling.
func TestSpellings(t *testing.T) {
	const number, bytes, time = "2k", "64KiB", "1m30s"
	spelled := map[string]string{ // spelling: plain spelling
		number: "2000", "1e3": "1000", "1.5k": "1500", bytes: "65536", "10k": "10000", time: "90s", "1e2": "100", "0.5k": "500", "30k for 1m": "30000 for 60s",
		"ramp 1k to 1.5k for 1m30s": "ramp 1000 to 1500 for 90s", "1k/1:64KiB/1k": "1000/1:65536/1000", "1m30s-2m": "90s-120s",
	}
	texts := map[string][]string{
		"N": {number, "1e3", "1.5k"}, "SIZE": {bytes, "10k"}, "TIME": {time, "1e2"},
	}
	own := map[string][]string{ // not of one number, or within narrower bounds
		"rate": {number, "30k for 1m", "ramp 1k to 1.5k for 1m30s"}, "threads": {"0.5k"}, "consumer-work": {time, "1m30s-2m"}, "metrics-linger": nil, "interval": nil,
		"message-size": {bytes, "10k", "1k/1:64KiB/1k"},
	}
	needs := map[string]string{"warmup": "--duration 1h", "consumer-connections": "--consumers 5k", "num-connections": "--consumers 5k", "threads": "--shared-connections", "reconnect-timeout": "--reconnect", "reconnect-delay": "--reconnect"}
	for _, s := range config.All() {
		list, ok := own[s.Name]
		if !ok {
			list = texts[s.Arg]
		}
		for _, text := range list {
			plan := func(environ []string, args string) string {
				more := strings.Fields("alpha " + role(&s) + " --dry-run --tx --commit-interval 1 " + needs[s.Name])
				if s.Name == "commit-interval" || s.Name == "send-timeout" {
					more = more[:4]
				}
				if args != "" {
					more = append(more, "--"+s.Name, args)
				}
				got := call(environ, append(more, "topic://T")...)
				require.Zero(t, got.status, "%s: %s", args, got.stderr)
				return withoutComments(got.stdout)
			}
			want := plan(nil, spelled[text])
			require.NotEqual(t, plan(nil, ""), want, "%s does not reach the plan", s.Name)
			require.Equal(t, want, plan(nil, text), "--%s %s", s.Name, text)
			require.Equal(t, want, plan([]string{s.Variables()[0] + "=" + text}, ""), "%s=%s", s.Variables()[0], text)
		}
	}
	require.Equal(t, dry(t, "alpha client -o size=65536"), dry(t, "alpha client -o size=64KiB"))
	require.Equal(t, dry(t, "alpha client -o size=1000"), dry(t, "alpha client -o size=1k"))
}

func dry(t *testing.T, args string) string {
	t.Helper()
	got := call(nil, append(strings.Fields(args), "--dry-run")...)
	require.Zero(t, got.status, got.stderr)
	return withoutComments(got.stdout)
}

// withoutComments returns a plan without what begins with #.
func withoutComments(text string) (plan string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			plan += line
		}
	}
	return plan
}

// role returns a role that has a setting.
func role(s *config.Setting) string {
	for _, r := range config.Roles() {
		if s.In(r) {
			return string(r)
		}
	}
	return ""
}
