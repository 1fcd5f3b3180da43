//go:build unix

package brokertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ArtemisJava compiles a Java source against the libraries of Artemis's distribution, among them the JMS clients of
// Artemis and of Qpid, into dir, and returns the command that runs its class with a heap of 256M. file is the name of
// the source, CLASS.java. The broker need not be an Artemis: none is started. The first time on a machine it fetches
// the distribution.
func ArtemisJava(ctx context.Context, dir, file string, args ...string) (*exec.Cmd, error) {
	home, err := mavenUnpacked(ctx, ArtemisCoordinates)
	if err != nil {
		return nil, err
	}
	java, err := javaPath()
	if err != nil {
		return nil, err
	}
	if java, err = filepath.EvalSymlinks(java); err != nil {
		return nil, fmt.Errorf("compile %s: %w", file, err)
	}
	libs := filepath.Join(home, "lib", "*")
	javac := filepath.Join(filepath.Dir(java), "javac")
	compile := exec.CommandContext(ctx, javac, "-proc:none", "-d", dir, "-classpath", libs, file) //nolint:gosec // ours
	out, err := compile.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("compile %s with %s (a JDK, not only a Java runtime, is needed): %w: %s", file, javac, err,
			lastLines(string(out), 10))
	}
	class := strings.TrimSuffix(filepath.Base(file), ".java")
	path := dir + string(os.PathListSeparator) + libs
	arguments := append(append(jvm(), "-Xmx256M", "-classpath", path, class), args...)
	cmd := exec.CommandContext(ctx, java, arguments...) //nolint:gosec // likewise
	cmd.SysProcAttr = sysProcAttr()
	return cmd, nil
}
