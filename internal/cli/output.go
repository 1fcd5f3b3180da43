package cli

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// outputs checks the paths of the outputs, without creating anything.
func (r *resolver) outputs(stdout, stderr io.Writer) {
	r.outputFile("--json", r.JSONFile)
	r.outputFile("--hdr", r.HDRFile)
	r.outputFile("--verify-file", r.VerifyFile)
	r.resultFolder()
	r.differentFiles(stdout, stderr)
	if r.Silent && r.ShowLatency && r.Source("silent") == setting.CommandLine && r.Source(
		"show-latency") == setting.CommandLine {
		r.refuse("leave one of them out", "--silent prints nothing, --show-latency prints more")
	}
	if r.Format == run.RocketMQ && r.ShowLatency && r.Source("format") == setting.CommandLine && r.Source(
		"show-latency") == setting.CommandLine {
		r.refuse("leave one of them out; --json and --hdr have the latencies of every second",
			"--format rocketmq has no lines for --show-latency")
	}
	if r.Has("interval") && r.Interval < time.Second {
		r.refuse("give 1s or more", "--interval %v: the shortest interval is one second", r.Interval)
	}
	if r.WebAddr != "" {
		if err := listen.Check(r.WebAddr); err != nil {
			r.refuse("write HOST:PORT such as 127.0.0.1:8080, or :8080 for the same", "--web %s: %v", setting.Quoted(r.WebAddr),
				err)
		}
	}
	if r.MetricsAddr == "" {
		if r.MetricsLinger > 0 {
			r.refuse("add --metrics HOST:PORT", "--metrics-linger needs --metrics")
		}
		if r.MetricsWeb != "" {
			r.refuse("add --metrics HOST:PORT", "--metrics-web-config has nothing to serve")
		}
		return
	}
	if _, err := listen.ReadWeb(r.MetricsWeb); err != nil {
		r.refuse(cmp.Or(driver.HintOf(err), "name a file that can be read"), "--metrics-web-config: %v", err)
	}
	if err := listen.Check(r.MetricsAddr); err != nil {
		r.refuse("write HOST:PORT such as 127.0.0.1:9400, or :9400 for the same", "--metrics %s: %v",
			setting.Quoted(r.MetricsAddr), err)
	}
}

func (r *resolver) outputFile(flag, path string) {
	if path == "" || path == run.Standard && flag == "--json" {
		return
	}
	if path == run.Standard {
		r.refuse("name a file, which may be ./-", "%s -: only --json writes to standard output", flag)
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

// resultFolder checks the folder of the result.
func (r *resolver) resultFolder() {
	dir := r.ResultDir
	if dir == "" {
		return
	}
	if r.VerifyFile != "" {
		r.refuse("give --verify with it instead",
			"--result keeps this side of the verification in its folder, and --verify-file in %s", r.VerifyFile)
	}
	switch info, err := os.Stat(dir); {
	case err != nil:
		r.outputFile("--result", dir)
	case !info.IsDir():
		r.refuse("name a folder", "--result %s is a file", dir)
	default:
		if err := result.Vacant(dir); err != nil {
			r.refuse("name another folder, or remove this one", "--result %s: %v", dir, err)
		}
	}
}

// differentFiles refuses to write two outputs into one file, or over an input. Standard output and standard error may
// share one.
func (r *resolver) differentFiles(stdout, stderr io.Writer) {
	files := []namedFile{openFile("standard error", stderr)}
	if !r.Silent {
		files = append(files, openFile("standard output", stdout))
	}
	standard := len(files)
	if inputfile.IsFolder(r.BodyFile) {
		bodies, _ := inputfile.Folder(r.BodyFile, driver.MaxVariants) // errors are already reported
		for _, path := range bodies {
			files = append(files, nameFile("--body-file", path, false))
		}
	}
	for _, f := range []struct {
		flag, path string
		output     bool
	}{
		{"--password-file", r.PasswordFile, false},
		{"--body-file", r.BodyFile, false},
		{"--tls-ca", r.TLS.CAFile, false},
		{"--tls-cert", r.TLS.CertFile, false},
		{"--tls-key", r.TLS.KeyFile, false},
		{"--metrics-web-config", r.MetricsWeb, false},
		{"--json", r.JSONFile, true},
		{"--hdr", r.HDRFile, true},
		{"--verify-file", r.VerifyFile, true},
	} {
		if f.path != "" && (f.path != run.Standard || f.flag != "--json") {
			files = append(files, nameFile(f.flag, f.path, f.output))
		}
	}
	if r.ResultDir != "" {
		for _, name := range result.Files() {
			files = append(files, nameFile("--result", filepath.Join(r.ResultDir, name), true))
		}
	}
	sameFiles(files, func(a, b *namedFile) {
		if b.output && b != &files[standard-1] { // redirecting both streams, or one over an input, is deliberate
			r.refuse("name two files", "%s and %s name the same file %s", a.flag, b.flag, b.path)
		}
	})
}
