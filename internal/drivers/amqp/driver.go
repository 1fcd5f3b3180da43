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
	large largeBuffers

	inspector inspector

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

// largeBuffers are buffers for messages of several frames, which connections share in turn.
type largeBuffers struct{ pool sync.Pool }

// get returns an empty buffer for n bytes.
func (l *largeBuffers) get(n int) []byte {
	if b, ok := l.pool.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:0]
	}
	return make([]byte, 0, n)
}

func (l *largeBuffers) put(b []byte) { l.pool.Put(&b) }
