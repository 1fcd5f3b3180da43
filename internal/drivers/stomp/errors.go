package stomp

import (
	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// lookAtBroker is the general hint.
const lookAtBroker = transport.HintProxy

// clip shortens a text of a broker that should have been short.
func clip(text []byte) string { return transport.Clip(string(text), 40) }

// errorFrame returns the error that an ERROR frame reports.
func errorFrame(d dialect, f *wire.Received) *driver.Error {
	return protocol.STOMPError(string(d), unescape(string(f.Get("message"))), f.Body)
}

// errCannotCarry reports a header that the protocol cannot encode.
func errCannotCarry(key, value string) error {
	return driver.Errorf(driver.ClassUnsupported, "", "leave out special characters",
		"STOMP cannot carry %q as %s", value, key)
}
