package goamqp

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func TestFactory(t *testing.T) {
	f := Factory()
	require.Equal(t, "amqp", f.Name)
	require.Equal(t, "amqp", f.Schemes[0])
	require.False(t, f.Capabilities.Transactions || f.Capabilities.TransactedReceive)
	require.NoError(t, f.Check(driver.OpenOptions{URL: f.DefaultURL, ConnectTimeout: time.Second, Options: f.NewOptions()}))
	var names []string
	for _, o := range driver.Describe(f.NewOptions()) {
		require.NotEmpty(t, o.Help)
		names = append(names, o.Name+"="+o.Default)
	}
	require.Equal(t, []string{"settle=at-least-once", "sasl=auto", "idle-timeout=1m0s", "max-frame-size=65536", "virtual-host=", "dialect=auto", "declare=no", "max-priority=0", "from=first", "leave-queues=false"}, names)
}

func TestCheckFindsAllMistakes(t *testing.T) {
	err := Factory().Check(driver.OpenOptions{
		URL: "amqps://h:0", TLS: driver.TLS{CAFile: "/no/such/file"},
		Options: &Options{Settle: "x", SASL: "y", IdleTimeout: time.Millisecond, MaxFrameSize: 100},
	})
	for _, want := range []string{
		"connect timeout", `port "0"`, "settle=x", "sasl=y", "idle-timeout=1ms", "max-frame-size=100",
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

func TestLoginIsChosen(t *testing.T) {
	for _, c := range []struct{ url, user, sasl, want, err string }{
		{"amqp://h", "", "auto", "anonymous", ""},
		{"amqp://u@h", "", "auto", "plain", ""},
		{"amqp://h", "u", "auto", "plain", ""},
		{"amqp://u@h", "", "anonymous", "anonymous", ""},
		{"amqp://h", "", "plain", "", "needs a user"},
		{"amqps://h", "", "external", "external", ""},
		{"amqp://h", "", "external", "", "needs an encrypted connection"},
	} {
		o := defaultOptions()
		o.SASL = c.sasl
		cfg, err := newConfig(driver.OpenOptions{URL: c.url, User: c.user, ConnectTimeout: 1, Options: o})
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			require.NotEmpty(t, driver.HintOf(err))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, cfg.sasl)
	}
}

func TestConnOptions(t *testing.T) {
	o := defaultOptions()
	o.VirtualHost, o.IdleTimeout = "vhost:x", 0
	cfg, err := newConfig(driver.OpenOptions{URL: "amqp://h", ConnectTimeout: 1, Options: o})
	require.NoError(t, err)
	got := cfg.connOptions(cfg.target.Hosts[0], driver.Connection{Name: "perfmq-1"})
	require.Equal(t, "perfmq-1", got.ContainerID)
	require.Equal(t, "vhost:x", got.HostName)
	require.Negative(t, got.IdleTimeout, "0 would be the library's default")
	require.Greater(t, got.WriteTimeout, 24*time.Hour)
	require.Equal(t, "perfmq", got.Properties["product"])
	require.Equal(t, int64(os.Getpid()), got.Properties["process-id"])
	got = cfg.connOptions(cfg.target.Hosts[0], driver.Connection{Name: "perfmq-1", ClientID: "me"})
	require.Equal(t, "me", got.ContainerID)
}

func TestDecode(t *testing.T) {
	now := time.UnixMicro(1_700_000_000_123_000)
	for _, c := range []struct {
		value any
		time  int64
		has   bool
	}{
		{int64(5), 5, true},
		{int64(-5), -5, true},
		{uint64(5), 5, true},
		{uint64(1 << 63), 0, false},
		{int32(5), 5, true},
		{uint32(5), 5, true},
		{int16(5), 5, true},
		{uint16(5), 5, true},
		{int8(5), 5, true},
		{uint8(5), 5, true},
		{now, 1_700_000_000_123_000, true},
		{"1700", 1700, true},
		{"yesterday", 0, false},
		{5.0, 0, false},
		{true, 0, false},
		{nil, 0, false},
	} {
		var d driver.Delivery
		decode(&amqp.Message{ApplicationProperties: map[string]any{"time": c.value}}, &d)
		require.Equal(t, c.has, d.HasTime, "%T", c.value)
		if c.has {
			require.Equal(t, c.time, d.Time, "%T", c.value)
		}
	}
	for _, c := range []struct {
		value any
		want  driver.ID
	}{
		{"9223372036854775807-0-3-4", driver.ID{Run: 1<<63 - 1, Number: 3, Sum: 4}},
		{[]byte("1-2-3-4"), driver.ID{Run: 1, Producer: 2, Number: 3, Sum: 4}},
		{nil, driver.ID{}},
		{"", driver.GarbledID()},
		{"1-2-3", driver.GarbledID()},
		{amqp.Symbol("1-2-3-4"), driver.GarbledID()},
		{int64(1), driver.GarbledID()},
		{now, driver.GarbledID()},
	} {
		properties := map[string]any{"perfmq_id": c.value, "perfmq_number": int64(7)}
		d := driver.Delivery{ID: driver.ID{Run: 9}}
		decode(&amqp.Message{ApplicationProperties: properties}, &d)
		require.Equal(t, c.want, d.ID, "%v", properties)
	}
	for _, c := range []struct {
		m    amqp.Message
		body string
	}{
		{amqp.Message{}, ""},
		{amqp.Message{Data: [][]byte{[]byte("a")}}, "a"},
		{amqp.Message{Data: [][]byte{[]byte("a"), {}, []byte("bc")}}, "abc"},
		{amqp.Message{Value: "text"}, "text"},
		{amqp.Message{Value: []byte("bin")}, "bin"},
		{amqp.Message{Value: int64(1)}, ""},
	} {
		d := driver.Delivery{HasTime: true, Body: []byte("old")}
		decode(&c.m, &d)
		require.Equal(t, c.body, string(d.Body))
		require.False(t, d.HasTime)
	}
}

func TestHandover(t *testing.T) {
	credit := make(chan struct{})
	var h handover
	h.begin(credit)
	require.Equal(t, (<-chan struct{})(credit), h.Done(), "the first frame may be given up")
	require.Nil(t, h.Done(), "the others may not")
	_, has := h.Deadline()
	require.False(t, has)
	require.NoError(t, h.Err())
	require.False(t, h.recall(), "it was taken")
	require.NoError(t, h.Err())

	h.begin(credit)
	require.True(t, h.recall())
	require.ErrorIs(t, h.Err(), context.Canceled, "it will not be written")
	h.begin(credit)
	require.ErrorIs(t, h.Err(), context.Canceled, "nor will a later one")
	require.True(t, h.recall())
}
