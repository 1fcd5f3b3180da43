package transport

import (
	"runtime/debug"
	"strings"
)

// version is set by the linker: -X github.com/perfmq/perfmq/internal/transport.version=v1.2.3.
var version string

// Version returns the version of this program, for peers and results: set by the linker, else the version of the
// module, "devel" if there is neither.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return strings.Trim(info.Main.Version, "()") // "(devel)"
	}
	return "devel"
}
