package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

func TestPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("first line\nsecond\n"), 0o600))
	for _, c := range []struct {
		name    string
		environ string // separated by spaces
		args    string
		want    []string // lines of the plan
		status  int
	}{
		{"defaults", "", "alpha client", []string{"  max-pending: 1", "  url: alpha://localhost:1"}, 0},
		{"environment over default", "PERFMQ_MAX_PENDING=7", "alpha client", []string{"  max-pending: 7"}, 0},
		{"flag over environment", "PERFMQ_MAX_PENDING=7", "alpha client --max-pending 8", []string{"  max-pending: 8"}, 0},
		{"a flag hides a bad variable", "PERFMQ_MAX_PENDING=x", "alpha client --max-pending 8", []string{"  max-pending: 8"}, 0},
		{"empty is not set", "PERFMQ_MAX_PENDING=", "alpha client", []string{"  max-pending: 1"}, 0},
		{"switch off again", "PERFMQ_PERSISTENT=true", "alpha client --persistent=false", []string{"  max-pending: 1\n  max-message-size: 16777216"}, 0},
		{"client ID", "PERFMQ_CLIENT_ID=x", "alpha client", []string{"  clientID: x"}, 0},
		{"other roles' variables", "PERFMQ_RATE=5", "alpha consumer", []string{"  consumers: 1"}, 0},
		{"connections of consumers", "PERFMQ_CONSUMER_CONNECTIONS=2", "alpha consumer --consumers 4", []string{"  consumers: 4", "  consumer-connections: 2"}, 0},
		{"connections, both names", "", "alpha consumer --consumers 4 --consumer-connections 3", []string{"  consumer-connections: 3"}, 0},
		{"lists", "PERFMQ_PROPERTY=a=1,b=2", "alpha client --property b=3 --property c=4", []string{"  property:\n    a: \"1\"\n    b: \"3\"\n    c: \"4\""}, 0},
		{"options", "PERFMQ_OPTION=size=5,settle=early", "alpha client -o size=6", []string{"  options:\n    settle: early\n    size: \"6\""}, 0},
		{"password", "PERFMQ_USER=u PERFMQ_PASSWORD=first", "alpha client", []string{"  user: u", "# note: give PERFMQ_PASSWORD to run it again"}, 0},
		{"password file", "PERFMQ_PASSWORD_FILE=" + file, "alpha client --user u", []string{"  user: u"}, 0},
		{"consumer's own user", "", "alpha client --user u --password p --consumer-url alpha://x:y@h", []string{"    url: alpha://x@h"}, 0},
		{"two protocols", "", "alpha client --consumer-url beta://h -o tag=x -o size=9 topic://T", []string{"  consumers:\n    protocol: beta\n    url: beta://h", "      tag: x"}, 0},
		{"default destination", "", "beta producer", []string{"    - topic://TEST"}, 0},
		{"Artemis's protocol flag", "", "alpha client --protocol ALPHA", nil, 0},
		{"body file", "", "alpha client --body-file " + file, []string{"  body-file: " + file}, 0},
		{"size over file", "PERFMQ_BODY_FILE=" + file, "alpha client --message-size 5KiB", []string{"  message-size: 5120"}, 0},
		{"largest message by flag", "", "alpha consumer --max-message-size 1MiB", []string{"  max-message-size: 1048576"}, 0},
		{"our own message is accepted", "", "alpha client --message-size 20MiB --max-message-size 1MiB", []string{"  max-message-size: 20971520"}, 0},
		{"threads are connections", "", "alpha client --producers 9 --threads 4 --shared-connections", []string{"  producers: 9\n  consumers: 1\n  shared-connections: true", "threads: 4"}, 0},
		{"seconds", "", "alpha client --duration 90 --warmup 0.5 --ttl 250", []string{"duration: 1m30s", "warmup: 500ms", "  ttl: 250ms"}, 0},
		{"bad variable", "PERFMQ_RATE=x", "alpha client", nil, 2},
		{"unknown variable", "PERFMQ_RAET=5", "alpha client", nil, 2},
		{"variables of tests and of Kubernetes", "PERFMQ_TEST_X=1 PERFMQ_SERVICE_HOST=x PERFMQ_PORT=tcp://1 PERFMQ_PORT_9400_TCP=x PERFMQ_PORT_9400_TCP_ADDR=x PERFMQ_UI_SERVICE_PORT_HTTP=1", "alpha client", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := call(strings.Fields(c.environ), append(strings.Fields(c.args), "--dry-run")...)
			require.Equal(t, c.status, got.status, got.stderr)
			for _, want := range c.want {
				require.Contains(t, got.stdout, want+"\n")
			}
		})
	}
	got := call([]string{"PERFMQ_RATE=x", "PERFMQ_XYZXYZ=1"}, "alpha", "client")
	require.Equal(t, "error: PERFMQ_RATE=x: \"x\": must be messages per second, a number above 0 and at most 1000000000, such as 30000, 30k or 0.5, or a word that begins a segment: ramp, stair, burst or pause; for example \"5000 for 30s\"\n"+
		"error: unknown environment variable PERFMQ_XYZXYZ\n"+
		"hint: unset it\n", got.stderr)
}

