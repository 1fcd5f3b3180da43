//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
)

// The test binary is perfmq and make for the shells of the pages: see documented.
const (
	envBinary = "DOCS_PERFMQ"  // the program
	envURL    = "DOCS_URL_"    // and AMQP, STOMP, ROCKETMQ: the broker at that protocol's default port
	envListen = "DOCS_LISTEN_" // the same and CONTROL: where perfmq broker listens
	envSpace  = "DOCS_SPACE"   // begins the names of destinations on a broker that pages share
	envShort  = "DOCS_SHORTEN" // true: seconds instead of minutes
	envDryRun = "DOCS_DRY_RUN" // true: --dry-run
)

var defaultAddresses = map[string]string{"AMQP": "localhost:5672", "STOMP": "localhost:61613", "ROCKETMQ": "localhost:9876"}

// shell is where the commands of a page run.
type shell struct {
	where   machine
	dir     string
	env     []string
	space   string
	control string            // address of the control of perfmq broker
	ports   map[string]string // documented address, or command: the one in use
}

func newShell(t *testing.T, where machine, name string) *shell {
	t.Helper()
	require.NoError(t, buildErr)
	root := musttest.Get(filepath.Abs("../.."))(t)
	sh := &shell{where: where, dir: t.TempDir(), ports: map[string]string{}}
	bin := t.TempDir()
	self := musttest.Get(os.Executable())(t)
	path := os.Getenv("PATH")
	tool := "perfmq"
	if where == fresh {
		tool = "make"
	}
	require.NoError(t, os.Symlink(self, filepath.Join(bin, tool)))
	sh.env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PERFMQ_") && !strings.HasPrefix(v, "PERFMQ_TEST_") })
	sh.set("PATH", bin+":"+path)
	sh.set(envBinary, binary)
	sh.set("PERFMQ_CONNECT_TIMEOUT", connectPatience.String())
	if where == fresh {
		sh.fresh(t, root)
		return sh
	}
	sh.ownBrokers(t, root)
	free := freeAddresses(t, 6)
	sh.control = free[3]
	sh.ports = map[string]string{
		"localhost:8162": free[3], "127.0.0.1:8162": free[3], "127.0.0.1:8443": free[5], "127.0.0.1:9400": free[4], " :9400": " " + free[4],
		"go run ./internal/": "go -C " + root + " run ./internal/",
	}
	for i, protocol := range []string{"AMQP", "STOMP", "ROCKETMQ"} {
		sh.set(envListen+protocol, free[i])
		sh.set(envURL+protocol, strings.ToLower(protocol)+"://"+free[i])
	}
	sh.set(envListen+"CONTROL", free[3])
	if where == withArtemis {
		certs := musttest.Get(brokertest.NewCerts(t.TempDir()))(t)
		for name, file := range map[string]string{"ca.pem": certs.CAFile, "me.pem": certs.ClientCertFile, "me.key": certs.ClientKeyFile} {
			require.NoError(t, os.Link(file, filepath.Join(sh.dir, name)))
		}
		a := shared.Artemis(t)
		sh.space = "docs-" + strings.TrimSuffix(filepath.Base(name), ".md") + "-" // RocketMQ allows no points
		sh.set(envSpace, sh.space)
		sh.set(envURL+"AMQP", a.AMQPURL())
		sh.set(envURL+"STOMP", a.STOMPURL())
		start(t, "broker", "--listen-amqp", "off", "--listen-stomp", "off", "--listen-rocketmq", free[2], "--control", "off").printed("rocketmq  ")
	}
	return sh
}

func (sh *shell) set(key, value string) { sh.env = append(sh.env, key+"="+value) }

// fresh sets up a user with the checkout and Go before the first run. The caches of Go and of fetched brokers remain in
// use: tests do not compile and download everything each time.
func (sh *shell) fresh(t *testing.T, root string) {
	t.Helper()
	sh.dir = root
	home := t.TempDir()
	cache := musttest.Get(os.UserCacheDir())(t)
	if os.Getenv("PERFMQ_TEST_CACHE") == "" {
		sh.set("PERFMQ_TEST_CACHE", filepath.Join(cache, "perfmq-brokertest"))
	}
	for _, key := range []string{"GOCACHE", "GOMODCACHE"} {
		out := musttest.Get(exec.Command("go", "env", key).Output())(t)
		sh.set(key, strings.TrimSpace(string(out)))
	}
	sh.set("CGO_ENABLED", "0") // also under the race detector
	sh.set("GOPATH", "")
	sh.set("GOBIN", "")
	sh.set("HOME", home)
	sh.ownBrokers(t, root)
}

