package perfmq

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/cli"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// carrier returns a protocol of one's own, over a broker in this process. It has no requests and replies.
func carrier() driver.Factory {
	f := mem.New().Factory()
	f.Name, f.Title, f.Hidden, f.Client = "pigeon", "Pigeon 7", false, "pigeon-go"
	f.Schemes, f.DefaultURL = []string{"pigeon"}, "pigeon://default"
	check, open := f.Check, f.Open
	home := func(opts driver.OpenOptions) driver.OpenOptions {
		_, name, _ := strings.Cut(opts.URL, "://")
		opts.URL = "mem://" + name
		return opts
	}
	f.Check = func(opts driver.OpenOptions) error { return check(home(opts)) }
	f.Open = func(ctx context.Context, opts driver.OpenOptions) (driver.Driver, error) {
		return open(ctx, home(opts))
	}
	f.Capabilities.Queue.RequestReply, f.Capabilities.Topic.RequestReply = false, false
	return f
}

// call runs a command of the program with drivers of one's own.
func call(t *testing.T, extra []driver.Factory, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	env, err := environment(extra)
	require.NoError(t, err)
	var out, failed bytes.Buffer
	env.Args, env.Stdout, env.Stderr = args, &out, &failed
	return cli.Main(env), out.String(), failed.String()
}

// TestOwnProtocol: a driver of one's own is a protocol like the others, wherever perfmq names protocols.
func TestOwnProtocol(t *testing.T) {
	own := []driver.Factory{carrier()}
	dir := t.TempDir()
	for _, c := range []struct {
		args string
		want string // a part of the output
	}{
		{"--help", "pigeon       Load over Pigeon 7"},
		{"pigeon client --help-all", "-o latency="},
		{"pigeon client --dry-run --message-count 5 topic://T", "url: pigeon://default"},
		{"pigeon client --dry-run --url pigeon://x --message-count 5", "protocol: pigeon"},
		{"amqp client --consumer-protocol pigeon --message-count 5 --dry-run", "protocol: pigeon"},
		{"scenario schema", "rocketmq, pigeon (default"},
		{"__complete pi", "pigeon\tLoad over Pigeon 7"},
		{"__complete pigeon ", "connections\tOpen connections\nconsumer\tReceive messages\nproducer\tSend messages\n:4"},
		{"__complete pigeon client --url ", "pigeon://"},
		{"__complete amqp client --consumer-protocol ", "pigeon"},
		{"version", ", with pigeon pigeon-go\n"},
	} {
		status, out, failed := call(t, own, strings.Split(c.args, " ")...)
		require.Zero(t, status, failed)
		require.Truef(t, strings.Contains(out, c.want), "%s: %.2000s", c.args, out)
	}
	status, _, failed := call(t, own, "pigeon", "requester", "queue://Q")
	require.Equal(t, result.StatusUsage, status)
	require.Contains(t, failed, `unknown command "requester" of perfmq pigeon`)

	status, _, failed = call(t, own, "pigeon", "client", "--message-count", "500", "--verify", "--result", filepath.Join(dir, "run"), "queue://Q")
	require.Zero(t, status, failed)
	r := musttest.Get(result.Read(filepath.Join(dir, "run")))(t)
	require.EqualValues(t, 500, r.Total.Consumers.Received)
	require.Equal(t, "pigeon-go", r.Versions.Clients[0].Name)

	scenario := filepath.Join(dir, "scenario.yaml")
	require.NoError(t, os.WriteFile(scenario, []byte(`version: 1
verify: true
brokers:
  loft: {url: "pigeon://roof"}
groups:
  senders: {role: producer, broker: loft, destination: topic://T, message-count: 300}
  readers: {role: consumer, broker: loft, destination: topic://T}
thresholds: [lost == 0, failed == 0]
`), 0o600))
	status, out, failed := call(t, own, "run", "--json", filepath.Join(dir, "out.json"), scenario)
	require.Zero(t, status, out+failed)
	text := musttest.Get(os.ReadFile(filepath.Join(dir, "out.json")))(t)
	require.True(t, json.Valid(text))
	require.Truef(t, strings.Contains(string(text), `"protocol":"pigeon"`), "%.3000s", text[max(0, len(text)-3000):])
	status, _, failed = call(t, nil, "run", scenario)
	require.Equal(t, result.StatusUsage, status)
	require.Contains(t, failed, "pigeon")
}

// TestOwnClient: a driver of one's own may be a further client of a protocol that perfmq has.
func TestOwnClient(t *testing.T) {
	f := carrier()
	f.Name, f.Title, f.Schemes, f.DefaultURL = "amqp", "AMQP 1.0", []string{"amqp+pigeon"}, "amqp+pigeon://x"
	own := []driver.Factory{f}
	for args, client := range map[string]string{
		"amqp client --client pigeon-go --dry-run":                       "pigeon-go",
		"amqp client --client library --dry-run":                         "go-amqp", // the first one
		"amqp client --client library --url amqp+pigeon://y --dry-run":   "pigeon-go",
		"amqp client --client library --url amqp://localhost --dry-run":  "go-amqp",
		"amqp client --client go-amqp --url amqp://localhost --dry-run ": "go-amqp",
	} {
		status, out, failed := call(t, own, strings.Fields(args)...)
		require.Zero(t, status, failed)
		require.Contains(t, out, "client: "+client, args)
	}
	status, _, failed := call(t, own, "amqp", "client", "--client", "x")
	require.Equal(t, result.StatusUsage, status)
	require.Contains(t, failed, "native, go-amqp, pigeon-go")
	status, _, failed = call(t, own, "amqp", "client", "--client", "pigeon-go", "--message-count", "10")
	require.Zero(t, status, failed)
}

// TestRefused: drivers that could not be used are refused, all at once.
func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*driver.Factory){
		"a name is small letters":                         func(f *driver.Factory) { f.Name = "Pigeon" },
		"it needs Title, Schemes, DefaultURL and Open":    func(f *driver.Factory) { f.Open = nil },
		"neither queues nor topics":                       func(f *driver.Factory) { f.Capabilities = driver.Capabilities{} },
		"perfmq has a command of this name":               func(f *driver.Factory) { f.Name = "merge" },
		`there is one by the same Client, "native"`:       func(f *driver.Factory) { f.Name, f.Client = "stomp", driver.Native },
		`driver 2 of perfmq.Main, "pigeon": there is one`: func(*driver.Factory) {},
	} {
		f := carrier()
		change(&f)
		_, err := environment([]driver.Factory{carrier(), f})
		require.ErrorContains(t, err, want)
	}
}
