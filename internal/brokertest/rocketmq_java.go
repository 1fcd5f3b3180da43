//go:build unix

package brokertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// classes is the folder of the classes that [RocketMQ.Compile] compiled.
func (r *RocketMQ) classes() string { return filepath.Join(r.dir, "classes") }

// JavaCommand returns the program and arguments that run a class of the
// distribution, such as its benchmarks (org.apache.rocketmq.example.benchmark.*)
// and its admin tool (org.apache.rocketmq.tools.command.MQAdminStartup), or one
// that [RocketMQ.Compile] compiled, with their folder for logs within the broker's.
func (r *RocketMQ) JavaCommand(class string, args ...string) []string {
	path := filepath.Join(r.lib, "*") + string(os.PathListSeparator) + r.classes()
	full := append([]string{r.java}, jvm()...)
	full = append(full, "-Xms128m", "-Xmx512m", "-Duser.home="+filepath.Join(r.dir, "tools-home"), "-Drocketmq.home.dir="+
		r.dir,
		"-Drocketmq.namesrv.addr="+r.NameServer(), "-classpath", path, class)
	return append(full, args...)
}

// Compile compiles a Java source against the distribution, with the javac beside
// the java that runs it. name is the name of the file, which ends with .java.
func (r *RocketMQ) Compile(ctx context.Context, name string, source []byte) error {
	java, err := filepath.EvalSymlinks(r.java)
	if err != nil {
		return fmt.Errorf("compile %s: %w", name, err)
	}
	if err := os.MkdirAll(r.classes(), 0o700); err != nil {
		return fmt.Errorf("compile %s: %w", name, err)
	}
	file := filepath.Join(r.dir, name)
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return fmt.Errorf("compile %s: %w", name, err)
	}
	javac := filepath.Join(filepath.Dir(java), "javac")
	cmd := exec.CommandContext(ctx, javac, "-proc:none", "-d", r.classes(), //nolint:gosec // the harness's own
		"-classpath", filepath.Join(r.lib, "*"), file)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s with %s (a JDK, not only a Java runtime, is needed): %w: %s", name, javac, err,
			lastLines(string(out), 10))
	}
	return nil
}
