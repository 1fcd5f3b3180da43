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

// parseAddress takes a prefix off an address; otherwise is the kind of those without.
func parseAddress(address string, otherwise store.Kind) store.Address {
	if scheme, name, ok := strings.Cut(address, "://"); ok && name != "" {
		switch scheme {
		case capQueue, "temp-queue":
			return store.Address{Kind: store.KindQueue, Name: name}
		case capTopic, "temp-topic":
			return store.Address{Kind: store.KindTopic, Name: name}
		}
	}
	if name, ok := strings.CutPrefix(address, "/queue/"); ok && name != "" {
		return store.Address{Kind: store.KindQueue, Name: name}
	}
	if name, ok := strings.CutPrefix(address, "/topic/"); ok && name != "" {
		return store.Address{Kind: store.KindTopic, Name: name}
	}
	return store.Address{Kind: otherwise, Name: address}
}

// can tells whether a terminus has a capability.
func can(t *wire.Terminus, capability string) bool {
	return slices.Contains(t.Capabilities, capability)
}

// kindOf is that of a terminus without a prefix.
func kindOf(t *wire.Terminus) store.Kind {
	if can(t, capTopic) || can(t, capTempTopic) {
		return store.KindTopic
	}
	return store.KindQueue
}

// locate returns where a terminus is. A dynamic one gets an address of its own, to be deleted with the link.
func locate(t *wire.Terminus) (addr store.Address, temporary bool) {
	if t.Dynamic {
		t.Address = wire.Some("temporary-" + strings.ToLower(rand.Text()))
		return store.Address{Kind: kindOf(t), Name: t.Address.V}, true
	}
	return parseAddress(t.Address.V, kindOf(t)), false
}
