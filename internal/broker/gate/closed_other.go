//go:build !linux

package gate

import "net"

// PeerClosed is always false: only Linux reports the end of a connection behind unread data.
func PeerClosed(net.Conn) bool { return false }
