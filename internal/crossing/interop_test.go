//go:build unix

package crossing

import (
	"context"
	"os/exec"
	"strconv"
	"testing"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/amqp"
	"github.com/perfmq/perfmq/internal/interoptest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestInterop: JMS clients ask us, and answer us, over Artemis.
func TestInterop(t *testing.T) {
	a, source := shared.Artemis(t), interoptest.Source(t, "Jms.java")
	for name, client := range map[string][2]string{
		"Qpid JMS":    {"org.apache.qpid.jms.JmsConnectionFactory", a.AMQPURL()},
		"Artemis JMS": {"org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory", a.CoreURL()},
	} {
		t.Run(name, func(t *testing.T) {
			o := driver.OpenOptions{URL: a.AMQPURL(), User: brokertest.User, Password: brokertest.Password}
			interoptest.Run(t, amqp.Factory(), o, func(ctx context.Context, role, queue string) *exec.Cmd {
				return a.JavaProgram(ctx, source, client[0], client[1], brokertest.User, brokertest.Password, role, queue, strconv.Itoa(interoptest.Requests))
			})
		})
	}
}
