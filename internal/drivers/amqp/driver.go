package amqp

import (
	"sync"

	"github.com/xdg-go/scram"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// amqpDriver is a [driver.Driver]: a set of connections by key.
type amqpDriver struct {
	transport.Identity
	transport.Pool[*connection]
	cfg   transport.Settings[Options]
	mem   transport.Buffers
	large sync.Pool // buffers for messages of several frames, which connections share in turn

	// Of Inspect: its connection, if there is one, and the host of the first request, for all requests, because other
	// hosts have other counts.
	asking    *transport.Lease[*connection]
	askedHost []int

	mu    sync.Mutex
	scram map[string]*scram.Client // by mechanism: they cache keys, which are expensive to derive
}

func newDriver(cfg transport.Settings[Options]) *amqpDriver {
	d := &amqpDriver{cfg: cfg, scram: map[string]*scram.Client{}}
	d.Open = d.dial
	return d
}

var (
	_ driver.Identified = (*amqpDriver)(nil)
	_ driver.Inspector  = (*amqpDriver)(nil)
)

// largeBuffer returns an empty buffer for n bytes.
func (d *amqpDriver) largeBuffer(n int) []byte {
	if b, ok := d.large.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:0]
	}
	return make([]byte, 0, n)
}
