//go:build unix

package crossing

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestTLS: encrypted connections to brokers that demand a certificate of the client, and the errors when one side does
// not trust the other.
func TestTLS(t *testing.T) {
	artemis, classic, rabbit := shared.Artemis(t), shared.ActiveMQ(t), shared.RabbitMQ(t)
	for broker, b := range map[string]struct {
		at    urls
		certs *brokertest.Certs
	}{
		"artemis":  {urls{"amqp": artemis.AMQPSURL(), "stomp": artemis.STOMPSURL()}, artemis.Certs()},
		"classic":  {urls{"amqp": classic.AMQPSURL(), "stomp": classic.STOMPSURL()}, classic.Certs()},
		"rabbitmq": {urls{"amqp": rabbit.AMQPSURL(), "stomp": rabbit.STOMPSURL()}, rabbit.Certs()},
	} {
		full := driver.TLS{CAFile: b.certs.CAFile, CertFile: b.certs.ClientCertFile, KeyFile: b.certs.ClientKeyFile}
		other, noCert := full, full
		other.CAFile = b.certs.OtherCAFile
		noCert.CertFile, noCert.KeyFile = "", ""
		for protocol, url := range b.at {
			t.Run(broker+"/"+protocol, func(t *testing.T) {
				requireTLS(t, protocol, url, full)
				requireNoTLS(t, protocol, url, other, "--tls-ca")
				requireNoTLS(t, protocol, url, noCert, "--tls-cert")
			})
		}
	}
}

func requireTLS(t *testing.T, protocol, url string, tls driver.TLS) {
	t.Helper()
	d, dest := openWith(t, protocol, driver.OpenOptions{URL: url, TLS: tls}), driver.Destination{Name: "tls." + protocol}
	body := make([]byte, 100_000) // many records of TLS
	for i := range body {
		body[i] = byte(i >> 8)
	}
	sendVariant(t, d, dest, driver.Variant{Body: body, Priority: -1})
	requireReceived(t, "tls", receive(t, d, dest), body)
}

func requireNoTLS(t *testing.T, protocol, url string, tls driver.TLS, hint string) {
	t.Helper()
	d := openWith(t, protocol, driver.OpenOptions{URL: url, TLS: tls})
	_, err := d.Producer(soon(t), driver.ProducerSpec{
		Destination: driver.Destination{Name: "tls"}, Name: "p", MaxPending: 1, Variants: []driver.Variant{{Priority: -1}},
	}, driver.DoneFunc(func(driver.Slot, driver.Outcome) {}))
	require.Error(t, err)
	require.Equal(t, driver.ClassTLS, driver.ClassOf(err), "%v", err)
	require.Contains(t, driver.HintOf(err), hint, "%v", err)
}
