package amqp

import (
	"slices"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Capabilities of a terminus.
const (
	capTopic  = "topic"
	capShared = "shared"
	capGlobal = "global"
)

// parseAddress parses an address; kind is the kind of addresses without a prefix.
func parseAddress(address string, kind driver.Kind) driver.Destination {
	if a, ok := store.ParseAddress(address); ok && a.Name != "" {
		return a
	}
	return driver.Destination{Kind: kind, Name: address}
}

func hasCapability(t *wire.Terminus, capability string) bool {
	return slices.Contains(t.Capabilities, capability)
}

// kindOf returns the kind of a terminus without a prefix.
func kindOf(t *wire.Terminus) driver.Kind {
	if hasCapability(t, capTopic) {
		return driver.Topic
	}
	return driver.Queue
}
