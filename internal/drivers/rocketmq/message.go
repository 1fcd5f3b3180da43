package rocketmq

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

const propPlan = "perfmq-tx" // the planned end of a transactional message, see plan

// properties returns the properties common to all messages of a variant.
func (p *producer) properties(spec *driver.ProducerSpec, v *driver.Variant) ([]byte, error) {
	var b []byte
	add := func(key, value string) {
		b = wire.AppendProperty(b, key, value)
	}
	if p.opts.Tag != "" {
		add(wire.PropTags, p.opts.Tag)
	}
	if p.level > 0 {
		add(wire.PropDelayLevel, strconv.Itoa(p.level))
	} else if spec.Delay > 0 {
		add(wire.PropTimerDelayMs, strconv.FormatInt(spec.Delay.Milliseconds(), 10))
	}
	const op = "check the properties"
	for _, pair := range v.Properties {
		switch {
		case pair.Key == "" || !wire.CarriesProperty(pair.Key) || !wire.CarriesProperty(pair.Value):
			return nil, driver.Errorf(driver.ClassUnsupported, op, "",
				"RocketMQ allows neither empty names nor the characters 1 and 2 (%q=%q)", pair.Key, pair.Value)
		case slices.Contains(reserved(), pair.Key):
			return nil, driver.Errorf(driver.ClassUnsupported, op, "rename it",
				"the name %s is one of RocketMQ's own or of ours", pair.Key)
		}
		add(pair.Key, pair.Value)
	}
	if spec.Origin != (driver.ID{}) {
		add(driver.IDProperty, string(spec.Origin.Append(nil)))
	}
	if v.Group != "" {
		add(wire.PropShardingKey, v.Group)
	}
	const limit = 30_000 // their length is an int16, and brokers add some
	if len(b) > limit {
		return nil, driver.Errorf(driver.ClassTooLarge, op, "", "RocketMQ takes %d bytes of properties, not %d", limit,
			len(b))
	}
	return b, nil
}

// reserved are the names with a meaning to brokers (MessageConst.STRING_HASH_SET) or to us.
func reserved() []string {
	return append(strings.Fields(`
		KEYS TAGS WAIT DELAY RETRY_TOPIC REAL_TOPIC REAL_QID TRAN_MSG PGROUP MIN_OFFSET MAX_OFFSET BUYER_ID
		ORIGIN_MESSAGE_ID TRANSFER_FLAG CORRECTION_FLAG MQ2_FLAG RECONSUME_TIME MSG_REGION TRACE_ON UNIQ_KEY
		MAX_RECONSUME_TIMES CONSUME_START_TIME TRAN_PREPARED_QUEUE_OFFSET TRANSACTION_CHECK_TIMES
		CHECK_IMMUNITY_TIME_IN_SECONDS TTL MSG_TYPE CLUSTER TIMER_DELAY_MS TIMER_DELAY_SEC TIMER_DELIVER_MS
		INSTANCE_ID POP_CK __LITE_TOPIC _SYS_MSG_PRIORITY_ __SHARDINGKEY`),
		driver.TimeProperty, driver.IDProperty, propPlan)
}

// readProperties extracts our own properties: the time, the ID, and whether the message was left open.
func readProperties(properties []byte, ids *driver.IDReader, d *driver.Delivery) {
	d.Time, d.HasTime, d.ID, d.Deferred = 0, false, driver.ID{}, false
	for len(properties) > 0 {
		var name, value []byte
		switch name, value, properties = wire.CutProperty(properties); string(name) {
		case driver.TimeProperty:
			d.Time, d.HasTime = wire.ParseInt(value)
		case driver.IDProperty:
			d.ID = ids.Read(value)
		case propPlan:
			d.Deferred = len(value) > 0 && value[0] == planOpen
		}
	}
}

// bodyOf returns the body of a message, valid until the next call.
func bodyOf(m *wire.Message, z *wire.Inflater, maxBody int) ([]byte, error) {
	if m.SysFlag&wire.SysCompressed == 0 {
		if len(m.Body) > maxBody {
			return nil, transport.TooLarge("", "a message of", len(m.Body), maxBody)
		}
		return m.Body, nil
	}
	body, err := z.Inflate(m.SysFlag, m.Body, maxBody)
	switch {
	case errors.Is(err, wire.ErrCompression):
		return nil, driver.Errorf(driver.ClassUnsupported, "", "let the producer compress with zlib, or not at all", "%w",
			err)
	case errors.Is(err, wire.ErrTooLong):
		return nil, driver.Errorf(driver.ClassTooLarge, "", transport.HintLarger,
			"a message of %d compressed bytes is more than the %d that perfmq accepts, once inflated", len(m.Body),
			maxBody)
	case err != nil:
		return nil, driver.Errorf(driver.ClassProtocol, "", lookAtBroker, "read a message: its compressed body: %w", err)
	}
	return body, nil
}
