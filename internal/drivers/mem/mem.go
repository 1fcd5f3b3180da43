// Package mem is a message broker inside the process, as a driver: the known truth for tests of the measurement, and
// the fastest possible peer, which shows the ceiling of the tool itself.
//
// # Model
//
// A [Broker] has queues and topics. A queue holds each message until one of its consumers takes it; a topic puts it
// into the queue of every subscription. Consumers take up to their credit at once, an equal share of the available
// messages. No message is copied.
//
// Without faults, Send stores the message and calls Done before it returns: no goroutine, no clock, no allocation. With
// [Options] set, each message is judged in the order of arrival over the whole broker, so that counts are exact: "every
// n-th" means the n-th, 2n-th, ... since the options were set. If several faults apply to one message, the first in
// this order wins: fail, reject, release, rollback, withhold; and for stored messages: lose, duplicate, reorder,
// damage, damage-id. [Broker.Stats] has the true counts.
//
// A transaction is a list of messages that its commit stores, or removes from the consumer's queue, all at once.
//
// Connections over a [Line] can be frozen and cut while the broker continues. The host "unreachable" refuses at once,
// "silent" never answers: connecting fails after the connect time-out.
//
// One lock guards a broker and everything that belongs to it. Unexported functions are called with it, except those of
// a driver. Completions, too, are called with it, unless Send reports the message at once: they must not call the
// broker.
//
// The package works inside testing/synctest when the broker is made inside the bubble.
package mem

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Factory returns the protocol "mem" with a broker of its own.
func Factory() driver.Factory { return New().Factory() }

// Factory returns the protocol "mem" with broker b for every host. It has all features except encryption.
func (b *Broker) Factory() driver.Factory {
	queue := driver.KindCapabilities{
		Exists: true, Persistent: true, TTL: true, Priority: true, Group: true, Properties: true, Selector: true,
		Transactions: true, TransactedReceive: true, Credit: true, Reject: true, Release: true, Concurrency: true,
		Redelivered: true, Delay: true, Text: true,
	}
	topic := queue
	topic.DurableSubscription, topic.SharedSubscription = true, true
	return driver.Factory{
		Name: "mem", Title: "in-process broker", Schemes: []string{"mem"}, DefaultURL: "mem://local",
		Client:       driver.Native,
		Capabilities: driver.Capabilities{Queue: queue, Topic: topic},
		Hosts: func(url string) []string {
			_, hosts, _ := splitURL(url)
			return hosts
		},
		NewOptions: func() any { return &Options{} },
		Check: func(opts driver.OpenOptions) error {
			_, err := b.newDriver(opts)
			return err
		},
		Open: func(_ context.Context, opts driver.OpenOptions) (driver.Driver, error) {
			return b.newDriver(opts)
		},
	}
}

// memDriver is a driver for one URL: hosts tried in order, and the connections made so far.
type memDriver struct {
	hosts   []string
	login   string // user:password
	options Options
	open    driver.OpenOptions
	broker  *Broker
	transport.Pool[*conn]
}

func (b *Broker) newDriver(opts driver.OpenOptions) (driver.Driver, error) {
	login, hosts, err := splitURL(opts.URL)
	if err != nil {
		return nil, err
	}
	d := &memDriver{login: opts.User + ":" + opts.Password, hosts: hosts, open: opts, broker: b}
	d.Open = func(ctx context.Context, spec driver.Connection) (*conn, error) { return d.dial(ctx, spec.Order) }
	if o, ok := opts.Options.(*Options); ok && o != nil {
		d.options = *o
	}
	if err := d.options.check(); err != nil {
		return nil, &driver.Error{Class: driver.ClassOther, Op: "open " + opts.URL, Hint: "correct the -o options", Err: err}
	}
	if d.login == ":" {
		d.login, _ = url.PathUnescape(login)
	}
	return d, nil
}

// splitURL splits mem://[login@]host[,host]...
func splitURL(text string) (login string, hosts []string, err error) {
	rest, ok := strings.CutPrefix(text, "mem://")
	if !ok {
		return "", nil, driver.Errorf(driver.ClassOther, "open "+text, "write mem://NAME", "not a mem URL")
	}
	if info, after, ok := strings.Cut(rest, "@"); ok {
		login, rest = info, after
	}
	return login, strings.Split(strings.TrimSuffix(rest, "/"), ","), nil
}

// dial tries the hosts in an order, see [driver.Connection].
func (d *memDriver) dial(ctx context.Context, order []int) (c *conn, err error) {
	hosts := d.hosts
	if order != nil {
		hosts = nil
		for _, i := range order {
			hosts = append(hosts, d.hosts[i])
		}
	}
	for _, host := range hosts {
		connecting, cancel := context.WithTimeout(ctx, d.open.ConnectTimeout)
		c, err = d.broker.connect(connecting, host, d.login, d.options)
		if cancel(); err == nil {
			break
		}
	}
	return c, err
}

// Inspect implements [driver.Inspector].
func (d *memDriver) Inspect(
	ctx context.Context, destinations []driver.Destination,
) (list []driver.DestinationCount, err error) {
	for _, dest := range destinations {
		c, err := d.dial(ctx, nil)
		if err != nil {
			return nil, fmt.Errorf("ask the broker for its counters: %w", err)
		}
		c.End(ctx)
		list = append(list, c.inspect(dest))
	}
	return list, nil
}

// Broker implements [driver.Identified].
func (d *memDriver) Broker() (product, version string) {
	return "perfmq in-process broker", transport.Version
}

var (
	_ driver.Identified = (*memDriver)(nil)
	_ driver.Inspector  = (*memDriver)(nil)
)
