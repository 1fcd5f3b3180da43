package rocketmqgo

import (
	"fmt"

	"github.com/perfmq/perfmq/internal/drivers/library"
	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
)

// rules are those of brokers for topics, shortened so that the names of groups derived from them are legal.
func rules() library.Rules { return library.Rules{Signs: "-_", Most: 100} }

// refusal returns the outcome of a send that the broker refused, or for which the library knows no broker. The library
// puts the code of an answer only at the beginning of the error's text.
func refusal(err error) (state driver.State, class driver.Class, hint string) {
	var code int
	if n, _ := fmt.Sscanf(err.Error(), "CODE: %d", &code); n == 0 {
		return driver.Failed, driver.ClassConnect, "does the name server know a broker of the topic?"
	}
	return protocol.RocketMQRefusal(code, err.Error())
}

// silence is a logger that discards everything: the library's own writes to standard error.
type silence struct{}

// Debug does nothing, like the others.
func (silence) Debug(string, map[string]any) {}

// Info does nothing.
func (silence) Info(string, map[string]any) {}

// Warning does nothing.
func (silence) Warning(string, map[string]any) {}

// Error does nothing.
func (silence) Error(string, map[string]any) {}

// Fatal does nothing.
func (silence) Fatal(string, map[string]any) {}

// Level does nothing.
func (silence) Level(string) {}

// OutputPath does nothing.
func (silence) OutputPath(string) error { return nil }
