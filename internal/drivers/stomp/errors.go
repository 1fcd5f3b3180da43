package stomp

import (
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// lookAtBroker is the general hint.
const lookAtBroker = "look into the broker's log; see also whether a proxy on the way changes its messages"

// clip shortens a text of a broker that should have been short.
func clip(text []byte) string { return transport.Clip(string(text), 40) }

// missing returns the hint for a destination that does not exist.
func (d dialect) missing() string {
	switch d {
	case artemis:
		return "create it on the broker, or let the broker create it: auto-create-addresses and auto-create-queues. " +
			"Artemis also says so of an address of the other kind: try queue:// or topic://"
	case rabbitmq:
		return "declare it on the broker first: RabbitMQ makes no queue by its use that is named by /amq/queue, and no " +
			"exchange"
	default:
		return "create it on the broker, or let the broker create it"
	}
}

// errorFrame returns the error that an ERROR frame reports.
func errorFrame(d dialect, f *wire.Received) *driver.Error {
	return protocol.STOMPError(d.says(), d.missing(), unescape(string(f.Get("message"))), f.Body)
}

func (d dialect) says() string {
	if d == "" || d == generic {
		return "the broker says"
	}
	return d.title() + " says"
}

// errCannotCarry reports a header that this version of the protocol cannot encode.
func errCannotCarry(v wire.Version, key, value string) error {
	return driver.Errorf(driver.ClassUnsupported, "", "leave out special characters and blanks around it",
		"STOMP %s cannot carry %q as %s", v, value, key)
}

func silentError(d time.Duration) error {
	return driver.Errorf(driver.ClassConnectionLost, "", "is the broker paused or the network down? See -o heart-beat",
		"nothing was heard from the broker for %s", d)
}
