//go:build unix

package amqp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestLogin(t *testing.T) {
	a := brokertest.StartArtemis(t, brokertest.WithoutManagement(), brokertest.WithLogin(), brokertest.WithTLSClientCerts())
	certs := a.Certs()
	full := driver.TLS{CAFile: certs.CAFile, CertFile: certs.ClientCertFile, KeyFile: certs.ClientKeyFile}
	other, unnamed, noCert, insecure := full, full, full, full
	other.CAFile = certs.OtherCAFile
	unnamed.ServerName = "somebody.else"
	noCert.CertFile, noCert.KeyFile = "", ""
	insecure.CAFile, insecure.InsecureSkipVerify = "", true
	withUser := func(url string) string { return strings.Replace(url, "//", "//admin:admin@", 1) }
	for _, c := range []struct {
		name    string
		opts    driver.OpenOptions
		options []string
		class   driver.Class
		hint    string
	}{
		{name: "plain", opts: driver.OpenOptions{URL: a.AMQPURL(), User: "admin", Password: "admin"}},
		{name: "user in the URL", opts: driver.OpenOptions{URL: withUser(a.AMQPURL())}},
		{name: "override", opts: driver.OpenOptions{URL: strings.Replace(a.AMQPURL(), "//", "//x:y@", 1), User: "admin", Password: "admin"}},
		{
			name: "wrong password", opts: driver.OpenOptions{URL: a.AMQPURL(), User: "admin", Password: "wrong"},
			class: driver.ClassAuth, hint: "--password",
		},
		{name: "anonymous", opts: driver.OpenOptions{URL: a.AMQPURL()}, class: driver.ClassAuth, hint: "--user"},
		{
			name: "no permission", opts: driver.OpenOptions{URL: a.AMQPURL(), User: "nobody", Password: "nobody"},
			class: driver.ClassAuth, hint: "permissions",
		},
		{name: "tls", opts: driver.OpenOptions{URL: withUser(a.AMQPSURL()), TLS: full}},
		{name: "tls, not verified", opts: driver.OpenOptions{URL: withUser(a.AMQPSURL()), TLS: insecure}},
		{name: "external", opts: driver.OpenOptions{URL: a.AMQPSURL(), TLS: full}, options: []string{"sasl=external"}},
		{
			name: "unknown authority", opts: driver.OpenOptions{URL: withUser(a.AMQPSURL()), TLS: other},
			class: driver.ClassTLS, hint: "--tls-ca",
		},
		{
			name: "wrong name", opts: driver.OpenOptions{URL: withUser(a.AMQPSURL()), TLS: unnamed},
			class: driver.ClassTLS, hint: "--tls-server-name",
		},
		{
			name: "no client certificate", opts: driver.OpenOptions{URL: withUser(a.AMQPSURL()), TLS: noCert},
			class: driver.ClassTLS, hint: "--tls-cert",
		},
		{name: "nobody there", opts: driver.OpenOptions{URL: "amqp://127.0.0.1:1"}, class: driver.ClassConnect, hint: "is the broker running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.opts, c.options...)
			p, err := r.tryProducer(producerSpec(1))
			if c.class == driver.ClassNone {
				require.NoError(t, err)
				p.send(1)
				p.settleAccepted(1)
				return
			}
			require.Error(t, err)
			t.Logf("error: %v\nhint: %s", err, driver.HintOf(err))
			require.Equal(t, c.class, driver.ClassOf(err), "%v", err)
			require.Contains(t, driver.HintOf(err), c.hint)
			require.NotContains(t, err.Error(), "wrong", "passwords are not shown")
		})
	}
}
