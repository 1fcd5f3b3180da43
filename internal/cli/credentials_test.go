package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

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
				require.Equal(t, exitUsage, status, stderr.String())
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
