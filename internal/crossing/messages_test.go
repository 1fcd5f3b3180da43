//go:build unix

package crossing

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	gostomp "github.com/go-stomp/stomp/v3"
	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/drivers/library/rocketmqgo"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

const stamp = int64(1_700_000_000_123_456)

// sentID has parts that neither 32 bits nor a float64 can hold.
func sentID() driver.ID {
	return driver.ID{Run: 1<<62 + 1, Producer: 2, Number: 1<<53 + 1, Sum: 1<<63 - 1}
}

// properties contain the characters that are special in STOMP's headers.
func properties() []driver.Property {
	return []driver.Property{
		{Key: "color", Value: "red"}, {Key: "text", Value: "a:b\\c\nd é"}, {Key: "number", Value: "0042"}, {Key: "empty", Value: ""},
	}
}

// bodies returns bodies that text protocols easily damage, and one that Artemis keeps as a large message.
func bodies() map[string][]byte {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	return map[string][]byte{
		"empty": {}, "nul": {0}, "newlines": []byte("\n\n\x00\n"), "every byte": every, "text": []byte("grün"),
		"64 KiB": bytes.Repeat(every, 256), "200 KiB": bytes.Repeat(every, 800),
	}
}

// TestMessages looks at single messages: with our driver of the other protocol, and with its client library.
func TestMessages(t *testing.T) {
	for broker, at := range bothBrokers(t) {
		for _, pair := range pairs() {
			from, to := pair[0], pair[1]
			t.Run(broker+"/"+from+"-"+to, func(t *testing.T) {
				sender, receiver := open(t, from, at[from]), open(t, to, at[to])
				for name, body := range bodies() {
					dest := driver.Destination{Name: strings.ReplaceAll("message."+from+"-"+to+"."+name, " ", "_")}
					send(t, sender, dest, body)
					requireReceived(t, name, receive(t, receiver, dest), body)
				}
				dest := driver.Destination{Name: "message." + from + "-" + to}
				send(t, sender, dest, []byte{0, 1, 2})
				if to == "amqp" {
					requireAMQP(t, broker, at[to], dest.Name, from == "stomp")
				} else {
					requireSTOMP(t, broker, at[to], dest.Name)
				}
				for _, client := range []string{driver.Native, library(from)} {
					sender := openClient(t, from, client, driver.OpenOptions{URL: at[from]})
					for i, text := range texts() {
						dest := driver.Destination{Name: fmt.Sprintf("text.%s-%s-%s-%d", from, to, client, i)}
						sendText(t, sender, dest, text)
						requireReceived(t, text, receive(t, receiver, dest), []byte(text))
						sendText(t, sender, dest, text)
						if to == "amqp" {
							m := receiveAMQP(t, at[to], dest.Name)
							require.Equal(t, text, m.Value, "%s: an amqp-value of a string", client)
							require.Empty(t, m.Data)
						} else {
							m := receiveSTOMP(t, broker, at[to], dest.Name)
							require.Equal(t, text, string(m.Body))
							_, sized := m.Header.Contains(frame.ContentLength)
							require.Equal(t, broker == "artemis", sized, "%s: a text has no content-length, but on Artemis all frames have one", client)
						}
					}
				}
			})
		}
	}
}

// texts are bodies of text; a header of STOMP would have to escape some of them.
func texts() []string { return []string{"grün: 名前\n\n\r\n\\n", strings.Repeat("ä", 100<<10)} }

// library is the client library of a protocol.
func library(protocol string) string { return "go-" + protocol }

func open(t *testing.T, protocol, url string, options ...string) driver.Driver {
	t.Helper()
	return openWith(t, protocol, driver.OpenOptions{URL: url}, options...)
}

func openWith(t *testing.T, protocol string, opts driver.OpenOptions, options ...string) driver.Driver {
	t.Helper()
	return openClient(t, protocol, driver.Native, opts, options...)
}

