//go:build unix

package brokertest

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Prometheus is a real Prometheus server (the Debian package prometheus), on loopback, with a storage of its own.
type Prometheus struct {
	dir, config string
	port        int
	claims      daemon // keeps the port until this process ends
	args        []string
	proc        *process
}

// prometheusReady is a line of its log.
const prometheusReady = "Server is ready to receive web requests"

// StartPrometheus starts a Prometheus with a configuration file for one test and ends it with the test. More arguments,
// such as --enable-feature=native-histograms, are passed on.
func StartPrometheus(tb testing.TB, config string, args ...string) *Prometheus {
	tb.Helper()
	Needs(tb, "Prometheus")
	p, err := LaunchPrometheus(tb.Context(), tb.TempDir(), config, args...)
	if err != nil {
		tb.Fatalf("this test needs Prometheus: %v", err)
	}
	tb.Cleanup(func() {
		if err := p.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// LaunchPrometheus starts one that keeps its files in dir. The caller stops it, also after an error.
func LaunchPrometheus(ctx context.Context, dir, config string, args ...string) (*Prometheus, error) {
	p := &Prometheus{dir: dir, config: config, args: args}
	return p, p.Start(ctx)
}

// Start starts it, the first time on any free port, then on the same one.
func (p *Prometheus) Start(ctx context.Context) error {
	path, err := exec.LookPath("prometheus")
	if err != nil {
		return fmt.Errorf("find prometheus: %w; Debian: RUNLEVEL=1 apt-get install --no-install-recommends prometheus", err)
	}
	if p.port == 0 {
		for try := 1; ; try++ { // a stranger may take the port first
			ports, err := p.claims.pickPorts(0)
			if err != nil {
				return err
			}
			p.port = ports[0]
			if err = p.launch(ctx, path); err == nil || try == 3 || ctx.Err() != nil {
				return err
			}
		}
	}
	return p.launch(ctx, path)
}

func (p *Prometheus) launch(ctx context.Context, path string) (err error) {
	p.proc, err = startProcess(ctx, processSpec{
		name: "prometheus", path: path, dir: p.dir, logFile: filepath.Join(p.dir, "prometheus.log"),
		ready: prometheusReady, timeout: time.Minute, hint: "Debian's package prometheus",
		args: append([]string{
			"--config.file=" + p.config, "--storage.tsdb.path=" + filepath.Join(p.dir, "data"),
			"--web.listen-address=" + net.JoinHostPort(loopback, strconv.Itoa(p.port)),
		}, p.args...),
	})
	return err
}

// Stop ends it, as an operator does. The scraped samples are kept.
func (p *Prometheus) Stop() error { return p.proc.stop(20 * time.Second) }

// URL returns where it answers queries.
func (p *Prometheus) URL() string {
	return "http://" + net.JoinHostPort(loopback, strconv.Itoa(p.port))
}
