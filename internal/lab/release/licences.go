package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// compatible reports whether an Apache-2.0 program may contain a licence, named by SPDX, without further duties.
func compatible(id string) bool {
	return slices.Contains([]string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT"}, id)
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)`)
	noticeFile  = regexp.MustCompile(`(?i)^notice`)
)

// text is a licence or notice of a module.
type text struct{ module, file, body string }

// licences checks that all that is linked into perfmq, on any system, has a compatible licence, and writes the texts
// into a file unless its name is empty.
func licences(file string) error {
	dirs, err := linked()
	if err != nil {
		return err
	}
	var mistakes []error
	var b strings.Builder
	b.WriteString("perfmq contains the following software.\n")
	for _, module := range slices.Sorted(maps.Keys(dirs)) {
		texts, err := licencesIn(module, dirs[module])
		if err != nil {
			mistakes = append(mistakes, err)
		}
		for _, t := range texts {
			line := strings.Repeat("=", 80)
			fmt.Fprintf(&b, "\n%s\n%s, %s\n\n%s\n", line, t.module, t.file, strings.TrimSpace(t.body))
		}
	}
	if err := errors.Join(mistakes...); err != nil {
		return err
	}
	fmt.Printf("%d modules have compatible licences\n", len(dirs))
	if file == "" {
		return nil
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// linked returns the modules of perfmq's packages on all systems of a release, each with the folders of these packages
// and above them up to the module's own.
func linked() (map[string][]string, error) {
	const format = `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}|{{.Dir}}|{{$.Dir}}{{end}}{{end}}`
	root, err := output(nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	version, err := output(nil, "go", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	uPlot := filepath.Join("internal", "page", "assets", "uplot") // the only part that is no module
	dirs := map[string][]string{"Go's standard library " + version: {root}, "uPlot": {uPlot}}
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			list, err := output([]string{"GOOS=" + system, "GOARCH=" + arch, "CGO_ENABLED=0"},
				"go", "list", "-deps", "-f", format, "./cmd/...")
			if err != nil {
				return nil, err
			}
			for line := range strings.Lines(list) {
				parts := strings.Split(strings.TrimSpace(line), "|")
				for dir := parts[2]; len(dir) >= len(parts[1]); dir = filepath.Dir(dir) {
					if !slices.Contains(dirs[parts[0]], dir) {
						dirs[parts[0]] = append(dirs[parts[0]], dir)
					}
				}
			}
		}
	}
	return dirs, nil
}

// licencesIn returns the licences and notices in the folders of a module. It must have one, and each must be known and
// compatible.
func licencesIn(module string, dirs []string) (texts []text, err error) {
	found := false
	slices.SortFunc(dirs, cmp.Compare[string])
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Type()&fs.ModeType != 0 || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			file := filepath.Join(dir, e.Name())
			body, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			texts = append(texts, text{module, strings.TrimPrefix(file, dirs[0]+"/"), string(body)})
			if noticeFile.MatchString(e.Name()) {
				continue
			}
			found = true
			if problem := judge(body); problem != "" {
				return nil, fmt.Errorf("%s: %s of %s", problem, e.Name(), module)
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("%s has no licence", module)
	}
	return texts, nil
}

// judge returns what is wrong with a licence.
func judge(body []byte) string {
	coverage := licensecheck.Scan(body)
	if len(coverage.Match) == 0 || coverage.Percent < 75 {
		return "an unknown licence"
	}
	for _, match := range coverage.Match {
		if !compatible(match.ID) {
			return match.ID + " is not among the compatible licences"
		}
	}
	return ""
}
