package amqp

import "runtime/debug"

// version is that of the program, as the open frame tells it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
