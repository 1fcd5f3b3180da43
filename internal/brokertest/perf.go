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

// command returns a program that gets SIGTERM at the end of the context, and is killed five seconds later.
func command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // the harness's own
	cmd.SysProcAttr = sysProcAttr()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// PerfCommand returns the distribution's own load tool, ready to run against this
// broker: `artemis perf ROLE ARGS...` with a heap of 256M. The broker's URL (for
// --protocol AMQP the AMQP one) and the admin's login are added unless --url or --user
// is among the arguments; for example
//
//	a.PerfCommand(ctx, "client", "--protocol", "AMQP", "--duration", "2", "queue://A").CombinedOutput()
//
// It ends with the context.
func (a *Artemis) PerfCommand(ctx context.Context, role string, args ...string) *exec.Cmd {
	full := []string{"perf", role}
	if !slices.Contains(args, "--url") {
		brokerURL := a.CoreURL()
		if i := slices.Index(args, "--protocol"); i >= 0 && args[i+1] == "AMQP" {
			brokerURL = a.AMQPURL()
		}
		full = append(full, "--url", brokerURL)
	}
	if !slices.Contains(args, "--user") {
		full = append(full, "--user", User, "--password", Password)
	}
	cmd := command(ctx, filepath.Join(a.home, "bin", "artemis"), append(full, args...)...)
	// As in the artemis.profile of an instance: without --add-opens the tool's clock has whole milliseconds, and its
	// consumer fails on, and so receives again, each message that arrives within the millisecond of its sending.
	cmd.Env = append(os.Environ(), "JAVA_ARGS="+strings.Join(append(jvm(), "-Xms64M", "-Xmx256M", "--add-opens",
		"java.base/jdk.internal.misc=ALL-UNNAMED"), " "))
	return cmd
}

// ArtemisPerf is [Artemis.PerfCommand] for a broker that is not an Artemis: the distribution is fetched if need be, no
// broker is started. --url is to be among the arguments.
func ArtemisPerf(ctx context.Context, role string, args ...string) (*exec.Cmd, error) {
	home, err := mavenUnpacked(ctx, ArtemisCoordinates)
	if err != nil {
		return nil, err
	}
	return (&Artemis{home: home}).PerfCommand(ctx, role, args...), nil
}

// RocketMQCommand returns a class of RocketMQ's distribution, such as its benchmarks, or a source file, ready to run
// against any name server. Its logs go to dir. It ends with the context. The first time on a machine the distribution
// is fetched.
func RocketMQCommand(ctx context.Context, dir, nameServer, class string, args ...string) (*exec.Cmd, error) {
	java, err := javaPath()
	if err != nil {
		return nil, err
	}
	lib, err := rocketLib(ctx, &rocketConfig{version: RocketMQVersion})
	if err != nil {
		return nil, err
	}
	return rocketCommand(ctx, java, filepath.Join(lib, "*"), dir, nameServer, class, args), nil
}

func rocketCommand(
	ctx context.Context, java, classPath, dir, nameServer, class string, args []string,
) *exec.Cmd {
	full := append(jvm(), "-Xms128m", "-Xmx512m", "-Duser.home="+dir, "-Drocketmq.home.dir="+dir,
		"-Drocketmq.client.logUseSlf4j=true", "-Drocketmq.namesrv.addr="+nameServer, "-classpath", classPath, class)
	return command(ctx, java, append(full, args...)...)
}

// Command returns a class of the distribution, ready to run against this broker, such as a benchmark of
// org.apache.rocketmq.example.benchmark. It ends with the context.
func (r *RocketMQ) Command(ctx context.Context, class string, args ...string) *exec.Cmd {
	jars, home := filepath.Join(r.lib, "*"), filepath.Join(r.dir, "tools-home")
	return rocketCommand(ctx, r.java, jars, home, r.NameServer(), class, args)
}

// JavaProgram returns a program in one source file, ready to run with the libraries of the distribution: the broker's
// own JMS client, and Qpid JMS. It ends with the context.
func (a *Artemis) JavaProgram(ctx context.Context, source string, args ...string) *exec.Cmd {
	return javaProgram(ctx, a.java, filepath.Join(a.home, "lib", "*"), source, args)
}

// JavaProgram is [Artemis.JavaProgram] with the JMS client of ActiveMQ Classic.
func (a *ActiveMQ) JavaProgram(ctx context.Context, source string, args ...string) *exec.Cmd {
	lib := filepath.Join(a.home, "lib")
	jars := filepath.Join(lib, "*") + string(os.PathListSeparator) + filepath.Join(lib, "optional", "*")
	return javaProgram(ctx, a.java, jars, source, args)
}

// ArtemisJavaProgram is [Artemis.JavaProgram] without a broker.
func ArtemisJavaProgram(ctx context.Context, source string, args ...string) (*exec.Cmd, error) {
	home, err := mavenUnpacked(ctx, ArtemisCoordinates)
	if err != nil {
		return nil, err
	}
	java, err := javaPath()
	return (&Artemis{home: home, daemon: daemon{java: java}}).JavaProgram(ctx, source, args...), err
}

func javaProgram(ctx context.Context, java, classPath, source string, args []string) *exec.Cmd {
	full := append(jvm(), "-Xmx256m", "-classpath", classPath, source)
	return command(ctx, java, append(full, args...)...)
}
