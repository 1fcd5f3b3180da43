//go:build !linux

package store

import (
	"net"
	"syscall"
)

// peerClosed reports whether we have closed the connection. Only Linux reports that the peer has, behind unread input.
func peerClosed(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	return err != nil || raw.Control(func(uintptr) {}) != nil
}
