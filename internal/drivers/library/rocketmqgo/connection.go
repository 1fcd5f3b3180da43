// Package rocketmqgo is RocketMQ on the client library github.com/apache/rocketmq-client-go/v2, used as an application
// uses it: a call of SendSync for each message, and a push consumer. Only topics are looked up, created and probed by
// the native driver, see internal/drivers/rocketmq: the library reports too little about its brokers.
//
// The library reconnects by itself and does not report a lost connection. Sends then fail, after three seconds if they
// were in flight; a consumer goes on thirty seconds after its pull in flight. A message is sent once, because the
// library's own retries would store some twice, and is not compressed.
//
// A queue is a topic with one consumer group, as for the native driver. A new group replays all messages that the
// broker still has, because the library cannot ask for less: so there are no topics. Consumers that join or leave a
// group while messages come may get some of them twice.
//
// The library has no encrypted connections, does not report a refused login to a consumer (so this driver refuses
// logins), and reads frames of any size. After Shutdown it leaves sleeping goroutines behind, and its connection to the
// name server for two minutes.
package rocketmqgo

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/rlog"

	"github.com/perfmq/perfmq/internal/drivers/library/elsewhere"
	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	look       = 5 * time.Millisecond // interval of checks of state that the library does not report
	hintNative = "use --client native"
)

// Factory describes the protocol and opens drivers for it. The first driver turns off the library's logging, which is
// global to the process.
func Factory() driver.Factory {
	quiet := sync.OnceFunc(func() { rlog.SetLogger(silence{}) })
	return elsewhere.RocketMQ(func(s transport.Settings[struct{}]) driver.Driver {
		quiet()
		return &rocketDriver{
			factory: elsewhere.RocketMQ(nil), cfg: s, groups: map[string][]*consumer{},
			topics: rocketmq.NewAdmin(s.Target, s.ConnectTimeout),
		}
	})
}

// rocketDriver is a [driver.Driver]. Each producer and consumer has connections of its own, as members of a group must.
type rocketDriver struct {
	factory driver.Factory
	cfg     transport.Settings[struct{}]
	topics  *rocketmq.Admin

	mu     sync.Mutex
	groups map[string][]*consumer // the open consumers, by group
}

// Close implements [driver.Driver].
func (d *rocketDriver) Close(context.Context) error {
	d.topics.Close()
	return nil
}

// instance returns a unique name for a client.
func instance(spec *driver.Connection) string { return spec.Name + "-" + rand.Text()[:8] }

// rules are those of brokers for topics, shortened so that the names of groups derived from them are legal.
func rules() library.Rules { return library.Rules{Signs: "-_", Most: 100} }

// refusal returns the outcome of a send that the broker refused, or for which the library knows no broker. The library
// puts the code of an answer only at the beginning of the error's text.
func refusal(err error) (state driver.State, class driver.Class, hint string) {
	var code int
	if n, _ := fmt.Sscanf(err.Error(), "CODE: %d", &code); n == 0 {
		return driver.Failed, driver.ClassConnect, "does the name server know a broker of the topic?"
	}
	return protocol.RocketMQRefusal(code, err.Error())
}

// silence is a logger that discards everything: the library's own writes to standard error.
type silence struct{}

// Debug does nothing, like the others.
func (silence) Debug(string, map[string]any) {}

// Info does nothing.
func (silence) Info(string, map[string]any) {}

// Warning does nothing.
func (silence) Warning(string, map[string]any) {}

// Error does nothing.
func (silence) Error(string, map[string]any) {}

// Fatal does nothing.
func (silence) Fatal(string, map[string]any) {}

// Level does nothing.
func (silence) Level(string) {}

// OutputPath does nothing.
func (silence) OutputPath(string) error { return nil }
