package rocketmq

import (
	"strings"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// identify asks a broker for its version, beside whatever else is done with the connection: GET_BROKER_RUNTIME_INFO
// (AdminBrokerProcessor.getBrokerRuntimeInfo). One driver asks one broker. Users that may not ask learn nothing, and may try again with
// the next connection.
func (c *client) identify(conn *conn) {
	d := c.d
	if product, _ := d.Broker(); product != "" || !d.identifying.CompareAndSwap(false, true) {
		return
	}
	c.wg.Go(func() {
		defer d.identifying.Store(false)
		ctx, cancel := c.while(heartbeatLimit)
		defer cancel()
		r, err := c.must(ctx, conn, "ask for the broker's version", wire.ReqGetBrokerRuntimeInfo, nil, nil)
		if err != nil {
			return
		}
		var info struct {
			Table map[string]string `json:"table"`
		}
		if wire.UnmarshalJSON(r.Body, &info) == nil {
			d.Tell(productOf(info.Table["brokerVersionDesc"]))
		}
	})
}

// productOf reads brokerVersionDesc, a name of MQVersion.Version: V5_3_1. The embedded broker has its name in front.
func productOf(desc string) (product, version string) {
	if product, version, named := strings.Cut(desc, "/"); named {
		return product, version
	}
	return "RocketMQ", strings.ReplaceAll(strings.TrimPrefix(desc, "V"), "_", ".")
}