// ownBrokers lets the page start a broker of the harness, and stops it if the page has not.
func (sh *shell) ownBrokers(t *testing.T, root string) {
	t.Helper()
	dir := t.TempDir()
	sh.set("TMPDIR", dir) // where -stop looks for brokers
	t.Cleanup(func() {
		if left, _ := filepath.Glob(filepath.Join(dir, brokertest.DirPrefix+"*")); left == nil {
			return
		}
		cmd := exec.Command("go", "run", "./internal/brokertest/cmd/broker", "-stop")
		cmd.Dir, cmd.Env = root, sh.env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
}

// onItsPorts replaces addresses of a page by the test's; documented does so in arguments of perfmq.
func (sh *shell) onItsPorts(text string) string {
	for documented, used := range sh.ports {
		text = strings.ReplaceAll(text, documented, used)
	}
	return text
}

// onDefaultPorts is the reverse, for outputs.
func (sh *shell) onDefaultPorts(text string) string {
	for _, v := range sh.env {
		key, value, _ := strings.Cut(v, "=")
		for protocol, documented := range defaultAddresses {
			if key == envURL+protocol || key == envListen+protocol {
				_, address, _ := strings.Cut("//"+value, "//")
				address = address[strings.LastIndex(address, "/")+1:]
				text = strings.ReplaceAll(text, address, strings.Replace(documented, "localhost", "127.0.0.1", 1))
			}
		}
	}
	if sh.control != "" {
		text = strings.ReplaceAll(text, sh.control, "127.0.0.1:8162")
	}
	if sh.space != "" {
		text = strings.ReplaceAll(text, sh.space, "")
	}
	return text
}

// documented is perfmq or make for a page: the real one, with other ports, names and lengths.
func documented(args []string) error {
	env := os.Environ()
	if filepath.Base(args[0]) == "make" {
		return target(args[1:])
	}
	args = slices.Clone(args)
	if os.Getenv(envShort) == "true" {
		shorten(args)
	}
	if len(args) > 1 {
		args, env = onTestBroker(args, env)
	}
	if os.Getenv(envDryRun) == "true" {
		args = append(args, "--dry-run")
	}
	if os.Getenv(envShort) == "true" && (slices.Contains(args, "--threshold") || slices.Contains(args, "--find-max") || args[1] == "run") {
		return unlessThreshold(args, env)
	}
	return syscall.Exec(os.Getenv(envBinary), args, env)
}

// unlessThreshold runs perfmq and ends as it does, but takes missed thresholds and undecided searches, of a run of a
// second on a busy machine, for a success.
func unlessThreshold(args, env []string) error {
	cmd := exec.Command(os.Getenv(envBinary), args[1:]...) //nolint:noctx // the shell has the deadline
	cmd.Env, cmd.Stdout, cmd.Stderr = env, os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return err
	}
	status := cmd.ProcessState.ExitCode()
	if status == statusThreshold || status == statusUndecided {
		status = statusOK
	}
	os.Exit(status) //nolint:forbidigo // a tool in the shell of a page
	return nil
}

var documentedURL = regexp.MustCompile(`^([a-z+]+)://(localhost|broker)(:[0-9]+)?$`)

// onTestBroker gives a command the broker and the destinations of this test.
func onTestBroker(args, env []string) ([]string, []string) {
	protocol := strings.ToUpper(args[1])
	if args[1] == "broker" {
		for _, l := range []string{"AMQP", "STOMP", "ROCKETMQ"} {
			args = append(args, "--listen-"+strings.ToLower(l), os.Getenv(envListen+l))
		}
		return append(args, "--control", os.Getenv(envListen+"CONTROL")), env
	}
	if url := os.Getenv(envURL + protocol); url != "" && !slices.Contains(args, "--embedded") {
		env = append(env, "PERFMQ_URL="+url)
	}
	for i, arg := range args {
		if m := documentedURL.FindStringSubmatch(arg); m != nil {
			scheme := strings.ToUpper(m[1])
			if scheme == "TCP" { // the port of Artemis for all protocols
				scheme = "AMQP"
			}
			if url := os.Getenv(envURL + scheme); url != "" {
				args[i] = url
			}
		}
		for _, kind := range []string{"queue://", "topic://"} {
			if name, ok := strings.CutPrefix(arg, kind); ok {
				args[i] = kind + os.Getenv(envSpace) + name
			}
		}
	}
	return args, env
}

// shorten limits the lengths and counts of a run.
func shorten(args []string) {
	for i := 1; i < len(args); i++ {
		switch args[i-1] {
		case "--duration":
			args[i] = shorter(args[i], time.Second)
		case "--warmup":
			args[i] = shorter(args[i], 500*time.Millisecond)
		case "--message-count":
			if n, err := strconv.Atoi(args[i]); err == nil {
				args[i] = strconv.Itoa(min(n, 2000))
			}
		}
	}
}

func shorter(text string, most time.Duration) string {
	d, err := time.ParseDuration(text)
	if seconds, serr := strconv.ParseFloat(text, 64); serr == nil {
		d, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || d < most {
		return text
	}
	return most.String()
}

// target is make, but only shows that the target test exists: this test is part of it.
func target(args []string) error {
	path := os.Getenv("PATH")
	_, rest, _ := strings.Cut(path, ":")
	if err := os.Setenv("PATH", rest); err != nil {
		return err
	}
	made, err := exec.LookPath("make")
	if err != nil {
		return err
	}
	if slices.Equal(args, []string{"test"}) {
		args = []string{"-n", "test"}
	}
	return syscall.Exec(made, append([]string{"make"}, args...), os.Environ())
}
