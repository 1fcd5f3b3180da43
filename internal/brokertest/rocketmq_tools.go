//go:build unix

package brokertest

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// RocketMQCommand returns a class of RocketMQ's distribution, such as its benchmarks, ready to run against any name
// server: see [RocketMQ.Command] for one on a broker of the harness. Its logs go to dir. At the end of the context it
// gets SIGTERM, and is killed five seconds later. The first time on a machine it fetches the distribution.
func RocketMQCommand(ctx context.Context, dir, nameServer, class string, args ...string) (*exec.Cmd, error) {
	java, err := javaPath()
	if err != nil {
		return nil, err
	}
	lib, err := rocketLib(ctx, RocketMQVersion)
	if err != nil {
		return nil, err
	}
	full := append(jvm(), "-Xms128m", "-Xmx512m", "-Duser.home="+dir, "-Drocketmq.home.dir="+dir,
		"-Drocketmq.client.logUseSlf4j=true", "-Drocketmq.namesrv.addr="+nameServer, "-classpath", filepath.Join(lib, "*"),
		class)
	cmd := exec.CommandContext(ctx, java, append(full, args...)...) //nolint:gosec // the harness's own
	cmd.SysProcAttr = sysProcAttr()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd, nil
}
