package run

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version says which build this is.
type Version struct {
	Number   string // v1.2.3, or "devel"
	Revision string // of the source, if known
	Platform string // compiler, operating system and processor
}

// NewVersion describes the running program, with the number of its version.
func NewVersion(number string) Version {
	v := Version{Number: number, Platform: fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	var modified bool
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			v.Revision = setting.Value[:min(12, len(setting.Value))]
		case "vcs.modified":
			modified = setting.Value == "true"
		}
	}
	if v.Revision != "" && modified {
		v.Revision += "+changes"
	}
	return v
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
