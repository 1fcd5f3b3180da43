// Package rocketmqgo is RocketMQ on the client library github.com/apache/rocketmq-client-go/v2, used as an application uses it: a
// call of SendSync for each message, and a push consumer. It shares no code of the protocol with the native driver, see
// internal/drivers/rocketmq.
//
// # What the library is like
//
// It connects again by itself and tells nobody of a connection that was lost: sends then fail, after three seconds if they were
// under way; a consumer goes on when the pull that was under way has had its thirty seconds. A message is sent once, as the
// library's own retries would store some of them twice, and bodies are not compressed.
//
// A queue is a topic with one consumer group, as for the native driver. A new group replays what the broker still has of a topic,
// because the library does not ask for less. So consumers of topics are broadcasting ones, which begin at the end of each queue;
// where they are, the library writes into files below the home directory, which are removed here; and there are no durable or
// shared subscriptions. Consumers that join or leave a group while messages come may get some of them twice.
//
// It has no encrypted connections. It does not tell a consumer that its login was refused, so that logins are refused here. It
// reads frames of any size. After Shutdown it leaves behind: the connection to the name server, until that was silent for two minutes;
// and goroutines that sleep for up to thirty seconds, and a consumer's that clears what has expired for fifteen minutes.
package rocketmqgo

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	liberrors "github.com/apache/rocketmq-client-go/v2/errors"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	libproducer "github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"

	"github.com/perfmq/perfmq/internal/drivers/library"
	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Options are the settings of this driver.
type Options struct {
	Queues int `opt:"queues" help:"queues of a topic that is created because it does not exist, 1 to 1024"`
}

const (
	systemTopic = "TBW102"             // which all brokers have that create topics (TopicValidator.AUTO_CREATE_TOPIC_KEY_TOPIC)
	maxName     = 100                  // of a topic, so that names of groups made of it are legal
	look        = 5 * time.Millisecond // how often to look at what the library does not tell
	hintNative  = "use --client native"
)

// Factory describes the protocol and opens drivers for it. It turns off the library's logging, which belongs to the process.
func Factory() driver.Factory {
	rlog.SetLogger(silence{})
	p := &transport.Protocol{
		Title: "RocketMQ", Schemes: []string{"rocketmq", "rocketmq+ssl"}, Encrypted: []string{"rocketmq+ssl"}, PlainPort: "9876", TLSPort: "9876",
	}
	f := driver.Factory{
		Name: "rocketmq", Title: "Apache RocketMQ (remoting)", Client: "rocketmq-client-go", Schemes: p.Schemes,
		DefaultURL: "rocketmq://localhost:" + p.PlainPort,
		Capabilities: driver.Capabilities{
			Reconnects: true,
			Queue:      driver.KindCapabilities{Exists: true, Group: true, Properties: true, Reject: true, Concurrency: true},
			Topic:      driver.KindCapabilities{Exists: true, Group: true, Properties: true, Concurrency: true},
		},
		NewOptions: func() any { return &Options{Queues: 8} },
		Check:      func(opts driver.OpenOptions) error { _, err := check(p, &opts); return err },
	}
	f.Open = func(_ context.Context, opts driver.OpenOptions) (driver.Driver, error) {
		b, err := check(p, &opts)
		return &rocketDriver{
			factory: f, broker: b, queues: opts.Options.(*Options).Queues, maxBody: opts.LargestBody(), groups: map[string][]*consumer{},
		}, err
	}
	return f
}

// check refuses what the library does not have, or does not tell the failures of.
func check(p *transport.Protocol, opts *driver.OpenOptions) (library.Broker, error) {
	const op = "check the settings"
	b, err := library.NewBroker(p, opts)
	if b.Target.TLS {
		err = errors.Join(err, library.Unsupported(op, hintNative+", or rocketmq://", "rocketmq-client-go has no encrypted connections"))
	}
	if b.Target.User != "" {
		err = errors.Join(err, library.Unsupported(op, hintNative, "a login: rocketmq-client-go does not tell a consumer that its login was refused"))
	}
	if n := opts.Options.(*Options).Queues; n < 1 || n > 1024 {
		err = errors.Join(err, driver.Errorf(driver.ClassOther, op, "", "option queues=%d: want 1 to 1024", n))
	}
	return b, err
}

// rocketDriver is a [driver.Driver]. Each producer and consumer has connections of its own, as a member of a group has to.
type rocketDriver struct {
	factory         driver.Factory
	broker          library.Broker
	queues, maxBody int

	mu     sync.Mutex
	server string // of admin
	admin  admin.Admin
	groups map[string][]*consumer // those that are open
}

// Close implements [driver.Driver].
func (d *rocketDriver) Close(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.admin != nil {
		_ = d.admin.Close()
	}
	d.admin, d.server = nil, ""
	return nil
}

// instance is a name of a client that no other has.
func instance(spec *driver.Connection) string { return spec.Name + "-" + rand.Text()[:8] }

// checkName refuses what brokers do not allow, beside what the drivers on libraries refuse.
func checkName(op string, dest driver.Destination) error {
	if len(dest.Name) > maxName || slices.ContainsFunc([]byte(dest.Name), func(c byte) bool { return c == '.' || c == ':' }) {
		return library.Unsupported(op, "use letters, digits, - and _, at most 100 of them", dest.Name+" is not a legal name of a topic")
	}
	return nil
}

