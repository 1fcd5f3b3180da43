package perfmq_test

import (
	"context"
	"os"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/perfmq"
	"github.com/perfmq/perfmq/pkg/transport"
)

// options are the settings of the protocol, as -o stamps=true.
type options struct {
	Stamps bool `opt:"stamps" help:"messages have stamps"`
}

// factory describes the protocol. A driver has an open function of its own.
func factory() driver.Factory {
	p := &transport.Protocol{
		Title: "Pigeon", Schemes: []string{"pigeon", "pigeons"}, Encrypted: []string{"pigeons"},
		PlainPort: "1840", TLSPort: "1841",
	}
	f := driver.Factory{
		Name: "pigeon", Title: "Pigeon 7", Client: driver.Native, Hosts: p.Hosts,
		Capabilities: driver.Capabilities{TLS: true, Queue: driver.KindCapabilities{Exists: true}},
	}
	return transport.Factory(f, p, func() *options { return &options{Stamps: true} }, nil,
		func(s transport.Settings[options]) driver.Driver { return &loft{s} })
}

// loft is the driver.
type loft struct {
	cfg transport.Settings[options]
}

func (l *loft) Producer(context.Context, driver.ProducerSpec, driver.Completions) (driver.Producer, error) {
	return nil, driver.Errorf(driver.ClassUnsupported, "", "", "pigeons sleep")
}

func (l *loft) Consumer(context.Context, driver.ConsumerSpec) (driver.Consumer, error) {
	return nil, driver.Errorf(driver.ClassUnsupported, "", "", "pigeons sleep")
}

func (l *loft) Close(context.Context) error { return nil }

// A perfmq with one more protocol: `perfmq pigeon client --url pigeon://roof queue://Q`.
func ExampleMain() {
	os.Exit(perfmq.Main(factory()))
}
