package gate

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Left tells whether the peer has closed or broken the connection, or its sending half, even behind data that were
// not read. It is false if that cannot be told. It does not wait and is safe for concurrent use.
func Left(conn net.Conn) (gone bool) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // a file descriptor
		n, err := unix.Poll(p, 0)
		gone = err == nil && n > 0 && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return gone && err == nil
}
