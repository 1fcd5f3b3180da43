package config

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// outputs checks the paths of the outputs, without creating anything.
func (r *resolver) outputs() {
	o := &r.Outputs
	r.outputFile("--json", o.JSON)
	r.outputFile("--hdr", o.HDR)
	r.outputFile("--verify-file", o.VerifyFile)
	r.resultFolder()
	r.differentFiles()
	both := func(a, b string) bool { return r.Source(a) == CommandLine && r.Source(b) == CommandLine }
	if o.Silent && o.ShowLatency && both("silent", "show-latency") {
		r.refuse("leave one of them out", "--silent prints nothing, --show-latency prints more")
	}
	if o.Format == run.RocketMQ && o.ShowLatency && both("format", "show-latency") {
		r.refuse("leave one of them out; --json and --hdr have the latencies of every second",
			"--format rocketmq has no lines for --show-latency")
	}
	if r.Has("interval") && o.Interval < time.Second {
		r.refuse("give 1s or more", "--interval %v: the shortest interval is one second", o.Interval)
	}
	r.address("--web", o.Web, "8080")
	r.address("--metrics", o.Metrics, "9400")
	if o.Metrics == "" && o.Linger.For > 0 {
		r.refuse("add --metrics HOST:PORT", "--metrics-linger needs --metrics")
	}
	if o.Metrics == "" && o.MetricsWeb != "" {
		r.refuse("add --metrics HOST:PORT", "--metrics-web-config has nothing to serve")
	} else if _, err := listen.ReadWeb(o.MetricsWeb); err != nil {
		r.refuse(cmp.Or(driver.HintOf(err), "name a file that can be read"), "--metrics-web-config: %v", err)
	}
}

// address checks where a server is to listen.
func (r *resolver) address(flag, address, port string) {
	if address == "" {
		return
	}
	if err := listen.Check(address); err != nil {
		r.refuse(fmt.Sprintf("write HOST:PORT such as 127.0.0.1:%s, or :%s for the same", port, port), "%s %s: %v", flag,
			Quoted(address), err)
	}
}

func (r *resolver) outputFile(flag, path string) {
	switch {
	case path == "" || path == run.Standard && flag == "--json":
	case path == run.Standard:
		r.refuse("name a file, which may be ./-", "%s -: only --json writes to standard output", flag)
	default:
		if m := NoOutputFile(flag, path); m != nil {
			r.refuse(m.Hint, "%s", m.Text)
		}
	}
}

// NoOutputFile says why a file cannot be made; nil if nothing is known against it.
func NoOutputFile(flag, path string) *plan.Mistake {
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
	dir := r.Outputs.Result
	if dir == "" {
		return
	}
	if r.Outputs.VerifyFile != "" {
		r.refuse("give --verify with it instead",
			"--result keeps this side of the verification in its folder, and --verify-file in %s", r.Outputs.VerifyFile)
	}
	if m := NoResultFolder(dir); m != nil {
		r.refuse(m.Hint, "%s", m.Text)
	}
}

// NoResultFolder says why a folder cannot become that of a result; nil if nothing is known against it.
func NoResultFolder(dir string) *plan.Mistake {
	switch info, err := os.Stat(dir); {
	case dir == run.Standard:
		return mistake("name a folder, which may be ./-", "--result -: only --json writes to standard output")
	case err != nil:
		return noPlace("--result", dir, "name a new folder in a folder")
	case !info.IsDir():
		return mistake("name a folder", "--result %s is a file", dir)
	}
	if err := result.Vacant(dir); err != nil {
		return mistake("name another folder, or remove this one", "--result %s: %v", dir, err)
	}
	return nil
}

// differentFiles refuses to write two outputs into one file, or over an input. Standard output and standard error may
// share one, and redirecting a stream over an input is deliberate.
func (r *resolver) differentFiles() {
	var files []NamedFile
	add := func(flag, path string, output bool) {
		if path != "" {
			files = append(files, Name(flag, path, output))
		}
	}
	streams := []NamedFile{openFile("standard error", r.Stderr)}
	if !r.Outputs.Silent {
		streams = append(streams, openFile("standard output", r.Stdout))
	}
	if inputfile.IsFolder(r.Bodies.File) {
		bodies, _ := inputfile.Folder(r.Bodies.File, driver.MaxVariants) // errors are already reported
		for _, path := range bodies {
			add("--body-file", path, false)
		}
	}
	o, b := &r.Outputs, &r.Broker
	for flag, path := range map[string]string{
		"--password-file": b.PasswordFile, "--body-file": r.Bodies.File, "--tls-ca": b.TLS.CAFile,
		"--tls-cert": b.TLS.CertFile, "--tls-key": b.TLS.KeyFile, "--metrics-web-config": o.MetricsWeb,
	} {
		add(flag, path, false)
	}
	if o.JSON != run.Standard {
		add("--json", o.JSON, true)
	}
	add("--hdr", o.HDR, true)
	add("--verify-file", o.VerifyFile, true)
	if o.Result != "" {
		for _, name := range result.Files() {
			add("--result", filepath.Join(o.Result, name), true)
		}
	}
	SameFiles(append(streams, files...), func(a, b *NamedFile) {
		if b.output && (a.stream == nil || b.stream == nil) {
			r.refuse("name two files", "%s and %s name the same file %s", a.flag, b.flag, b.path)
		}
	})
}

// NamedFile is a file that the command line names, or an open one.
type NamedFile struct {
	flag, path string // as in messages; the path is empty if it has no name
	output     bool
	stream     io.Writer   // of an open one
	info       fs.FileInfo // nil if there is no such file yet
}

// Name returns the file at a path.
func Name(flag, path string, output bool) NamedFile {
	f := NamedFile{flag: flag, path: path, output: output}
	f.info, _ = os.Stat(path) // nil if it is not there yet
	return f
}

// Path returns the path.
func (f *NamedFile) Path() string { return f.path }

// openFile returns the file behind standard output or standard error, which another output may name, too.
func openFile(flag string, w io.Writer) NamedFile {
	f := NamedFile{flag: flag, output: true, stream: w}
	if s, ok := w.(interface{ Stat() (fs.FileInfo, error) }); ok {
		f.info, _ = s.Stat()
	}
	return f
}

// same reports whether both are one regular file, existing or not. Devices such as /dev/null and pipes may have several
// writers.
func (f *NamedFile) same(o *NamedFile) bool {
	if f.info != nil && o.info != nil {
		return f.info.Mode().IsRegular() && os.SameFile(f.info, o.info)
	}
	a, err1 := filepath.Abs(f.path)
	b, err2 := filepath.Abs(o.path)
	return f.info == nil && o.info == nil && f.stream == nil && o.stream == nil && err1 == nil && err2 == nil && a == b
}

// SameFiles calls found for each output that is the same file as another output, or as an input.
func SameFiles(files []NamedFile, found func(a, b *NamedFile)) {
	for i := range files {
		for j := range files[:i] {
			a, b := &files[j], &files[i]
			if (a.output || b.output) && a.same(b) {
				found(a, b)
			}
		}
	}
}
