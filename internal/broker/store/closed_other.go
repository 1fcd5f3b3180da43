//go:build !linux

package store

import "net"

// peerClosed is always false: only Linux reports the end of a connection behind unread input.
func peerClosed(net.Conn) bool { return false }
