// Package elsewhere describes the drivers on client libraries that the program perfmq-library has, and perfmq has not:
// rocketmq-client-go would make perfmq larger by a quarter, for it keeps the linker from leaving out methods that
// nobody calls (docs/lab/lines.md). So perfmq knows their settings and limits, and hands runs over.
package elsewhere

import (
	"time"

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

// RocketMQ5Options are the settings of the driver on rocketmq-clients.
type RocketMQ5Options struct {
	Group     string        `opt:"group" help:"consumer group, if not from the destination"`
	PullBatch int           `opt:"pull-batch" help:"messages per request of a consumer, 1 to 32"`
	Invisible time.Duration `opt:"invisible-time" help:"time until a message that was not settled is delivered again"`
}

// RocketMQ5 describes the driver on RocketMQ's own client for its proxy. Without open it is the one of perfmq.
func RocketMQ5(open func(transport.Settings[RocketMQ5Options]) driver.Driver) driver.Factory {
	queue := driver.KindCapabilities{Exists: true, Delay: true, Properties: true}
	f := transport.Factory(driver.Factory{
		Name: "rocketmq", Title: "Apache RocketMQ 5 (gRPC)", Client: "rocketmq-clients", Program: Program,
		Capabilities: driver.Capabilities{Reconnects: true, HidesConnections: true, Queue: queue},
	}, protocol.RocketMQProxy(),
		func() *RocketMQ5Options { return &RocketMQ5Options{PullBatch: 32, Invisible: 30 * time.Second} },
		func(s *transport.Settings[RocketMQ5Options], fail transport.Fail) {
			if s.Target.TLS {
				fail(hintNative+", or rocketmq+grpc://", "rocketmq-clients checks no certificates")
			}
			if n := s.Options.PullBatch; n < 1 || n > 32 {
				fail("", "option pull-batch=%d: must be 1 to 32", n)
			}
			if d := s.Options.Invisible; d < 10*time.Second { // the proxy's minInvisibleTimeMillsForRecv
				fail("", "option invisible-time=%s: must be at least 10s", d)
			}
		}, open)
	if open == nil {
		f.Open = nil
	}
	return f
}