// TestCredentialsOfAllRoutes: one rule for users and passwords, wherever they come from: one line end of a variable or
// a file is dropped, and what a file or an editor adds is refused before anything is connected.
func TestCredentialsOfAllRoutes(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	scenario := func(name, broker string) []string {
		return []string{"run", file(name, "broker: "+broker+"\ngroups:\n  p:\n    role: producer\n    destinations: [queue://Q]\n    message-count: 1\n")}
	}
	run := func(flags ...string) []string { return append([]string{"alpha", "client"}, flags...) }
	const mark = "\ufeff"
	for name, c := range map[string]struct {
		args    []string
		env     []string
		user    string // empty: refused
		pass    string
		refused string
	}{
		"variables": {run(), []string{"PERFMQ_USER=u\n", "PERFMQ_PASSWORD=hunter2\r\n"}, "u", "hunter2", ""},
		"file":      {run("--user", "u", "--password-file", file("lf", "hunter2\n")), nil, "u", "hunter2", ""},
		"file of Windows": {
			run("--user", "u", "--password-file", file("crlf", "hunter2\r\nmore")), nil, "u", "hunter2", "",
		},
		"URL":                  {run("--url", "alpha://u:hunter2%20@h"), nil, "", "", ""}, // the driver reads it
		"mark in a variable":   {run("--user", "u"), []string{"PERFMQ_PASSWORD=" + mark + "hunter2"}, "", "", "byte order mark"},
		"blank in a variable":  {run("--user", "u"), []string{"PERFMQ_PASSWORD=hunter2 "}, "", "", "ends with a blank"},
		"mark in a file":       {run("--user", "u", "--password-file", file("bom", mark+"hunter2\n")), nil, "", "", "byte order mark"},
		"blank in a file":      {run("--user", "u", "--password-file", file("blank", "hunter2 \n")), nil, "", "", "ends with a blank"},
		"flag":                 {run("--user", "u", "--password", "hunter2\n"), nil, "", "", "control character"},
		"user with a password": {run("--user", "u:hunter2\n"), nil, "", "", "control character"},
		"in the URL":           {run("--url", "alpha://u:hunter2%0A@h"), nil, "", "", "the password has a control character"},
		"management's URL":     {run("--management-url", "http://u:hunter2%0A@h:1"), nil, "", "", "the password has a control character"},
		"scenario":             {scenario("s1.yaml", "{protocol: alpha, user: u, password: hunter2}"), nil, "u", "hunter2", ""},
		"scenario's file": {
			scenario("s3.yaml", "{protocol: alpha, user: u, password-file: bom}"), nil, "", "", "byte order mark",
		},
		"scenario's variable": {
			append(scenario("s4.yaml", `{protocol: alpha, user: u, password: "${pw}"}`+"\nvars: {pw: x}"), "--set", "pw=hunter2 "), nil,
			"", "", "ends with a blank",
		},
		"scenario and environment": {
			scenario("s5.yaml", "{protocol: alpha, user: u}"), []string{"PERFMQ_PASSWORD=hunter2\n"}, "u", "hunter2", "",
		},
		"embedded broker": {[]string{"broker", "--user", "u"}, []string{"PERFMQ_PASSWORD=hunter2 "}, "", "", "ends with a blank"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opened driver.OpenOptions
			factories := testFactories()
			factories[0].Open = func(_ context.Context, o driver.OpenOptions) (driver.Driver, error) {
				opened = o
				return nil, errors.New("seen")
			}
			var stdout, stderr output
			status := Main(Env{Args: c.args, Environ: c.env, Stdout: &stdout, Stderr: &stderr, Factories: factories})
			requireNoSecret(t, "standard error", stderr.String())
			if c.refused != "" {
				require.Equal(t, result.StatusUsage, status, stderr.String())
				require.Contains(t, stderr.String(), c.refused)
				require.Empty(t, opened.URL)
				return
			}
			require.Contains(t, stderr.String(), "seen")
			require.Equal(t, c.user, opened.User)
			require.Equal(t, c.pass, opened.Password)
		})
	}
}
