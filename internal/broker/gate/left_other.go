//go:build !linux

package gate

import "net"

// Left is always false: only Linux tells of the end of a connection behind data that were not read.
func Left(net.Conn) bool { return false }