func openClient(t *testing.T, protocol, client string, opts driver.OpenOptions, options ...string) driver.Driver {
	t.Helper()
	for _, f := range append(drivers.All(), rocketmqgo.Factory()) {
		if f.Name == protocol && f.Client == client && f.Open != nil {
			opts.Options = f.NewOptions()
			require.NoError(t, driver.SetOptions(opts.Options, options))
			opts.User, opts.Password, opts.ConnectTimeout = brokertest.User, brokertest.Password, patience
			d := musttest.Get(f.Open(t.Context(), opts))(t)
			t.Cleanup(func() { require.NoError(t, d.Close(context.Background())) })
			return d
		}
	}
	t.Fatalf("no %s over %s", protocol, client)
	return nil
}

func send(t *testing.T, d driver.Driver, dest driver.Destination, body []byte) {
	t.Helper()
	sendVariant(t, d, dest, driver.Variant{Body: body, Priority: 7, Properties: properties()})
}

func sendText(t *testing.T, d driver.Driver, dest driver.Destination, text string) {
	t.Helper()
	sendVariant(t, d, dest, driver.Variant{Body: []byte(text), Text: true, Priority: -1})
}

func sendVariant(t *testing.T, d driver.Driver, dest driver.Destination, v driver.Variant) {
	t.Helper()
	ctx := soon(t)
	outcome := make(chan driver.Outcome, 1)
	p, err := d.Producer(ctx, driver.ProducerSpec{
		Connection: driver.Connection{Key: "p", Name: "p"}, Destination: dest, Name: "p", MaxPending: 1,
		Persistent: true, TTL: time.Hour,
		Variants: []driver.Variant{v},
	}, driver.DoneFunc(func(_ driver.Slot, o driver.Outcome) { outcome <- o }))
	require.NoError(t, err)
	require.NoError(t, p.Send(ctx, &driver.Message{Time: stamp, ID: sentID()}))
	require.NoError(t, p.Close(ctx))
	require.Equal(t, driver.Outcome{}, <-outcome)
}

func receive(t *testing.T, d driver.Driver, dest driver.Destination) *driver.Delivery {
	t.Helper()
	ctx := soon(t)
	c, err := d.Consumer(ctx, driver.ConsumerSpec{
		Connection: driver.Connection{Key: "c", Name: "c"}, Destination: dest, Name: "c",
	})
	require.NoError(t, err)
	run, stop := context.WithCancel(ctx)
	var got *driver.Delivery
	var once sync.Once
	require.NoError(t, c.Run(run, func(m *driver.Delivery) driver.Verdict {
		once.Do(func() {
			kept := *m
			kept.Body = bytes.Clone(m.Body)
			got = &kept
		})
		stop()
		return driver.Accept
	}))
	require.NoError(t, c.Close(ctx))
	require.NotNil(t, got, "no message came")
	return got
}

func requireReceived(t *testing.T, name string, got *driver.Delivery, body []byte) {
	t.Helper()
	require.Truef(t, bytes.Equal(body, got.Body), "the body %q changed: %d bytes instead of %d", name, len(got.Body), len(body))
	require.True(t, got.HasTime, name)
	require.Equal(t, stamp, got.Time, name)
	require.Equal(t, sentID(), got.ID, name)
	require.False(t, got.Redelivered, name)
}

// requireAMQP reads a message with the client library. Text says that it was sent over STOMP.
func requireAMQP(t *testing.T, broker, url, queue string, text bool) {
	t.Helper()
	m := receiveAMQP(t, url, queue)
	require.Equal(t, []byte{0, 1, 2}, m.GetData())
	for _, p := range properties() {
		require.Equal(t, p.Value, m.ApplicationProperties[p.Key], "%s: property %s", broker, p.Key)
	}
	if text {
		require.Equal(t, "1700000000123456", m.ApplicationProperties["time"], "the brokers make it a string")
	} else {
		require.Equal(t, stamp, m.ApplicationProperties["time"])
	}
	require.NotNil(t, m.Header)
	require.True(t, m.Header.Durable)
	require.EqualValues(t, 7, m.Header.Priority)
	expires := m.Header.TTL > 0 || m.Properties != nil && m.Properties.AbsoluteExpiryTime != nil
	require.True(t, expires, "it expires")
}

