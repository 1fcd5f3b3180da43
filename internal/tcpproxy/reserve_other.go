//go:build !unix

package tcpproxy

import "net"

func reserve(net.Addr) (release func()) { return func() {} }
