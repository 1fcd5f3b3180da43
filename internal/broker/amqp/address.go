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

func hasCapability(t *wire.Terminus, capability string) bool {
	return slices.Contains(t.Capabilities, capability)
}

// addressOf returns the address of a terminus: its prefix decides the kind, else its capabilities.
func addressOf(t *wire.Terminus) driver.Destination {
	if a, ok := store.ParseAddress(t.Address.V); ok && a.Name != "" {
		return a
	}
	a := driver.Destination{Name: t.Address.V}
	if hasCapability(t, capTopic) {
		a.Kind = driver.Topic
	}
	return a
}
