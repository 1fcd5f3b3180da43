//go:build unix

package mqtt_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/examples/driver-mqtt/mqtt"
	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// The tests alone use perfmq's harness, which is internal: the module stands below its path. A driver elsewhere starts
// a broker by its own means.
var shared = brokertest.Shared{ArtemisOptions: []brokertest.ArtemisOption{brokertest.WithLogin()}}

// mqttURL is the URL of the acceptor of all protocols.
func mqttURL(a *brokertest.Artemis) string { return strings.Replace(a.CoreURL(), "tcp", "mqtt", 1) }

// inspect receives messages by the library's own client, which has no line of the driver.
func inspect(url string) func(testing.TB, driver.Destination) func(int) []drivertest.Header {
	return func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
		t.Helper()
		conn, err := net.Dial("tcp", mqtt.Factory().Hosts(url)[0])
		require.NoError(t, err)
		inbox := make(chan *paho.Publish, 1000)
		client := paho.NewClient(paho.ClientConfig{Conn: conn, OnPublishReceived: []func(paho.PublishReceived) (bool, error){
			func(p paho.PublishReceived) (bool, error) { inbox <- p.Packet; return true, nil },
		}})
		t.Cleanup(func() { _ = client.Disconnect(&paho.Disconnect{}); <-client.Done() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = client.Connect(ctx, &paho.Connect{
			ClientID: "inspect-" + dest.Name, CleanStart: true, KeepAlive: 60,
			Username: "admin", UsernameFlag: true, Password: []byte("admin"), PasswordFlag: true,
		})
		require.NoError(t, err)
		_, err = client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: dest.Name, QoS: 1}}})
		require.NoError(t, err)
		return func(n int) (list []drivertest.Header) {
			for range n {
				select {
				case p := <-inbox:
					h := drivertest.Header{Properties: map[string]string{}}
					for _, u := range p.Properties.User {
						h.Properties[u.Key] = u.Value
					}
					list = append(list, h)
				case <-time.After(time.Minute):
					require.FailNow(t, "a message has not come")
				}
			}
			return list
		}
	}
}

func config(t *testing.T) drivertest.Config {
	t.Helper()
	url := mqttURL(shared.Artemis(t))
	return drivertest.Config{
		Factory: mqtt.Factory(), URL: url, User: "admin", Password: "admin", WrongPassword: "wrong",
		Inspect: inspect(url), Allocations: 200,
		Unshared:  "each MQTT client has a connection of its own",
		Unordered: "Artemis writes to an MQTT client from two threads: also paho's clients get packet identifiers out of order",
	}
}

// TestConformance runs perfmq's suite.
func TestConformance(t *testing.T) { drivertest.Run(t, config(t)) }
