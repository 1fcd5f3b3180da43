package run

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Version says which build this is.
type Version struct {
	Number   string // 1.2.3
	Revision string // of the source, if known
	Platform string // compiler, operating system and processor
}

// NewVersion describes the running program, with the number of its version.
func NewVersion(number string) Version {
	v := Version{Number: number, Platform: fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Revision = revision(info)
	}
	return v
}

// revision returns the commit of a build: of a checkout, or of the module that go install fetched.
func revision(info *debug.BuildInfo) string {
	commit, changes := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			commit = setting.Value[:min(12, len(setting.Value))]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			changes = "+changes"
		}
	}
	if commit != "" {
		return commit + changes
	}
	if pseudo := strings.Split(info.Main.Version, "-"); len(pseudo) > 2 { // v0.0.0-TIME-COMMIT
		return pseudo[len(pseudo)-1]
	}
	return ""
}

// String returns the version on one line.
func (v Version) String() string {
	text := v.Number
	if v.Revision != "" {
		text += " " + v.Revision
	}
	if v.Platform != "" {
		text += " (" + v.Platform + ")"
	}
	return text
}
