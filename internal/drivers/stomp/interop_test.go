//go:build unix

package stomp

import (
	"context"
	"net/url"
	"os/exec"
	"strconv"
	"testing"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/interoptest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestInteropClassicJMS: the JMS client of ActiveMQ Classic asks us, and answers us.
func TestInteropClassicJMS(t *testing.T) {
	a, source := shared.ActiveMQ(t), interoptest.Source(t, "Jms.java")
	interoptest.Run(t, Factory(), openReal(a.STOMPURL()), func(ctx context.Context, role, queue string) *exec.Cmd {
		return a.JavaProgram(ctx, source, "org.apache.activemq.ActiveMQConnectionFactory", a.OpenWireURL(), brokertest.User, brokertest.Password, role, queue, strconv.Itoa(interoptest.Requests))
	})
}

func openReal(url string) driver.OpenOptions {
	return driver.OpenOptions{URL: url, User: brokertest.User, Password: brokertest.Password}
}

// TestInteropStompPy: stomp.py asks us, and answers us, with a queue for replies as the broker's documentation has it.
func TestInteropStompPy(t *testing.T) {
	brokertest.Needs(t, "brokers")
	python, source := interoptest.Python(t), interoptest.Source(t, "peer.py")
	for name, c := range map[string]struct {
		url, prefix      string
		replies, replyTo string
		header           []string
	}{
		"Artemis":  {shared.Artemis(t).STOMPURL(), "", "interop-replies", "interop-replies", []string{"destination-type=ANYCAST", "subscription-type=ANYCAST"}},
		"Classic":  {shared.ActiveMQ(t).STOMPURL(), "/queue/", "/temp-queue/r", "/temp-queue/r", nil},
		"RabbitMQ": {shared.RabbitMQ(t).STOMPURL(), "/queue/", "-", "/temp-queue/r", nil},
	} {
		t.Run(name, func(t *testing.T) {
			port := musttest.Get(url.Parse(c.url))(t).Port()
			interoptest.Run(t, Factory(), openReal(c.url), func(ctx context.Context, role, queue string) *exec.Cmd {
				args := []string{source, port, brokertest.User, brokertest.Password, role, c.prefix + queue, strconv.Itoa(interoptest.Requests), c.replies, c.replyTo}
				return exec.CommandContext(ctx, python, append(args, c.header...)...)
			})
		})
	}
}
