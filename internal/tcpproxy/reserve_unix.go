//go:build unix

package tcpproxy

import (
	"net"
	"os"
	"syscall"
)

// reserve keeps a port that was listened at: connections are refused, and no other listener is given it.
func reserve(address net.Addr) (release func()) {
	at := address.(*net.TCPAddr) //nolint:forcetypeassert // of a listener for TCP
	ip := at.IP.To4()
	if ip == nil {
		return func() {}
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return func() {}
	}
	syscall.CloseOnExec(fd)
	_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	_ = syscall.Bind(fd, &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(ip)})
	return func() { _ = os.NewFile(uintptr(fd), "port").Close() }
}
