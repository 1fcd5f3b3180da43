// Package drivers lists the protocols that perfmq speaks. A protocol that is not in this list does not exist; nothing
// registers itself.
package drivers

import (
	"github.com/perfmq/perfmq/internal/drivers/amqp"
	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/internal/drivers/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// All returns the protocols in the order in which help texts list them. Each call returns factories of their own: two
// lists share no in-process broker.
func All() []driver.Factory {
	return []driver.Factory{amqp.Factory(), stomp.Factory(), rocketmq.Factory(), mem.Factory()}
}
