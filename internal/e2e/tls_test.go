//go:build unix

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTLS talks to an acceptor that demands a certificate of the client.
func TestTLS(t *testing.T) {
	t.Parallel()
	a := secure.Artemis(t)
	c := a.Certs()
	own := []string{"--tls-cert", c.ClientCertFile, "--tls-key", c.ClientKeyFile}
	login := []string{"--user", "admin", "--password", "admin"}
	silence := []string{"--connect-timeout", "4s"} // for the broker that never answers
	for name, x := range map[string]struct {
		args   [][]string
		status int
		says   string
	}{
		"CA and certificate, external":    {[][]string{{"--tls-ca", c.CAFile, "-o", "sasl=external"}, own}, statusOK, ""},
		"CA and certificate, plain":       {[][]string{{"--tls-ca", c.CAFile}, own, login}, statusOK, ""},
		"insecure":                        {[][]string{{"--tls-insecure"}, own, login}, statusOK, ""},
		"without the CA":                  {[][]string{own, login}, statusConnect, "--tls-ca"},
		"with another CA":                 {[][]string{{"--tls-ca", c.OtherCAFile}, own, login}, statusConnect, "--tls-ca"},
		"without a certificate":           {[][]string{{"--tls-ca", c.CAFile}, login}, statusConnect, "--tls-cert"},
		"another name":                    {[][]string{{"--tls-ca", c.CAFile, "--tls-server-name", "elsewhere.test"}, own, login}, statusConnect, "--tls-server-name"},
		"TLS where plain text is spoken":  {[][]string{{"--tls-ca", c.CAFile, "--url", "amqps" + a.AMQPURL()[4:]}, own, login, silence}, statusConnect, "amqp://"},
		"plain text where TLS is spoken":  {[][]string{{"--url", "amqp" + a.AMQPSURL()[5:]}, login, silence}, statusConnect, "amqps://"},
		"external without a certificate":  {[][]string{{"--tls-ca", c.CAFile, "-o", "sasl=external"}}, statusConnect, "--tls-cert"},
		"the right name for the wrong IP": {[][]string{{"--tls-ca", c.CAFile, "--tls-server-name", "localhost"}, own, login}, statusOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := newQueue(t, a)
			args := []string{"amqp", "client", "--message-count", "100", "--max-pending", "10", "queue://" + queue}
			given := false
			for _, more := range x.args {
				given = given || more[0] == "--url" || len(more) > 2 && more[2] == "--url"
				args = append(args, more...)
			}
			if !given {
				args = append(args, "--url", a.AMQPSURL())
			}
			r := run(t, limit, args...)
			if x.status == statusConnect && r.status == statusUsage {
				r.status = statusConnect // a configuration that cannot work may be refused before connecting
			}
			require.Equal(t, x.status, r.status)
			if x.status != statusOK {
				require.Contains(t, r.stderr, "hint: ")
				require.Contains(t, r.stderr, x.says)
				return
			}
			require.EqualValues(t, 100, r.summary.TotalReceived)
			require.EqualValues(t, 100, settled(t, a, queue).MessagesAcked)
		})
	}
}