// requireSTOMP reads a message with the client library.
func requireSTOMP(t *testing.T, broker, url, queue string) {
	t.Helper()
	m := receiveSTOMP(t, broker, url, queue)
	require.Equal(t, []byte{0, 1, 2}, m.Body)
	for _, p := range properties() {
		value, has := m.Header.Contains(p.Key)
		require.True(t, has, "%s: property %s", broker, p.Key)
		require.Equal(t, p.Value, value, "%s: property %s", broker, p.Key)
	}
	require.Equal(t, "1700000000123456", m.Header.Get("time"))
	require.Equal(t, "true", m.Header.Get("persistent"))
	require.Equal(t, "7", m.Header.Get("priority"))
	require.NotContains(t, []string{"", "0"}, m.Header.Get("expires"), "it expires")
	require.Equal(t, "3", m.Header.Get(frame.ContentLength))
}

func receiveAMQP(t *testing.T, url, queue string) *amqp.Message {
	t.Helper()
	ctx := soon(t)
	conn := musttest.Get(amqp.Dial(ctx, url, &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()}))(t)
	defer conn.Close()
	session := musttest.Get(conn.NewSession(ctx, nil))(t)
	r := musttest.Get(session.NewReceiver(ctx, queue, &amqp.ReceiverOptions{SourceCapabilities: []string{"queue"}}))(t)
	m := musttest.Get(r.Receive(ctx, nil))(t)
	require.NoError(t, r.AcceptMessage(ctx, m))
	return m
}

func receiveSTOMP(t *testing.T, broker, url, queue string) *gostomp.Message {
	t.Helper()
	conn := musttest.Get(gostomp.Dial("tcp", strings.TrimPrefix(url, "stomp://")))(t)
	defer conn.MustDisconnect() // Disconnect of the library misses its receipt now and then
	dest, kind := "/queue/"+queue, "ignored"
	if broker == "artemis" {
		dest, kind = queue, "ANYCAST"
	}
	sub := musttest.Get(conn.Subscribe(dest, gostomp.AckAuto, gostomp.SubscribeOpt.Header("subscription-type", kind)))(t)
	var m *gostomp.Message
	select {
	case m = <-sub.C:
	case <-time.After(patience):
		require.NoError(t, errors.New("no message came"))
	}
	require.NoError(t, m.Err)
	return m // the end of the connection ends the subscription: the library's Unsubscribe misses its receipt now and then
}

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

// orderMessages is the number of messages of each pair of protocols; `make features` sends more.
var orderMessages = flag.Int("order.messages", 5000, "messages of which the tests of order compare the order")

// TestOrder: the messages of one producer with a hundred in flight reach the only consumer of its queue in the order
// of the Send calls, with their IDs unchanged: by our own verification, which takes anything else for a broker's fault.
func TestOrder(t *testing.T) {
	all := bothBrokers(t)
	all["rabbitmq"] = urls{"amqp": shared.RabbitMQ(t).AMQPURL(), "stomp": shared.RabbitMQ(t).STOMPURL()}
	for broker, at := range all {
		for _, pair := range pairs() {
			from, to := pair[0], pair[1]
			t.Run(broker+"/"+from+"-"+to, func(t *testing.T) {
				if broker == "rabbitmq" && from != to {
					requireNoProperties(t, open(t, from, at[from]), open(t, to, at[to]))
					return
				}
				s := perfmq(t, from, "client", "--url", at[from], "--consumer-url", at[to], "--user", brokertest.User, "--password", brokertest.Password,
					"--verify", "--message-count", strconv.Itoa(*orderMessages), "--max-pending", "100", "--threshold", "out_of_order == 0",
					"queue://order."+from+"-"+to)
				require.EqualValues(t, *orderMessages, s.TotalReceived)
			})
		}
	}
}

// requireNoProperties holds RabbitMQ to the package comment: the body crosses, the time and the ID do not.
func requireNoProperties(t *testing.T, from, to driver.Driver) {
	t.Helper()
	dest := driver.Destination{Name: "crossing"}
	sendVariant(t, from, dest, driver.Variant{Body: []byte("body"), Priority: -1})
	got := receive(t, to, dest)
	require.Equal(t, "body", string(got.Body))
	require.False(t, got.HasTime, "if the time comes along now, let TestOrder check the IDs")
	require.Zero(t, got.ID)
}
