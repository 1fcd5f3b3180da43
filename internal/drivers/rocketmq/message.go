package rocketmq

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Properties travel as name 1 value 2 name 1 value 2 ... (MessageDecoder.NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR).
const (
	nameSeparator     = "\x01"
	propertySeparator = "\x02"

	propShardingKey = "__SHARDINGKEY" // MessageConst.PROPERTY_SHARDING_KEY; the library has another
	propTimerDelay  = "TIMER_DELAY_MS"
	propPlan        = "perfmq-tx" // what is to become of a transactional message, see plan
)

// Flags of messages (MessageSysFlag).
const (
	sysCompressed  = 1
	sysHalf        = 1 << 2
	sysCommit      = 2 << 2
	sysRollback    = 3 << 2
	sysBornHostV6  = 1 << 4
	sysStoreHostV6 = 1 << 5
	sysZlib        = 3 << 8 // of the compression types; 0 is zlib, too
	sysCompression = 7 << 8
)

// Marks of stored messages (MessageDecoder); the second has longer names of topics.
const (
	magicV1 = 0xdaa320a7
	magicV2 = 0xdaa320ab
)

var errMessage = errors.New("the broker sent a message that cannot be read")

// properties are those that all messages of a variant have.
func (o *Options) properties(spec *driver.ProducerSpec, v *driver.Variant) ([]byte, error) {
	var b []byte
	add := func(key, value string) {
		b = append(b, key+nameSeparator+value+propertySeparator...)
	}
	if o.Tag != "" {
		add(primitive.PropertyTags, o.Tag)
	}
	if o.Keys != "" {
		add(primitive.PropertyKeys, o.Keys)
	}
	if o.DelayLevel > 0 {
		add(primitive.PropertyDelayTimeLevel, strconv.Itoa(o.DelayLevel))
	}
	if o.Delay > 0 {
		add(propTimerDelay, strconv.FormatInt(o.Delay.Milliseconds(), 10))
	}
	if v.Group != "" {
		add(propShardingKey, v.Group)
	}
	const op = "check the properties"
	for _, p := range v.Properties {
		switch {
		case p.Key == "" || strings.ContainsAny(p.Key+p.Value, nameSeparator+propertySeparator):
			return nil, driver.Errorf(driver.ClassUnsupported, op, "", "RocketMQ allows neither empty names nor the characters 1 and 2 (%q=%q)", p.Key, p.Value)
		case reserved(p.Key):
			return nil, driver.Errorf(driver.ClassUnsupported, op, "rename it; tag, keys and delays are set by -o",
				"the name %s is one of RocketMQ's own or of ours", p.Key)
		}
		add(p.Key, p.Value)
	}
	if spec.Origin != (driver.ID{}) {
		add(driver.IDProperty, string(spec.Origin.Append(nil)))
	}
	const limit = 30_000 // their length is an int16, and brokers add some
	if len(b) > limit {
		return nil, driver.Errorf(driver.ClassTooLarge, op, "", "RocketMQ takes %d bytes of properties, not %d", limit, len(b))
	}
	return b, nil
}

// reserved tells whether brokers give the name a meaning (MessageConst.STRING_HASH_SET) or we do.
func reserved(key string) bool {
	switch key {
	case driver.TimeProperty, driver.IDProperty, propPlan, propShardingKey, propTimerDelay,
		primitive.PropertyTags, primitive.PropertyKeys, primitive.PropertyDelayTimeLevel, primitive.PropertyWaitStoreMsgOk,
		primitive.PropertyRetryTopic, primitive.PropertyRealTopic, primitive.PropertyRealQueueId,
		primitive.PropertyTransactionPrepared, primitive.PropertyProducerGroup, primitive.PropertyMinOffset,
		primitive.PropertyMaxOffset, primitive.PropertyBuyerId, primitive.PropertyOriginMessageId,
		primitive.PropertyTransferFlag, primitive.PropertyCorrectionFlag, primitive.PropertyMQ2Flag,
		primitive.PropertyReconsumeTime, primitive.PropertyMsgRegion, primitive.PropertyTraceSwitch,
		primitive.PropertyUniqueClientMessageIdKeyIndex, primitive.PropertyMaxReconsumeTimes,
		primitive.PropertyConsumeStartTime, primitive.PropertyTranscationPreparedQueueOffset,
		primitive.PropertyTranscationCheckTimes, primitive.PropertyCheckImmunityTimeInSeconds,
		primitive.PropertyMessageTTL, primitive.PropertyMsgType, primitive.PropertyCluster,
		"TIMER_DELAY_SEC", "TIMER_DELIVER_MS", "INSTANCE_ID", "POP_CK", "__LITE_TOPIC", "_SYS_MSG_PRIORITY_":
		return true
	}
	return false
}

// appendNumber appends a property.
func appendNumber(b []byte, name string, n int64) []byte {
	b = append(append(b, name...), nameSeparator...)
	return append(strconv.AppendInt(b, n, 10), propertySeparator...)
}

// readProperties sets what our own properties say: the time and the ID.
func readProperties(properties []byte, d *driver.Delivery) {
	d.Time, d.HasTime, d.ID = 0, false, driver.ID{}
	for len(properties) > 0 {
		var p []byte
		if i := bytes.IndexByte(properties, propertySeparator[0]); i >= 0 {
			p, properties = properties[:i], properties[i+1:]
		} else {
			p, properties = properties, nil
		}
		i := bytes.IndexByte(p, nameSeparator[0])
		if i < 0 {
			continue
		}
		switch name, value := p[:i], p[i+1:]; string(name) {
		case driver.TimeProperty:
			d.Time, d.HasTime = parseInt(value)
		case driver.IDProperty:
			d.ID = driver.ParseID(value)
		}
	}
}

