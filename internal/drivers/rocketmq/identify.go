package rocketmq

import (
	"context"
	"fmt"
	"strings"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// identify asks a broker for its version, beside whatever else is done with the connection: GET_BROKER_RUNTIME_INFO
// (AdminBrokerProcessor.getBrokerRuntimeInfo). One driver asks one broker. A broker that does not answer that, because
// the user may not ask or it has just started, tells its version in the frame of its refusal.
func (c *client) identify(conn *conn) {
	d := c.d
	if product, _ := d.Broker(); product != "" || !d.identifying.CompareAndSwap(false, true) {
		return
	}
	c.wg.Go(func() {
		defer d.identifying.Store(false)
		ctx, cancel := context.WithTimeout(c.life, heartbeatLimit)
		defer cancel()
		r, err := conn.call(ctx, wire.ReqGetBrokerRuntimeInfo, nil, nil)
		if err != nil {
			return
		}
		var info struct {
			Table map[string]string `json:"table"`
		}
		switch version := versionOf(r.Version); {
		case r.Code == wire.ResSuccess && wire.UnmarshalJSON(r.Body, &info) == nil && info.Table["brokerVersionDesc"] != "":
			d.Tell(productOf(info.Table["brokerVersionDesc"]))
		case version != "":
			d.Tell(rocketMQ, version)
		}
	})
}

const rocketMQ = "RocketMQ"

// versionOf returns the version that frames tell by its place among the names of MQVersion.Version: from V4_0_0 on, ten
// patches make a minor version and ten of these a major one, each with a snapshot before it. It is empty for others.
func versionOf(ordinal int) string {
	const (
		first = 213 // V4_0_0
		last  = 612 // HIGHER_VERSION
	)
	n := ordinal - first
	if n < 0 || ordinal >= last || n%2 != 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", 4+n/200, n/20%10, n/2%10)
}

// productOf reads brokerVersionDesc, a name of MQVersion.Version: V5_3_1. The embedded broker has its name in front.
func productOf(desc string) (product, version string) {
	if product, version, named := strings.Cut(desc, "/"); named {
		return product, version
	}
	return rocketMQ, strings.ReplaceAll(strings.TrimPrefix(desc, "V"), "_", ".")
}
