package cli

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
)

// What the console may look like.
const (
	formatArtemis  = "artemis"
	formatRocketMQ = "rocketmq"
)

func formats() []string { return []string{formatArtemis, formatRocketMQ} }

// outputs finds what is wrong with where the results shall go, without creating anything.
func (r *resolver) outputs() {
	r.outputFile("--json", r.jsonFile)
	r.outputFile("--hdr", r.hdrFile)
	if r.jsonFile != "" && samePath(r.jsonFile, r.hdrFile) {
		r.refuse("name two files", "--json and --hdr name the same file %s", r.jsonFile)
	}
	r.outputFile("--verify-file", r.verifyFile)
	for flag, path := range map[string]string{"--json": r.jsonFile, "--hdr": r.hdrFile} {
		if r.verifyFile != "" && samePath(r.verifyFile, path) {
			r.refuse("name two files", "--verify-file and %s name the same file %s", flag, path)
		}
	}
	if r.silent && r.showLatency && r.origins["silent"].flag && r.origins["show-latency"].flag {
		r.refuse("leave one of them out", "--silent prints nothing, --show-latency prints more")
	}
	if r.format == formatRocketMQ && r.showLatency && r.origins["format"].flag && r.origins["show-latency"].flag {
		r.refuse("leave one of them out; --json and --hdr have the latencies of every second",
			"--show-latency has no place in the lines of --format rocketmq")
	}
	if r.metricsAddr == "" {
		if r.metricsLinger > 0 {
			r.refuse("add --metrics HOST:PORT", "--metrics-linger has nothing to serve")
		}
		return
	}
	_, port, err := net.SplitHostPort(r.metricsAddr)
	if n, numErr := strconv.ParseUint(port, 10, 16); err != nil || numErr != nil || n == 0 {
		r.refuse("write HOST:PORT such as 127.0.0.1:9400", "--metrics %s is no address to listen on", quoted(r.metricsAddr))
	}
}

func (r *resolver) outputFile(flag, path string) {
	if path == "" {
		return
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		r.refuse("name a file in it", "%s %s is a folder", flag, path)
		return
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil {
		r.refuse("create it first: mkdir -p "+folder, "%s %s: there is no folder %s", flag, path, folder)
	} else if !info.IsDir() {
		r.refuse("name a file in a folder", "%s %s: %s is no folder", flag, path, folder)
	}
}

func samePath(a, b string) bool {
	if b == "" {
		return false
	}
	a1, err1 := filepath.Abs(a)
	b1, err2 := filepath.Abs(b)
	return err1 == nil && err2 == nil && a1 == b1
}

// reporters opens the outputs. If one cannot be opened, those that were are closed again.
func (s *settings) reporters(p *plan.Plan, stdout io.Writer, version string, onError func(error)) (*report.Fan, error) {
	var list []report.Reporter
	var errs []error
	add := func(r report.Reporter, err error) {
		if err != nil {
			errs = append(errs, err)
			return
		}
		list = append(list, r)
	}
	options := report.ConsoleOptions{URL: plan.RedactURL(p.Endpoints()[0].Open.URL), ShowLatency: s.showLatency}
	switch {
	case s.silent:
	case s.format == formatRocketMQ:
		add(report.NewRocketMQ(stdout, options), nil)
	default:
		add(report.NewConsole(stdout, options), nil)
	}
	if s.jsonFile != "" {
		r, err := report.NewJSON(s.jsonFile)
		add(r, err)
	}
	if s.hdrFile != "" {
		r, err := report.NewHDR(s.hdrFile)
		add(r, err)
	}
	if s.metricsAddr != "" {
		r, err := report.NewPrometheus(s.metricsAddr, version)
		add(r, err)
	}
	fan := report.NewFan(list...)
	if len(errs) > 0 {
		errs = append(errs, fan.Close())
		return nil, errors.Join(errs...)
	}
	fan.OnError = onError
	return fan, nil
}
