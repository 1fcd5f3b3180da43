//go:build linux && !race

package transport

import (
	"syscall"
	"unsafe"
)

// The sockets do not block, so these calls are short. [syscall.Read] and [syscall.Write] announce each call to the
// runtime as one that may block. That wakes the runtime's monitor thread if the process was idle before: with one
// message in flight, for every message, which then takes twice the processor time.

func readNow(fd int, b []byte) (int, error)  { return call(syscall.SYS_READ, fd, b) }
func writeNow(fd int, b []byte) (int, error) { return call(syscall.SYS_WRITE, fd, b) }

func call(number uintptr, fd int, b []byte) (int, error) {
	at := unsafe.Pointer(unsafe.SliceData(b)) //nolint:gosec // as the syscall package does
	n, _, errno := syscall.RawSyscall(number, uintptr(fd), uintptr(at), uintptr(len(b)))
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil //nolint:gosec // no more than len(b)
}
