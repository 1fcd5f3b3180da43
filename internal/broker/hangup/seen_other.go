//go:build !linux

package hangup

import "net"

// Seen is always false: only Linux tells of the end of a connection behind data that were not read.
func Seen(net.Conn) bool { return false }
