package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestNoRouteShowsAPassword: a password from any source is not printed or written, whatever error it causes.
func TestNoRouteShowsAPassword(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(file, []byte(testPassword+"\n"), 0o600))
	const run = "--message-count 3 --duration 10 --json out.json --hdr out.hdr --verify-file out.pv --metrics :0"
	for _, c := range []struct {
		name, args string
		env        []string
		status     int
		shows      string
	}{
		{"a URL as destination", "amqp client amqp://u:hunter2@h:5672/Q", nil, result.StatusUsage, "unknown kind \"amqp\""},
		{"a URL as one of many mistakes", "amqp client --rte 1 amqp://u:hunter2@h:5672/Q", nil, result.StatusUsage, "unknown flag: --rte"},
		{"a destination like a URL", "mem client queue://u:hunter2@h " + run, nil, result.StatusOK, "--- result:              success"},
		{"a topic like a URL", "mem client --shared 2 topic://u:hunter2@h " + run, nil, result.StatusOK, "--- result:              success"},
		{"a destination with settings", "mem client queue://Q?password=hunter2 " + run, nil, result.StatusOK, "--- result:              success"},
		{"an unreadable port", "amqp client --url amqp://u:hunter2@h:99999", nil, result.StatusUsage, "port \"99999\""},
		{"an unreadable escape", "amqp client --url amqp://u:hunter2%zz@h", nil, result.StatusUsage, "not percent-encoded correctly"},
		{"settings of a URL", "amqp client --url amqp://h?user=u&password=hunter2", nil, result.StatusUsage, "parameters"},
		{"a slash in the password", "amqp client --url amqp://u:hunter2/x@h/vhost", nil, result.StatusUsage, "error: "},
		{"no host", "stomp client --url stomp://u:hunter2@", nil, result.StatusUsage, "host"},
		{"no slashes", "rocketmq client --url rocketmq:u:hunter2@h", nil, result.StatusUsage, "no scheme"},
		{"no scheme", "amqp client --url u:hunter2@h:5672", nil, result.StatusUsage, "no scheme"},
		{"a list of hosts", "amqp client --url amqp://a:1,u:hunter2@b:2,c:x", nil, result.StatusUsage, "error: "},
		{"a URL in the environment", "amqp client", []string{"PERFMQ_URL=amqp://u:hunter2@h:x"}, result.StatusUsage, "port \"x\""},
		{"a dry run", "amqp client --dry-run --url amqp://u:hunter2@h --consumer-url stomp://v:hunter2@h", nil, result.StatusOK, "amqp://u@h"},
		{"a user with a password", "amqp client --dry-run --user app:hunter2", nil, result.StatusOK, "app:***"},
		{"properties with telling names", "mem client --dry-run --property api_token=hunter2 --property password=hunter2", nil, result.StatusOK, "password=***"},
		{"a mistyped flag", "amqp client --pasword=hunter2 --passwd hunter2", nil, result.StatusUsage, "unknown flag: --pasword"},
		{"a flag without a name", "amqp client --=hunter2", nil, result.StatusUsage, "a flag without a name"},
		{"a topic of the help", "amqp client --help=hunter2", nil, result.StatusUsage, "no such topic"},
		{"a flag of one letter", "amqp client --user u -phunter2", nil, result.StatusUsage, "unknown flag -p\n"},
		{"the password as another value", "amqp client --user u --password hunter2 --rate hunter2 hunter2 hunter2", nil, result.StatusUsage, "--rate=***"},
		{"a broker that echoes a file's", "alpha client --user app --password-file " + file, nil, result.StatusConnect, "who are you: app ***"},
		{"a broker that echoes the URL's", "alpha client --url alpha://app:hunter2-%25%2f%C3%A9@h", nil, result.StatusConnect, "who are you"},
		{"a broker of consumers that echoes", "mem client --consumer-url alpha://app:hunter2@h", nil, result.StatusConnect, "who are you"},
		{"the embedded broker", "broker --user hunter2 --listen-amqp hunter2", []string{"PERFMQ_PASSWORD=hunter2"}, result.StatusUsage, "--listen-amqp ***"},
		{"completion", "__complete amqp client --password hunter2 --url amqp://u:hunter2@h --rate", nil, result.StatusOK, ""},
		{"completion of what does not exist", "__complete amqp nothing --password hunter2 x", nil, result.StatusOK, ""},
		{"no such command", "amqp clint amqp://u:hunter2@h", nil, result.StatusUsage, "unknown command"},
		{"verify", "verify amqp://u:hunter2@h", nil, result.StatusUsage, "no such file or directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			outputs := t.TempDir()
			factories := append(testFactories()[:2], mem.With(drivers.All())...)
			factories[0].Open = echo
			got := callAs(Env{Args: strings.Fields(strings.ReplaceAll(c.args, "out.", outputs+"/out.")), Environ: c.env, Factories: factories})
			assert.Equal(t, c.status, got.status, got.stderr)
			assert.Contains(t, got.stdout+got.stderr, c.shows)
			requireNoSecret(t, "standard output", got.stdout)
			requireNoSecret(t, "standard error", got.stderr)
			files := musttest.Get(filepath.Glob(filepath.Join(outputs, "*")))(t)
			for _, name := range files {
				content := musttest.Get(os.ReadFile(name))(t)
				requireNoSecret(t, name, string(content))
			}
			assert.Equal(t, strings.Contains(c.args, "--json"), len(files) == 3, files)
		})
	}
}

// TestUserWithColon: a user is no secret, also with a colon in it, if a password is given beside it.
func TestUserWithColon(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   []string
		hidden bool
	}{
		{[]string{"--user", "Root:Key"}, true},
		{[]string{"--user", "Root:Key", "--password", "hunter2"}, false},
		{[]string{"--user", "Root:Key", "--password-file", "x"}, false},
	} {
		s := learnSecrets(c.args, config.Environment{})
		require.Equal(t, c.hidden, strings.Contains(s.Line("the Key is wrong"), "***"), c.args)
	}
}
