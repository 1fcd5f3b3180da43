package transport

import (
	"runtime/debug"
	"strings"
)

// Version returns the version of this program, as drivers tell it to brokers.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return strings.Trim(info.Main.Version, "()") // "(devel)"
	}
	return "unknown"
}
