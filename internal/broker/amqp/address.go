package amqp

import (
	"crypto/rand"
	"strings"

	"github.com/perfmq/perfmq/internal/broker/store"
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

// kind is that of a terminus without a prefix.
func (t *terminus) kindOf() store.Kind {
	if t.can(capTopic) || t.can(capTempTopic) {
		return store.KindTopic
	}
	return store.KindQueue
}

// locate returns where a terminus is. A dynamic one gets an address that nobody else has, to be deleted with the link.
func (t *terminus) locate() (addr store.Address, temporary bool) {
	if t.dynamic {
		t.address, t.hasAddress = "temporary-"+strings.ToLower(rand.Text()), true
		return store.Address{Kind: t.kindOf(), Name: t.address}, true
	}
	return parseAddress(t.address, t.kindOf()), false
}
