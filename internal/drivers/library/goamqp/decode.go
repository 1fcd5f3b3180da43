package goamqp

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/perfmq/perfmq/pkg/driver"
)

// decode fills in d from m, but for Redelivered, which the dialect tells. The body stays m's.
func decode(m *amqp.Message, d *driver.Delivery) {
	d.Time, d.HasTime = microseconds(m.ApplicationProperties[driver.TimeProperty])
	d.ID = id(m.ApplicationProperties)
	d.Body = body(m)
}

// id returns the zero ID if there is no such property.
func id(properties map[string]any) driver.ID {
	switch v := properties[driver.IDProperty].(type) {
	case nil:
		return driver.ID{}
	case string:
		return driver.ParseID(v)
	case []byte:
		return driver.ParseID(v)
	default:
		return driver.GarbledID()
	}
}

// microseconds understands the time property of perfmq and `artemis perf` (a long) and what other tools may send.
func microseconds(v any) (int64, bool) {
	if t, ok := v.(time.Time); ok {
		return t.UnixMicro(), true
	}
	return integer(v)
}

// integer understands all integer types and decimal text: brokers convert between protocols.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64 //nolint:gosec // checked
	case int32:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint8:
		return int64(v), true
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	default:
		return 0, false
	}
}

// body returns the payload: the data sections one after the other, or a single value that is binary or text.
func body(m *amqp.Message) []byte {
	switch len(m.Data) {
	case 0:
	case 1:
		return m.Data[0]
	default:
		return bytes.Join(m.Data, nil)
	}
	switch v := m.Value.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	default:
		return nil
	}
}
