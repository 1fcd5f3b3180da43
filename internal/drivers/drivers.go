// Package drivers lists the protocols that perfmq speaks, and the clients that speak them. A protocol that is not in
// this list does not exist; nothing registers itself.
package drivers

import (
	"github.com/perfmq/perfmq/internal/drivers/amqp"
	"github.com/perfmq/perfmq/internal/drivers/library/elsewhere"
	"github.com/perfmq/perfmq/internal/drivers/library/goamqp"
	"github.com/perfmq/perfmq/internal/drivers/library/gostomp"
	"github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/internal/drivers/rocketmq5"
	"github.com/perfmq/perfmq/internal/drivers/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// All returns the native drivers in the order in which help texts list the protocols, and then those on client
// libraries, which have the name of their protocol. Each call returns factories of their own: two lists share no
// in-process broker. RocketMQ's proxy has a client of its own, by the scheme of the URL.
func All() []driver.Factory {
	remoting, proxy := rocketmq.Factory(), rocketmq5.Factory()
	remoting.Schemes = append(remoting.Schemes, proxy.Schemes...)
	return []driver.Factory{
		amqp.Factory(), stomp.Factory(), remoting,
		goamqp.Factory(), gostomp.Factory(), elsewhere.RocketMQ(nil), proxy, elsewhere.RocketMQ5(nil),
	}
}
