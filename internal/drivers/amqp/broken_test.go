//go:build unix

package amqp

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// sendUntilError sends until Send fails, and returns how many went out and the error.
func sendUntilError(t *testing.T, p *testProducer) (int, error) {
	t.Helper()
	for n := 0; ; n++ {
		if err := p.trySend(soon(t), "x"); err != nil {
			return n, err
		}
	}
}

// silence is in the errors of a connection that the idle time-out has ended.
const silence = "nothing was heard from the broker"

func TestBrokerIsKilled(t *testing.T) {
	a := brokertest.StartArtemis(t, brokertest.WithoutManagement()) // and again after each time
	for _, settle := range []string{"at-least-once", "at-most-once"} {
		t.Run(settle, func(t *testing.T) {
			noLeaks(t)
			r := newRigWith(t, driver.OpenOptions{URL: a.AMQPURL()}, "settle="+settle)
			p := r.producer(driver.ProducerSpec{Destination: queue(t), MaxPending: 200, Variants: body(strings.Repeat("x", 1024))})
			c := r.consumer(driver.ConsumerSpec{Destination: driver.Destination{Name: "other"}})
			killed := make(chan struct{})
			go func() {
				defer close(killed)
				<-p.hundred // in the middle of the sends
				a.Kill()
			}()
			n, err := sendUntilError(t, p)
			require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err), "%v", err)
			err = c.failed()
			require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err), "%v", err)
			require.NotEmpty(t, driver.HintOf(err))

			all := p.settle()
			require.Len(t, all, n, "Done once for each Send that returned nil")
			<-killed
			states := map[driver.State]int{}
			for _, o := range all {
				states[o.State]++
				if o.State != driver.Accepted {
					require.Equal(t, driver.ClassConnectionLost, o.Class, "%v", o.Err)
					require.NotContains(t, o.Err.Error(), silence)
				}
			}
			require.NotZero(t, states[driver.Accepted])
			require.Equal(t, n, states[driver.Accepted]+states[driver.Unknown], "%v", states)

			_, err = r.tryProducer(driver.ProducerSpec{Destination: queue(t)})
			require.Equal(t, driver.ClassConnect, driver.ClassOf(err), "a new producer finds the dead connection and dials: %v", err)
			require.Contains(t, driver.HintOf(err), "is the broker running")
			require.NoError(t, a.Start(t.Context()))
			p = r.producer(driver.ProducerSpec{Destination: queue(t)})
			p.send("back again")
			p.settleAccepted(1)
		})
	}
}

func TestBrokerIsPaused(t *testing.T) {
	noLeaks(t)
	a := brokertest.StartArtemis(t, brokertest.WithoutManagement())
	r := newRigWith(t, driver.OpenOptions{URL: a.AMQPURL()})
	listening := newRigWith(t, driver.OpenOptions{URL: a.AMQPURL()}, "idle-timeout=10s")
	hurried := newRigWith(t, driver.OpenOptions{URL: a.AMQPURL(), ConnectTimeout: time.Second})
	// Large bodies fill all buffers.
	p := r.producer(driver.ProducerSpec{Destination: queue(t), MaxPending: 100, Variants: append(body("x"), body(strings.Repeat("x", 4<<20))...)})
	p.send("a")
	c := listening.consumer(driver.ConsumerSpec{Destination: queue(t)})
	require.NoError(t, a.Pause())
	defer func() { require.NoError(t, a.Resume()) }()

	require.NoError(t, p.trySendAs(soon(t), 1, "large")) // into our own buffers
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	sent := 1
	var err error
	for ; err == nil; sent++ {
		err = p.trySendAs(ctx, 1, "large")
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)

	closing, cancel2 := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel2()
	require.NoError(t, p.Close(closing))
	p.mu.Lock()
	unknown := 0
	for _, o := range p.all {
		if o.State == driver.Unknown {
			unknown++
			require.NotContains(t, o.Err.Error(), silence, "the idle time-out is later")
		}
	}
	require.Len(t, p.all, sent)
	require.NotZero(t, unknown)
	p.mu.Unlock()

	_, err = hurried.tryProducer(driver.ProducerSpec{Destination: queue(t), Connection: conn("new")})
	require.Equal(t, driver.ClassTimeout, driver.ClassOf(err), "%v", err)

	// Nothing is heard for the idle time-out.
	err = c.failed()
	require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err), "%v", err)
	require.Contains(t, err.Error(), silence+" for 10s")
}

func TestOperatorClosesConnection(t *testing.T) {
	a := sharedBroker.Artemis(t)
	r := newRig(t, a.AMQPURL())
	p := r.producer(driver.ProducerSpec{Destination: queue(t)})
	c := r.consumer(driver.ConsumerSpec{Destination: queue(t)})
	for _, name := range []string{"perfmq-test-producer", "perfmq-test-consumer"} {
		n, err := a.CloseConnections(soon(t), name)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	err := c.failed()
	require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err), "%v", err)
	_, err = sendUntilError(t, p)
	require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err), "%v", err)
}

func TestQueueIsDeleted(t *testing.T) {
	a := sharedBroker.Artemis(t)
	r := newRig(t, a.AMQPURL())
	q := queue(t)
	c := r.consumer(driver.ConsumerSpec{Destination: q})
	require.NoError(t, a.DeleteQueue(soon(t), q.Name))
	err := c.failed()
	require.Contains(t, []driver.Class{driver.ClassClosedByBroker, driver.ClassNotFound}, driver.ClassOf(err), "%v", err)
	require.Contains(t, err.Error(), "the broker closed the link")
}

func TestLogin(t *testing.T) {
	noLeaks(t)
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
		{
			name: "tls on a plain port", opts: driver.OpenOptions{URL: strings.Replace(a.AMQPURL(), "amqp:", "amqps:", 1), TLS: full},
			class: driver.ClassTimeout, hint: "amqp://",
		},
		{
			name: "plain on a tls port", opts: driver.OpenOptions{URL: strings.Replace(a.AMQPSURL(), "amqps:", "amqp:", 1)},
			class: driver.ClassTimeout, hint: "amqps://",
		},
		{
			name: "port of another protocol", opts: driver.OpenOptions{URL: strings.Replace(a.STOMPURL(), "stomp:", "amqp:", 1)},
			class: driver.ClassTimeout, hint: "AMQP port",
		},
		{name: "nobody there", opts: driver.OpenOptions{URL: "amqp://127.0.0.1:1"}, class: driver.ClassConnect, hint: "is the broker running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			noLeaks(t)
			if c.class == driver.ClassTimeout {
				c.opts.ConnectTimeout = 2 * time.Second // for the broker that never answers
			}
			r := newRigWith(t, c.opts, c.options...)
			p, err := r.tryProducer(driver.ProducerSpec{Destination: queue(t)})
			if c.class == driver.ClassNone {
				require.NoError(t, err)
				p.send("x")
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

func TestWebServerIsNoBroker(t *testing.T) {
	a := sharedBroker.Artemis(t)
	host, _, _ := strings.Cut(strings.TrimPrefix(a.ManagementURL(), "http://"), "/")
	r := newRig(t, "amqp://"+host)
	_, err := r.tryProducer(driver.ProducerSpec{Destination: queue(t)})
	require.Equal(t, driver.ClassProtocol, driver.ClassOf(err), "%v", err)
	require.Contains(t, driver.HintOf(err), "AMQP port")
}
