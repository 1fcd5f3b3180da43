package amqp

import (
	"context"
	"strings"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// cbsNode is the node of Azure Service Bus that takes tokens (AMQP Claims-based Security 1.0; Azure's AMQP protocol
// guide, "Claims-based authorization").
const cbsNode = "$cbs"

// authorize puts the token for the node with that address, if the login is by tokens. The broker keeps it as long as
// the connection, and detaches the links when it expires: it is not renewed.
func (c *connection) authorize(ctx context.Context, address string) error {
	if c.driver.cfg.Options.SASL != saslCBS || address == "" {
		return nil
	}
	token, kind := c.driver.cfg.Target.Password, "jwt"
	if strings.HasPrefix(token, "SharedAccessSignature ") {
		kind = "servicebus.windows.net:sastoken"
	}
	b := wire.AppendDescriptor(nil, wire.DescApplicationProperties)
	b = wire.AppendTexts(b, false, "operation", "put-token", "type", kind, "name", "amqps://"+c.hostname+"/"+address)
	b = wire.AppendStr(wire.AppendDescriptor(b, wire.DescValue), token)
	answer, err := c.cbs.ask(ctx, c, wire.Properties{}, b)
	if err != nil {
		return err
	}
	status := wire.Lookup(answer.ApplicationProperties, "status-code")
	if n, _ := status.Integer(); n < 200 || n > 299 {
		text := wire.LookupText(answer.ApplicationProperties, "status-description")
		return driver.Errorf(driver.ClassAuth, "", "has it expired, or does it lack the right to send or listen here?",
			"the broker does not accept the token: %s (status %d)", transport.Clip(text, maxWords), n)
	}
	return nil
}
