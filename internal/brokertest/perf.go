//go:build unix

package brokertest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// PerfCommand returns the distribution's own load tool, ready to run against this
// broker: `artemis perf ROLE ARGS...` with a heap of 256M. The broker's URL (for
// --protocol AMQP the AMQP one) and the admin's login are added unless they are
// among the arguments; for example
//
//	a.PerfCommand(ctx, "client", "--protocol", "AMQP", "--duration", "2", "queue://A").CombinedOutput()
//
// At the end of the context it gets SIGTERM, and is killed five seconds later.
func (a *Artemis) PerfCommand(ctx context.Context, role string, args ...string) *exec.Cmd {
	full := []string{"perf", role}
	if !hasFlag(args, "--url") {
		brokerURL := a.CoreURL()
		if strings.EqualFold(flagValue(args, "--protocol"), "AMQP") {
			brokerURL = a.AMQPURL()
		}
		full = append(full, "--url", brokerURL)
	}
	if !hasFlag(args, "--user") {
		full = append(full, "--user", User, "--password", Password)
	}
	return a.Command(ctx, append(full, args...)...)
}

// Command returns the distribution's `artemis` command line tool with the given
// arguments and a heap of 256M, for operations that have no method here.
func (a *Artemis) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(a.home, "bin", "artemis"), args...)
	// As in the artemis.profile of an instance: without --add-opens the tool's clock has whole milliseconds, and its
	// consumer fails on, and so receives again, each message that arrives within the millisecond of its sending.
	cmd.Env = append(os.Environ(), "JAVA_ARGS="+strings.Join(append(jvm(), "-Xms64M", "-Xmx256M", "--add-opens",
		"java.base/jdk.internal.misc=ALL-UNNAMED"), " "))
	cmd.SysProcAttr = sysProcAttr()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// JavaCommand returns `java -cp JARS CLASS ARGS...` with a heap of 256M. The jars
// come from [MavenJar].
func JavaCommand(ctx context.Context, jars []string, class string, args ...string) (*exec.Cmd, error) {
	java, err := javaPath()
	if err != nil {
		return nil, err
	}
	classpath := strings.Join(jars, string(filepath.ListSeparator))
	cmd := exec.CommandContext(ctx, java, append(append(jvm(), "-Xmx256M", "-cp", classpath, class), args...)...)
	cmd.SysProcAttr = sysProcAttr()
	return cmd, nil
}

func hasFlag(args []string, name string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return a == name || strings.HasPrefix(a, name+"=") })
}

func flagValue(args []string, name string) string {
	for i, a := range args {
		if value, found := strings.CutPrefix(a, name+"="); found {
			return value
		}
		if a == name && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}