// property finds a property; nil if there is none of that name.
func property(properties []byte, name string) []byte {
	for len(properties) > 0 {
		var p []byte
		if i := bytes.IndexByte(properties, propertySeparator[0]); i >= 0 {
			p, properties = properties[:i], properties[i+1:]
		} else {
			p, properties = properties, nil
		}
		if len(p) > len(name) && p[len(name)] == nameSeparator[0] && string(p[:len(name)]) == name {
			return p[len(name)+1:]
		}
	}
	return nil
}

// stored is a message as brokers store and send it. Its slices point into what it was read from.
type stored struct {
	queueOffset  int64
	commitOffset int64 // in the broker's log
	sysFlag      uint32
	born, store  int64 // milliseconds since the epoch
	retries      int32
	body         []byte
	topic        []byte
	properties   []byte
}

// cutMessage reads the first message of b (MessageDecoder.decode) and returns what follows it.
func (m *stored) cutMessage(b []byte) (rest []byte, err error) {
	if len(b) < 8 {
		return nil, errMessage
	}
	size := binary.BigEndian.Uint32(b)
	if uint64(size) > uint64(len(b)) || size < 48 {
		return nil, errMessage
	}
	b, rest = b[:size], b[size:]
	magic := binary.BigEndian.Uint32(b[4:])
	// 8: checksum of the body, 12: queue, 16: flag
	m.queueOffset = int64(binary.BigEndian.Uint64(b[20:]))
	m.commitOffset = int64(binary.BigEndian.Uint64(b[28:]))
	m.sysFlag = binary.BigEndian.Uint32(b[36:])
	m.born = int64(binary.BigEndian.Uint64(b[40:]))
	at := 48 + hostSize(m.sysFlag&sysBornHostV6 != 0)
	storeHost := hostSize(m.sysFlag&sysStoreHostV6 != 0)
	if len(b) < at+8+storeHost+16 {
		return nil, errMessage
	}
	m.store = int64(binary.BigEndian.Uint64(b[at:]))
	at += 8 + storeHost
	m.retries = int32(binary.BigEndian.Uint32(b[at:]))
	at += 4 + 8 // and the offset of the half message
	var ok bool
	if m.body, b, ok = cutSized(b[at:]); !ok {
		return nil, errMessage
	}
	switch {
	case magic == magicV1 && len(b) >= 1 && len(b) >= 1+int(b[0]):
		m.topic, b = b[1:1+int(b[0])], b[1+int(b[0]):]
	case magic == magicV2 && len(b) >= 2 && len(b) >= 2+int(binary.BigEndian.Uint16(b)):
		n := 2 + int(binary.BigEndian.Uint16(b))
		m.topic, b = b[2:n], b[n:]
	default:
		return nil, errMessage
	}
	if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
		return nil, errMessage
	}
	m.properties = b[2 : 2+int(binary.BigEndian.Uint16(b))]
	return rest, nil
}

func hostSize(v6 bool) int {
	if v6 {
		return 20
	}
	return 8
}

// compressor compresses bodies one after the other.
type compressor struct {
	out    bytes.Buffer
	writer *zlib.Writer
}

// compress returns the compressed body, valid until the next call.
func (c *compressor) compress(body []byte) []byte {
	c.out.Reset()
	if c.writer == nil {
		c.writer = zlib.NewWriter(&c.out)
	} else {
		c.writer.Reset(&c.out)
	}
	_, _ = c.writer.Write(body) // a bytes.Buffer takes all
	_ = c.writer.Close()
	return c.out.Bytes()
}

// decompressor undoes the compression of bodies, one after the other.
type decompressor struct {
	maxBody int
	source  bytes.Reader
	reader  io.ReadCloser
	out     []byte
}

// body returns the body of a message, valid until the next call.
func (d *decompressor) body(m *stored) ([]byte, error) {
	if t := m.sysFlag & sysCompression; t != 0 && t != sysZlib {
		return nil, driver.Errorf(driver.ClassUnsupported, "", "let the producer compress with zlib, or not at all",
			"a message is compressed with LZ4 or ZSTD")
	}
	err := d.read(m.body)
	if err != nil {
		return nil, driver.Errorf(driver.ClassProtocol, "", lookAtBroker, "%w: its compressed body: %w", errMessage, err)
	}
	if len(d.out) > d.maxBody {
		return nil, driver.Errorf(driver.ClassTooLarge, "", "--max-message-size SIZE accepts larger messages",
			"the broker sends a message whose %d compressed bytes are more than %d; perfmq accepts at most %d",
			len(m.body), d.maxBody, d.maxBody)
	}
	return d.out, nil
}

// read decompresses at most one byte more than there may be.
func (d *decompressor) read(compressed []byte) (err error) {
	d.source.Reset(compressed)
	if d.reader == nil {
		d.reader, err = zlib.NewReader(&d.source)
	} else {
		err = d.reader.(zlib.Resetter).Reset(&d.source, nil)
	}
	if err != nil {
		d.reader = nil
		return err
	}
	const first = 16 << 10
	for d.out = d.out[:0]; len(d.out) <= d.maxBody; {
		if len(d.out) == cap(d.out) {
			d.out = slices.Grow(d.out, min(max(first, len(d.out)), d.maxBody+1-len(d.out)))
		}
		n, err := d.reader.Read(d.out[len(d.out):cap(d.out)])
		d.out = d.out[:len(d.out)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
