//go:build !unix

package transport

import "syscall"

// polledConn is a stub: these systems do not report waits in system calls.
type polledConn struct{}

func (*polledConn) init(*Metered, syscall.RawConn) {}
func (*polledConn) usable() bool                   { return false }
func (*polledConn) read([]byte) (int, error)       { return 0, syscall.EINVAL }

func (*polledConn) readInto(*Buffers) (*buffer, int, error) { return nil, 0, syscall.EINVAL }
func (*polledConn) tryWrite([]byte) (int, error)            { return 0, syscall.EINVAL }