// prepare returns a name server, and the queues of the topic of dest, which is created if it does not exist.
func (d *rocketDriver) prepare(ctx context.Context, op string, dest driver.Destination) (server string, queues []*primitive.MessageQueue, err error) {
	server, err = library.Dial(ctx, &d.broker, func(_ context.Context, _ string, conn net.Conn) (string, error) {
		return conn.RemoteAddr().String(), conn.Close() // the library dials itself, and wants addresses
	})
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.broker.ConnectTimeout)
	defer cancel()
	asking, err := d.administer(server)
	if err != nil {
		return "", nil, driver.Errorf(driver.ClassOther, op, hintNative, "%w", err)
	}
	for created := false; ; created = true {
		queues, err = bounded(ctx, func() ([]*primitive.MessageQueue, error) { return asking.FetchPublishMessageQueues(ctx, dest.Name) })
		if !errors.Is(err, liberrors.ErrTopicNotExist) {
			break
		}
		if !created {
			if err = d.create(ctx, server, asking, dest.Name); err != nil {
				break
			}
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return "", nil, driver.Errorf(driver.ClassNotFound, op, "create the topic; the broker's log may say more", "the broker did not create the topic %s", dest.Name)
		}
	}
	switch {
	case err == nil && len(queues) > 0:
		return server, queues, nil
	case err == nil:
		return "", nil, driver.Errorf(driver.ClassNotFound, op, "look at the topic's perm", "the topic %s has no queue that can be written to", dest.Name)
	case errors.Is(err, liberrors.ErrTopicNotExist):
		return "", nil, driver.Errorf(driver.ClassNotFound, op, "create the topic, or set autoCreateTopicEnable=true in the broker's configuration; is a broker registered with the name server?", "%w", err)
	case driver.ClassOf(err) == driver.ClassTimeout:
		return "", nil, driver.Errorf(driver.ClassTimeout, op, "is this a name server? See --connect-timeout", "%s did not answer in time: %w", server, err)
	}
	return "", nil, driver.Errorf(driver.ClassConnect, op, "is this a name server, and is the broker running?", "%w", err)
}

// administer returns the client that asks a name server, one for all: each leaves a connection behind.
func (d *rocketDriver) administer(server string) (admin.Admin, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == server {
		return d.admin, nil
	}
	if d.admin != nil {
		_ = d.admin.Close()
	}
	var err error
	d.admin, err = admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver([]string{server})))
	d.server = server
	return d.admin, err
}

// create makes a topic on all brokers. Whether it was made, the name server tells: the library does not look at the answer.
func (d *rocketDriver) create(ctx context.Context, server string, asking admin.Admin, topic string) error {
	queues, err := bounded(ctx, func() ([]*primitive.MessageQueue, error) { return asking.FetchPublishMessageQueues(ctx, systemTopic) })
	if err != nil {
		return err
	}
	addresses, err := addressesOf(server, queues)
	for _, address := range addresses {
		if err == nil {
			err = asking.CreateTopic(ctx, admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(address),
				admin.WithReadQueueNums(d.queues), admin.WithWriteQueueNums(d.queues))
		}
	}
	return err
}

// addressesOf returns the addresses of the brokers that have the queues. The library tells them to the interceptor of a send alone:
// of one whose context has ended, so that nothing is sent, to a topic to which brokers let nobody send.
func addressesOf(server string, queues []*primitive.MessageQueue) (addresses []string, err error) {
	note := func(ctx context.Context, req, reply any, next primitive.Invoker) error {
		err := next(ctx, req, reply)
		if c, ok := primitive.GetProducerCtx(ctx); ok && c.BrokerAddr != "" && !slices.Contains(addresses, c.BrokerAddr) {
			addresses = append(addresses, c.BrokerAddr)
		}
		return err
	}
	p, err := rocketmq.NewProducer(libproducer.WithNameServer(primitive.NamesrvAddr{server}), libproducer.WithGroupName("perfmq-lookup"),
		libproducer.WithInstanceName("perfmq-lookup-"+rand.Text()[:8]), libproducer.WithRetry(0), libproducer.WithInterceptor(note),
		libproducer.WithQueueSelector(libproducer.NewManualQueueSelector()))
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Shutdown() }()
	ended, end := context.WithCancel(context.Background())
	end()
	asked := map[string]bool{}
	for _, queue := range queues {
		if !asked[queue.BrokerName] {
			m := primitive.NewMessage(systemTopic, []byte{0})
			m.Queue = queue
			_, _ = p.SendSync(ended, m) // an error, of course
		}
		asked[queue.BrokerName] = true
	}
	return addresses, nil
}

// bounded calls f, which goes on for some seconds at most when ctx has ended.
func bounded[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		v, err := f()
		results <- result{v, err}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// silence is a logger that says nothing: the library's own writes to standard error.
type silence struct{}

func (silence) Debug(string, map[string]any)   {}
func (silence) Info(string, map[string]any)    {}
func (silence) Warning(string, map[string]any) {}
func (silence) Error(string, map[string]any)   {}
func (silence) Fatal(string, map[string]any)   {}
func (silence) Level(string)                   {}
func (silence) OutputPath(string) error        { return nil }
