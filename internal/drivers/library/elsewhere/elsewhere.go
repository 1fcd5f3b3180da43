// Package elsewhere describes the drivers on client libraries that the program perfmq-library has, and perfmq has not:
// rocketmq-client-go would make perfmq larger by a quarter, for it keeps the linker from leaving out methods that
// nobody calls (docs/lab/lines.md). So perfmq knows their settings and limits, and hands runs over.
package elsewhere

import (
	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Program has the drivers. It stands beside perfmq.
const Program = "perfmq-library"

const hintNative = "use --client native"

// RocketMQ describes the driver on rocketmq-client-go. Without open it is the one of perfmq, which cannot open drivers.
func RocketMQ(open func(transport.Settings[struct{}]) driver.Driver) driver.Factory {
	queue := driver.KindCapabilities{Exists: true, Group: true, Properties: true}
	f := transport.Factory(driver.Factory{
		Name: "rocketmq", Title: "Apache RocketMQ (remoting)", Client: "rocketmq-client-go", Program: Program,
		Capabilities: driver.Capabilities{Reconnects: true, HidesConnections: true, Queue: queue},
	}, protocol.RocketMQ(), func() *struct{} { return &struct{}{} }, check, open)
	if open == nil {
		f.Open = nil
	}
	return f
}

// check refuses features that the library lacks, and features with failures that it does not report.
func check(s *transport.Settings[struct{}], fail transport.Fail) {
	if s.Target.TLS {
		fail(hintNative+", or rocketmq://", "rocketmq-client-go has no encrypted connections")
	}
	if s.Target.User != "" {
		fail(hintNative, "a login: rocketmq-client-go hides its refusal from consumers")
	}
}
