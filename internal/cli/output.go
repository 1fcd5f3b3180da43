package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/plan"
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
	if m := noOutputFile(flag, path); m != nil {
		r.refuse(m.Hint, "%s", m.Text)
	}
}

// noOutputFile says why a file cannot be made; nil if nothing is known against it.
func noOutputFile(flag, path string) *plan.Mistake {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &plan.Mistake{Text: fmt.Sprintf("%s %s is a folder", flag, path), Hint: "name a file in it"}
	}
	return noPlace(flag, path, "name a file in a folder")
}

// noPlace says why nothing can be made at a path: a file is in place of one of its folders. Missing folders are made.
func noPlace(flag, path, hint string) *plan.Mistake {
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		switch {
		case err == nil && !info.IsDir():
			return &plan.Mistake{Text: fmt.Sprintf("%s %s: %s is no folder", flag, path, folder), Hint: hint}
		case err == nil, folder == filepath.Dir(folder):
			return nil
		}
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
	if m := noResultFolder(dir); m != nil {
		r.refuse(m.Hint, "%s", m.Text)
	}
}

// noResultFolder says why a folder cannot become that of a result; nil if nothing is known against it.
func noResultFolder(dir string) *plan.Mistake {
	switch info, err := os.Stat(dir); {
	case dir == run.Standard:
		return &plan.Mistake{
			Text: "--result -: only --json writes to standard output", Hint: "name a folder, which may be ./-",
		}
	case err != nil:
		return noPlace("--result", dir, "name a new folder in a folder")
	case !info.IsDir():
		return &plan.Mistake{Text: fmt.Sprintf("--result %s is a file", dir), Hint: "name a folder"}
	}
	if err := result.Vacant(dir); err != nil {
		return &plan.Mistake{
			Text: fmt.Sprintf("--result %s: %v", dir, err),
			Hint: "name another folder, or remove this one",
		}
	}
	return nil
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
