package amqp

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// Capabilities of a terminus.
const (
	capQueue     = "queue"
	capTopic     = "topic"
	capTempQueue = "temporary-queue"
	capTempTopic = "temporary-topic"
	capShared    = "shared"
	capGlobal    = "global"
)

// parseAddress parses an address; kind is the kind of addresses without a prefix.
func parseAddress(address string, kind store.Kind) store.Address {
	if a, ok := store.ParseAddress(strings.TrimPrefix(address, "temp-")); ok && a.Name != "" {
		return a
	}
	return store.Address{Kind: kind, Name: address}
}

func hasCapability(t *wire.Terminus, capability string) bool {
	return slices.Contains(t.Capabilities, capability)
}

// kindOf returns the kind of a terminus without a prefix.
func kindOf(t *wire.Terminus) store.Kind {
	if hasCapability(t, capTopic) || hasCapability(t, capTempTopic) {
		return store.KindTopic
	}
	return store.KindQueue
}

// addressOf returns the address of a terminus. A dynamic one gets a temporary address, to be deleted with the link.
func addressOf(t *wire.Terminus) (addr store.Address, temporary bool) {
	if t.Dynamic {
		t.Address = wire.Some("temporary-" + strings.ToLower(rand.Text()))
		return store.Address{Kind: kindOf(t), Name: t.Address.V}, true
	}
	return parseAddress(t.Address.V, kindOf(t)), false
}
