package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

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
	if path == "" || path == run.Standard && flag == "--json" {
		return
	}
	m := NoOutputFile(flag, path)
	if path == run.Standard {
		m = notStandard(flag, "file")
	}
	if m != nil {
		r.refuse(m.Hint, "%s", m.Text)
	}
}

// notStandard refuses standard output in place of a file or folder.
func notStandard(flag, kind string) *plan.Mistake {
	return mistake("name a "+kind+", which may be ./-", "%s -: only --json writes to standard output", flag)
}

// NoOutputFile says why a file cannot be made; nil if nothing is known against it.
func NoOutputFile(flag, path string) *plan.Mistake {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return mistake("name a file in it", "%s %s is a folder", flag, path)
	}
	return noPlace(flag, path, "name a file in a folder")
}

// noPlace says why nothing can be made at a path: a file is in place of one of its folders. Missing folders are made.
func noPlace(flag, path, hint string) *plan.Mistake {
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		switch {
		case err == nil && !info.IsDir():
			return mistake(hint, "%s %s: %s is no folder", flag, path, folder)
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
		return notStandard("--result", "folder")
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

// differentFiles refuses to write two outputs into one file, or over an input.
func (r *resolver) differentFiles() {
	o, b := &r.Outputs, &r.Broker
	outputs := [][2]string{{"--json", o.JSON}, {"--hdr", o.HDR}, {"--verify-file", o.VerifyFile}}
	for _, name := range result.Files() {
		if o.Result != "" {
			outputs = append(outputs, [2]string{"--result", filepath.Join(o.Result, name)})
		}
	}
	others := [][2]string{
		{"--password-file", b.PasswordFile},
		{"--tls-ca", b.TLS.CAFile},
		{"--tls-cert", b.TLS.CertFile},
		{"--tls-key", b.TLS.KeyFile},
		{"--metrics-web-config", o.MetricsWeb},
		{"--body-file", r.Bodies.File},
	}
	if inputfile.IsFolder(r.Bodies.File) {
		bodies, _ := inputfile.Folder(r.Bodies.File, driver.MaxVariants) // errors are already reported
		for _, body := range bodies {
			others = append(others, [2]string{"--body-file", body})
		}
	}
	for _, output := range outputs {
		for _, other := range others {
			if SameFile(other[1], output[1]) {
				r.refuse("name two files", "%s and %s name the same file %s", other[0], output[0], output[1])
			}
		}
		others = append(others, output)
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
