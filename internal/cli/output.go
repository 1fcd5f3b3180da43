package cli

import (
	"io"
	"os"
	"path/filepath"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

func formats() []string { return []string{run.Artemis, run.RocketMQ} }

// outputs finds what is wrong with where the results shall go, without creating anything.
func (r *resolver) outputs(stdout, stderr io.Writer) {
	r.outputFile("--json", r.jsonFile)
	r.outputFile("--hdr", r.hdrFile)
	r.outputFile("--verify-file", r.verifyFile)
	r.resultFolder()
	r.differentFiles(stdout, stderr)
	if r.silent && r.showLatency && r.origins["silent"].flag && r.origins["show-latency"].flag {
		r.refuse("leave one of them out", "--silent prints nothing, --show-latency prints more")
	}
	if r.format == run.RocketMQ && r.showLatency && r.origins["format"].flag && r.origins["show-latency"].flag {
		r.refuse("leave one of them out; --json and --hdr have the latencies of every second",
			"--show-latency has no place in the lines of --format rocketmq")
	}
	if r.metricsAddr == "" {
		if r.metricsLinger > 0 {
			r.refuse("add --metrics HOST:PORT", "--metrics-linger has nothing to serve")
		}
		return
	}
	if err := listen.Check(r.metricsAddr); err != nil {
		r.refuse("write HOST:PORT such as 127.0.0.1:9400, or :9400 for the same", "--metrics %s: %v", quoted(r.metricsAddr), err)
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

// resultFolder finds what is wrong with the folder of the result.
func (r *resolver) resultFolder() {
	dir := r.resultDir
	if dir == "" {
		return
	}
	if r.verifyFile != "" {
		r.refuse("give --verify with it instead",
			"--result keeps this side of the verification in its folder, and --verify-file in %s", r.verifyFile)
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

// differentFiles refuses to write two outputs into one file, or over an input. Standard output and standard error may share one.
func (r *resolver) differentFiles(stdout, stderr io.Writer) {
	files := []namedFile{openFile("standard error", stderr)}
	if !r.silent {
		files = append(files, openFile("standard output", stdout))
	}
	standard := len(files)
	if inputfile.IsFolder(r.bodyFile) {
		bodies, _ := inputfile.Folder(r.bodyFile, driver.MaxVariants) // which was reported
		for _, path := range bodies {
			files = append(files, nameFile("--body-file", path, false))
		}
	}
	for _, f := range []struct {
		flag, path string
		output     bool
	}{
		{"--password-file", r.passwordFile, false},
		{"--body-file", r.bodyFile, false},
		{"--tls-ca", r.tls.CAFile, false},
		{"--tls-cert", r.tls.CertFile, false},
		{"--tls-key", r.tls.KeyFile, false},
		{"--json", r.jsonFile, true},
		{"--hdr", r.hdrFile, true},
		{"--verify-file", r.verifyFile, true},
	} {
		if f.path != "" {
			files = append(files, nameFile(f.flag, f.path, f.output))
		}
	}
	if r.resultDir != "" {
		for _, name := range result.Files() {
			files = append(files, nameFile("--result", filepath.Join(r.resultDir, name), true))
		}
	}
	sameFiles(files, func(a, b *namedFile) {
		if b.output && b != &files[standard-1] { // whoever redirects both, or reads what he overwrites, means it
			r.refuse("name two files", "%s and %s name the same file %s", a.flag, b.flag, b.path)
		}
	})
}
