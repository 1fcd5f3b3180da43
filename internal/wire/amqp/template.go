package amqp

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Content is a message that a [Template] is made of.
type Content struct {
	Header     Header
	Properties Properties
	// Annotations are the message annotations, in their order; their keys are symbols.
	Annotations []Property
	// Application are the application properties that are the same in every message, in their order.
	Application []Property
	// TimeKey and IDKey name the application properties that change from message to message; "" leaves one out.
	TimeKey, IDKey string
	// Varying are the keys of further properties that change, whose values are strings.
	Varying []string
	// Body is a data section, or with Text a string as amqp-value. It is copied.
	Body []byte
	Text bool
}

// Property is an application property.
type Property struct {
	Key   string
	Value any // see [AppendScalar]
}

// Template is a message that is encoded once and sent many times with another time and ID each. It is immutable, as its
// body must be, and safe for concurrent use.
//
// Time and ID are the last application properties. The time is a long of 8 bytes even if it is small, so that its place
// is fixed; the ID is a string of any length, behind which the body follows. Properties that vary stand between them.
// So a message is a copy of the bytes before these, the ID, and a copy of the body, with three numbers put in their
// places: the time, and the size and count of the map.
type Template struct {
	head    []byte   // up to the ID property
	tail    []byte   // between that and the body
	body    []byte   // of the content: producers share it
	mapAt   int      // where the map is in head; 0: there is none
	count   uint32   // of its keys and values, without the ID's
	groupAt int      // where the group is in head, if there is one
	timeAt  int      // where the 8 bytes of the time are in head; 0: there is none
	idKey   []byte   // encoded; nil: there is none
	varying [][]byte // the keys, encoded
	// The section properties is head[propertiesAt:propertiesEnd].
	propertiesAt, propertiesEnd int
}

// NewTemplate encodes a message. It fails with [ErrEncode] if a property has a value of another type.
func NewTemplate(c *Content) (*Template, error) {
	t := &Template{}
	b := c.Header.AppendSection(nil)
	if len(c.Annotations) > 0 {
		b = AppendDescriptor(b, DescMessageAnnotations)
		at := len(b)
		b = BeginMap(b)
		for _, a := range c.Annotations {
			var err error
			if b, err = AppendScalar(AppendSymbol(b, a.Key), a.Value); err != nil {
				return nil, fmt.Errorf("annotation %q: %w", a.Key, err)
			}
		}
		EndCompound(b, at, 2*len(c.Annotations))
	}
	t.propertiesAt = len(b)
	b = c.Properties.AppendSection(b)
	t.propertiesEnd = len(b)
	t.groupAt = len(b) - len(c.Properties.GroupID) // the last property
	if len(c.Application)+len(c.Varying) > 0 || c.TimeKey != "" || c.IDKey != "" {
		b = AppendDescriptor(b, DescApplicationProperties)
		t.mapAt = len(b)
		b = BeginMap(b)
		for _, p := range c.Application {
			var err error
			if b, err = AppendScalar(AppendStr(b, p.Key), p.Value); err != nil {
				return nil, fmt.Errorf("property %q: %w", p.Key, err)
			}
		}
		t.count = uint32(2 * len(c.Application))
		if c.TimeKey != "" {
			b = append(AppendStr(b, c.TimeKey), CodeLong)
			t.timeAt = len(b)
			b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
			t.count += 2
		}
		if c.IDKey != "" {
			t.idKey = AppendStr(nil, c.IDKey)
		}
		for _, key := range c.Varying {
			t.varying = append(t.varying, AppendStr(nil, key))
		}
		EndCompound(b, t.mapAt, int(t.count))
	}
	t.head = b
	encode := AppendData
	if c.Text {
		encode = AppendTextValue
	}
	tail := encode(nil, c.Body)
	t.tail, t.body = slices.Clone(tail[:len(tail)-len(c.Body)]), c.Body
	return t, nil
}

// Size returns the largest number of bytes of a message with an ID of n bytes, or without an ID if n is 0, and with
// properties of its own, unless these are nil; see [Template.Append].
func (t *Template) Size(n int, properties []byte, values ...[]byte) int {
	size := len(t.head) + len(t.tail) + len(t.body)
	if properties != nil {
		size += len(properties) - (t.propertiesEnd - t.propertiesAt)
	}
	for i, v := range values {
		size += len(t.varying[i]) + 5 + len(v)
	}
	switch {
	case n == 0 || t.idKey == nil:
		return size
	case n <= math.MaxUint8:
		return size + len(t.idKey) + 2 + n
	default:
		return size + len(t.idKey) + 5 + n
	}
}

// Append appends a message with a time, in the unit that its readers expect, and an ID; an empty one is left out. A
// group, unless it is empty, replaces that of the template, which is as long. An encoded section properties, unless it
// is nil, replaces that of the template. Each property that varies has a value. Append allocates only if b has not
// [Template.Size] bytes left.
func (t *Template) Append(
	b []byte, time int64, id []byte, group string, properties []byte, values ...[]byte,
) []byte {
	at := len(b)
	if properties == nil {
		b = append(b, t.head...)
		copy(b[at+t.groupAt:], group)
	} else {
		b = append(append(append(b, t.head[:t.propertiesAt]...), properties...), t.head[t.propertiesEnd:]...)
		at += len(properties) - (t.propertiesEnd - t.propertiesAt)
	}
	if t.timeAt > 0 {
		binary.BigEndian.PutUint64(b[at+t.timeAt:], uint64(time))
	}
	count := int(t.count) + 2*len(values)
	for i, v := range values {
		b = AppendStr(append(b, t.varying[i]...), v)
	}
	if len(id) > 0 && t.idKey != nil {
		b = AppendStr(append(b, t.idKey...), id)
		count += 2
	}
	if count != int(t.count) {
		EndCompound(b, at+t.mapAt, count)
	}
	return append(append(b, t.tail...), t.body...)
}
