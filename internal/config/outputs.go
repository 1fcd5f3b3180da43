package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// checkOutputs checks the paths of the outputs, without creating anything.
func (r *resolver) checkOutputs() {
	o := &r.Outputs
	if o.Result != "" && o.VerifyFile != "" {
		r.refuseBoth("result", "verify-file")
	}
	if r.Source("trace-sample") == CommandLine && o.Result == "" {
		r.add(plan.Needs("--trace-sample", "--result"))
	}
	r.checkFiles()
	r.checkAddress("--web", o.Web, "8080")
	r.checkAddress("--metrics", o.Metrics, "9400")
	r.checkRemoteWrite()
	for _, m := range plan.Unmet(o) {
		r.add(m)
	}
	if _, err := listen.ReadWeb(o.MetricsWeb); o.Metrics != "" && err != nil {
		r.refuse(driver.HintOf(err), "--metrics-web-config: %v", err)
	}
}

// checkRemoteWrite checks the headers of remote write, and reads its secret.
func (r *resolver) checkRemoteWrite() {
	o := &r.Outputs
	for _, header := range o.RemoteHeaders {
		name, value, _ := strings.Cut(header, "=")
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) || SecretName(name) ||
			strings.EqualFold(name, "Authorization") {
			r.refuse("write NAME=VALUE; a secret belongs into --remote-write-token-file",
				"--remote-write-header: %s cannot be given here", Quoted(name))
		}
	}
	if o.RemoteCA != "" {
		o.Remote.TLS = r.loadCA("--remote-write-ca", o.RemoteCA)
	}
	if file := o.RemoteTokenFile; file != "" {
		o.RemoteSecret = r.readSecret("--remote-write-token-file", file, plan.User(o.Remote.URL), "its first line")
	}
}

// checkAddress checks where a server is to listen.
func (r *resolver) checkAddress(flag, address, port string) {
	if address == "" {
		return
	}
	if err := listen.Check(address); err != nil {
		r.refuse(fmt.Sprintf("write HOST:PORT such as 127.0.0.1:%s, or :%[1]s", port), "%s %s: %v", flag,
			Quoted(address), err)
	}
}

// NoPlace says why the output of a flag, a file or the folder of --result, cannot be made at a path; nil if nothing is
// known against it. Missing folders are made.
func NoPlace(flag, path string) *plan.Mistake {
	kind := "file"
	if flag == "--result" {
		kind = "folder"
	}
	switch info, err := os.Stat(path); {
	case path == "", path == run.Standard && (flag == "--json" || flag == "--output"):
		return nil
	case path == run.Standard:
		return plan.Wrong("name a "+kind, "%s -: only --json writes to standard output", flag)
	case err != nil:
	case kind == "file" && info.IsDir():
		return plan.Wrong("name a file", "%s %s is a folder", flag, path)
	case kind == "folder" && !info.IsDir():
		return plan.Wrong("name a folder", "%s %s is a file", flag, path)
	case kind == "folder":
		if err := result.Vacant(path); err != nil {
			return plan.Wrong("name another folder", "%s %s: %v", flag, path, err)
		}
		return nil
	}
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		switch {
		case err == nil && !info.IsDir():
			return plan.Wrong("", "%s %s: %s is no folder", flag, path, folder)
		case err == nil, folder == filepath.Dir(folder):
			return nil
		}
	}
}

// checkFiles refuses outputs that cannot be made, and two outputs into one file, or one over an input.
func (r *resolver) checkFiles() {
	var outputs, inputs [][2]string // flags and paths
	for _, row := range plan.Rows(r.Values) {
		flag, path := "--"+row.Name, row.Value.String()
		switch arg := row.Tag.Get("arg"); {
		case arg != "FILE" && arg != "DIR", path == "":
			continue
		case row.Is("output"):
			if m := NoPlace(flag, path); m != nil {
				r.refuse(m.Hint, "%s", m.Text)
			}
		}
		paths, list := []string{path}, &inputs
		switch {
		case row.Name == "result":
			paths, list = nil, &outputs
			for _, name := range result.Files() {
				paths = append(paths, filepath.Join(path, name))
			}
		case row.Is("output"):
			list = &outputs
		case inputfile.IsFolder(path):
			paths, _ = inputfile.Folder(path, driver.MaxVariants) // errors are already reported
		}
		for _, path := range paths {
			*list = append(*list, [2]string{flag, path})
		}
	}
	for _, output := range outputs {
		for _, other := range inputs {
			if SameFile(other[1], output[1]) {
				r.refuse("name two files", "%s and %s name the same file %s", other[0], output[0], output[1])
			}
		}
		inputs = append(inputs, output)
	}
}

// SameFile reports whether two paths name one regular file, existing or not. Devices such as /dev/null and pipes may
// have several writers.
func SameFile(a, b string) bool {
	if a == "" || b == "" || a == run.Standard || b == run.Standard {
		return false
	}
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	if err1 == nil && err2 == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	return err1 != nil && err2 != nil && filepath.Clean(a) == filepath.Clean(b)
}
