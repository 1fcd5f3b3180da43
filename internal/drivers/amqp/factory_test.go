package amqp

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

func TestFactory(t *testing.T) {
	f := Factory()
	require.Equal(t, "amqp", f.Name)
	require.Equal(t, "amqp", f.Schemes[0])
	require.Equal(t, driver.Native, f.Client)
	require.True(t, f.Capabilities.Queue.Transactions && f.Capabilities.Topic.TransactedReceive)
	require.NoError(t, f.Check(driver.OpenOptions{URL: f.DefaultURL, ConnectTimeout: time.Second, Options: f.NewOptions()}))
	var names []string
	for _, o := range driver.Describe(f.NewOptions()) {
		require.NotEmpty(t, o.Help)
		names = append(names, o.Name+"="+o.Default)
	}
	require.Equal(t, []string{"settle=at-least-once", "sasl=auto", "idle-timeout=1m0s", "virtual-host=", "declare=no", "delivery-limit=0"}, names)
}

func TestCheckFindsAllMistakes(t *testing.T) {
	err := Factory().Check(driver.OpenOptions{
		URL: "amqps://h:0", TLS: driver.TLS{CAFile: "/no/such/file"},
		Options: &Options{Settle: "x", SASL: "y", IdleTimeout: time.Millisecond},
	})
	for _, want := range []string{
		"connect timeout", `port "0"`, "settle=x", "sasl=y", "idle-timeout=1ms",
	} {
		require.ErrorContains(t, err, want)
	}
	err = Factory().Check(driver.OpenOptions{
		URL: "amqps://h", TLS: driver.TLS{CAFile: "/no/such/file"}, ConnectTimeout: time.Second, Options: defaultOptions(),
	})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, driver.ClassTLS, driver.ClassOf(err))
	require.ErrorContains(t, Factory().Check(driver.OpenOptions{URL: "amqp://h", ConnectTimeout: 1, Options: &struct{}{}}), "not those of AMQP")
}

func openDriver(t *testing.T, opts driver.OpenOptions) *amqpDriver {
	return musttest.Get(Factory().Open(t.Context(), opts))(t).(*amqpDriver)
}

func TestLoginNeeds(t *testing.T) {
	for _, c := range []struct{ url, sasl, err string }{
		{"amqp://h", "plain", "needs a user"},
		{"amqp://h", "scram-sha-256", "needs a user"},
		{"amqp://h", "scram-sha-512", "needs a user"},
		{"amqp://h", "external", "needs an encrypted connection"},
	} {
		o := defaultOptions()
		o.SASL = c.sasl
		err := Factory().Check(driver.OpenOptions{URL: c.url, ConnectTimeout: 1, Options: o})
		require.ErrorContains(t, err, c.err)
		require.NotEmpty(t, driver.HintOf(err))
	}
}

func TestOpenFrame(t *testing.T) {
	o := defaultOptions()
	o.VirtualHost, o.IdleTimeout = "vhost:x", 0
	d := openDriver(t, driver.OpenOptions{URL: "amqp://h", ConnectTimeout: 1, Options: o})
	got := d.openFrame(d.cfg.Target.Hosts[0], driver.Connection{Name: "perfmq-1"})
	require.Equal(t, "perfmq-1", got.ContainerID)
	require.Equal(t, "vhost:x", got.Hostname)
	require.Zero(t, got.IdleTimeout)
	require.Equal(t, "perfmq", wire.LookupText(got.Properties, "product"))
	got = d.openFrame(d.cfg.Target.Hosts[0], driver.Connection{Name: "perfmq-1", ClientID: "me"})
	require.Equal(t, "me", got.ContainerID)
}

func TestDecode(t *testing.T) {
	c := &connection{driver: newDriver(transport.Settings[Options]{MaxBody: 100})}
	var dec decoder
	message := func(key string, value []byte) []byte {
		b := wire.BeginMap(wire.AppendDescriptor(nil, wire.DescApplicationProperties))
		at := len(b)
		b = append(wire.AppendStr(b, key), value...)
		wire.EndCompound(b, at-9, 2)
		return wire.AppendData(b, []byte("x"))
	}
	for _, v := range []struct {
		value []byte
		time  int64
		has   bool
	}{
		{wire.AppendLong(nil, 5), 5, true},
		{wire.AppendLong(nil, -5), -5, true},
		{wire.AppendUlong(nil, 5), 5, true},
		{wire.AppendUlong(nil, 1<<63), 0, false},
		{wire.AppendUint(nil, 5), 5, true},
		{[]byte{wire.CodeShort, 0, 5}, 5, true},
		{[]byte{wire.CodeByte, 5}, 5, true},
		{[]byte{wire.CodeTimestamp, 0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0x7b}, 1_700_000_000_123_000, true},
		{wire.AppendStr(nil, "1700"), 1700, true},
		{wire.AppendStr(nil, "yesterday"), 0, false},
		{wire.AppendBool(nil, true), 0, false},
		{wire.AppendNull(nil), 0, false},
	} {
		d := musttest.Get(dec.decode(c, message(driver.TimeProperty, v.value)))(t)
		require.Equal(t, v.has, d.HasTime, "%x", v.value)
		if v.has {
			require.Equal(t, v.time, d.Time, "%x", v.value)
		}
	}
	for _, v := range []struct {
		value []byte
		want  driver.ID
	}{
		{wire.AppendStr(nil, "9223372036854775807-0-3-4"), driver.ID{Run: 1<<63 - 1, Number: 3, Sum: 4}},
		{wire.AppendBinary(nil, []byte("1-2-3-4")), driver.ID{Run: 1, Producer: 2, Number: 3, Sum: 4}},
		{wire.AppendNull(nil), driver.ID{}},
		{wire.AppendStr(nil, ""), driver.GarbledID()},
		{wire.AppendStr(nil, "1-2-3"), driver.ID{Run: 1, Producer: 2, Number: driver.Unnumbered, Delay: 3}},
		{wire.AppendStr(nil, "1-2-3-"), driver.GarbledID()},
		{wire.AppendLong(nil, 1), driver.GarbledID()},
	} {
		d := musttest.Get(dec.decode(c, message(driver.IDProperty, v.value)))(t)
		require.Equal(t, v.want, d.ID, "%x", v.value)
	}
	for _, v := range []struct {
		body []byte
		want string
	}{
		{nil, ""},
		{wire.AppendData(nil, []byte("a")), "a"},
		{wire.AppendData(wire.AppendData(wire.AppendData(nil, []byte("a")), nil), []byte("bc")), "abc"},
		{wire.AppendTextValue(nil, "text"), "text"},
		{wire.AppendLong(wire.AppendDescriptor(nil, wire.DescValue), 1), ""},
	} {
		header := wire.Header{Durable: true}
		d := musttest.Get(dec.decode(c, append(header.AppendSection(nil), v.body...)))(t)
		require.Equal(t, v.want, string(d.Body))
		require.False(t, d.HasTime)
	}
	_, err := dec.decode(c, wire.AppendData(nil, make([]byte, 101)))
	require.Equal(t, driver.ClassTooLarge, driver.ClassOf(err), "%v", err)
	require.Contains(t, driver.HintOf(err), "--max-message-size")
}
