package store

import (
	"runtime/debug"
	"strings"
)

// Product is how the embedded broker names itself to its clients, whatever their protocol.
const Product = "perfmq embedded broker"

// Version returns the version of the program, as front-ends tell it to clients.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return strings.Trim(info.Main.Version, "()") // "(devel)"
	}
	return "unknown"
}
