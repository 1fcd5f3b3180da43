package amqp_test

import (
	"bufio"
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// stamped is a message as perfmq sends them: 1 KiB, with a time and an ID.
func stamped(t testing.TB) *amqp.Template {
	t.Helper()
	tmpl, err := amqp.NewTemplate(&amqp.Content{
		Header:      amqp.Header{Durable: true},
		Application: []amqp.Property{{Key: "colour", Value: "red"}},
		TimeKey:     "time", IDKey: "perfmq_id", Body: make([]byte, 1024),
	})
	require.NoError(t, err)
	return tmpl
}

const messageID = "6130672371284362087-0-9999-4011327420186375208"

// appendTransfer appends a whole message in one frame.
func appendTransfer(b []byte, tmpl *amqp.Template, number uint32, time int64, id []byte) []byte {
	at := len(b)
	tag := [4]byte{byte(number >> 24), byte(number >> 16), byte(number >> 8), byte(number)}
	head := amqp.Transfer{Handle: 1, DeliveryID: amqp.Some(number), DeliveryTag: tag[:], MessageFormat: amqp.Some[uint32](0)}
	b = head.AppendHead(b, 0)
	b = tmpl.Append(b, time, id, "", nil)
	amqp.EndFrame(b, at)
	return b
}

func appendFlow(b []byte, n uint32) []byte {
	flow := amqp.Flow{
		NextIncomingID: amqp.Some(n), IncomingWindow: 8192, NextOutgoingID: n, OutgoingWindow: 1 << 31, Handle: amqp.Some[uint32](1),
		DeliveryCount: amqp.Some(n), LinkCredit: amqp.Some[uint32](1000),
	}
	return flow.AppendFrame(b, 0)
}

// readStamps is how a receiver finds the time and the ID of a message.
func readStamps(properties []byte) (time int64, id []byte) {
	d := amqp.NewDecoder(properties)
	pairs, _ := d.Map()
	for pairs.More() {
		key, _ := pairs.Text()
		switch string(key) {
		case "time":
			time, _ = pairs.Integer()
		case "perfmq_id":
			id, _ = pairs.Text()
		default:
			pairs.Skip()
		}
	}
	return time, id
}

func receive(body []byte) (number uint32, time int64, id, payload []byte, err error) {
	p, err := amqp.ParseBody(body)
	if err != nil {
		return 0, 0, nil, nil, err
	}
	var t amqp.Transfer
	if err := t.Decode(&p.Fields); err != nil {
		return 0, 0, nil, nil, err
	}
	var m amqp.Message
	if err := m.Decode(p.Payload); err != nil {
		return 0, 0, nil, nil, err
	}
	time, id = readStamps(m.ApplicationProperties)
	return t.DeliveryID.V, time, id, m.Payload(nil), nil
}

func settle(body []byte) (first, last uint32, kind amqp.Descriptor, err error) {
	p, err := amqp.ParseBody(body)
	if err != nil {
		return 0, 0, 0, err
	}
	var d amqp.Disposition
	if err := d.Decode(&p.Fields); err != nil {
		return 0, 0, 0, err
	}
	s, err := amqp.ParseState(d.State)
	return d.First, d.Last, s.Kind, err
}

func credit(body []byte) (uint32, error) {
	p, err := amqp.ParseBody(body)
	if err != nil {
		return 0, err
	}
	var f amqp.Flow
	err = f.Decode(&p.Fields)
	return f.LinkCredit.V, err
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	tmpl, id := stamped(t), []byte(messageID)
	buf := make([]byte, 0, 4096)
	transfer := appendTransfer(nil, tmpl, 7, 1<<50, id)
	accepted := amqp.AppendAccepted(nil, 0, 1000, 1999)
	flow := appendFlow(nil, 70000)
	txn := amqp.State{Kind: amqp.DescAccepted, Transactional: true, TxnID: []byte{1, 2, 3, 4}}
	disposition := amqp.Disposition{Role: amqp.RoleReceiver, First: 1, Last: 1 << 20, State: txn.Append(nil)}
	transacted := disposition.AppendFrame(nil, 0)
	for name, f := range map[string]func() error{
		"encode transfer":    func() error { buf = appendTransfer(buf[:0], tmpl, 7, 1<<50, id); return nil },
		"encode accepted":    func() error { buf = amqp.AppendAccepted(buf[:0], 0, 1000, 1999); return nil },
		"encode disposition": func() error { buf = disposition.AppendFrame(buf[:0], 0); return nil },
		"encode flow":        func() error { buf = appendFlow(buf[:0], 70000); return nil },
		"encode state":       func() error { buf = txn.Append(buf[:0]); return nil },
		"encode heartbeat":   func() error { buf = amqp.AppendHeartbeat(buf[:0]); return nil },
		"decode transfer":    func() error { _, _, _, _, err := receive(transfer[8:]); return err },
		"decode disposition": func() error { _, _, _, err := settle(accepted[8:]); return err },
		"decode transacted":  func() error { _, _, _, err := settle(transacted[8:]); return err },
		"decode flow":        func() error { _, err := credit(flow[8:]); return err },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, f())
			require.Zero(t, testing.AllocsPerRun(100, func() { _ = f() }))
		})
	}
}

// TestFrameReaderDoesNotAllocate: frames are returned in the buffer of the input.
func TestFrameReaderDoesNotAllocate(t *testing.T) {
	frame := amqp.AppendAccepted(nil, 0, 1, 2)
	in := bytes.NewReader(frame)
	buffered := bufio.NewReaderSize(in, 4096)
	r := amqp.NewFrameReader(buffered, 1<<20)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		in.Reset(frame)
		buffered.Reset(in)
		_, err := r.Next()
		require.NoError(t, err)
	}))
}

// TestDecodeMemory: inputs of a MiB that are made to take much memory take little, or a small multiple of their size.
func TestDecodeMemory(t *testing.T) {
	const size = 1 << 20
	many := func(n int) []byte { // symbols without a letter
		b := append([]byte{amqp.CodeArray32, 0, 0, 0, 0, 0, 0, 0, 0, amqp.CodeSym8}, make([]byte, n)...)
		amqp.EndCompound(b, 0, n)
		return b
	}
	filters := amqp.BeginMap(nil)
	for range size / 3 {
		filters = append(filters, amqp.CodeSym8, 0, amqp.CodeTrue)
	}
	amqp.EndCompound(filters, 0, 2*(size/3))
	large := string(make([]byte, size))
	sections := make([]byte, 0, size)
	for len(sections) < size {
		sections = append(sections, 0, amqp.CodeSmallUlong, byte(amqp.DescData), amqp.CodeBin8, 0)
	}
	body := func(f interface{ AppendFrame(b []byte) []byte }) []byte {
		return f.AppendFrame(nil)[amqp.FrameHeaderSize:]
	}
	attach := amqp.Attach{Source: amqp.Terminus{Kind: amqp.DescSource, Selector: amqp.Some(large)}}
	performative := func(b []byte) error {
		p, err := amqp.ParseBody(b)
		if err != nil {
			return err
		}
		return blank(p.Kind).Decode(&p.Fields)
	}
	message := func(b []byte) error {
		var m amqp.Message
		err := m.Decode(b)
		m.Payload(nil)
		return err
	}
	symbolList := func(b []byte) error {
		d := amqp.NewDecoder(b)
		d.Symbols()
		return d.Err()
	}
	for _, c := range []struct {
		name   string
		input  []byte
		decode func(b []byte) error
		fails  error
		limit  int // bytes
	}{
		{"capabilities", body(&amqp.Open{OfferedCapabilities: make([]string, size)}), performative, amqp.ErrCount, 64 << 10},
		{"symbols", many(size), symbolList, amqp.ErrCount, 64 << 10},
		{"as many symbols as may be", many(amqp.MaxEntries), symbolList, nil, 664 << 10},
		{"filters", attachWith(filters), performative, nil, 64 << 10},
		{"a long filter", attach.AppendFrame(nil, 0)[amqp.FrameHeaderSize:], performative, nil, 2 * size},
		{"a long reason", (&amqp.End{Error: &amqp.Error{Condition: large, Description: large}}).AppendClose(nil)[amqp.FrameHeaderSize:], performative, nil, 3 * size},
		{"many sections", sections, message, nil, 64 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := c.decode(c.input)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, c.fails)
			assert.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(c.limit))
		})
	}
}

// attachWith is an attach with a source of that filter set.
func attachWith(filters []byte) []byte {
	source := amqp.BeginList(nil)
	for range 7 {
		source = amqp.AppendNull(source)
	}
	source = append(source, filters...)
	amqp.EndCompound(source, 0, 8)
	b := amqp.AppendDescriptor(nil, amqp.DescAttach)
	at := len(b)
	b = amqp.AppendBool(amqp.AppendUint(amqp.AppendStr(amqp.BeginList(b), "l"), 0), true)
	b = amqp.AppendNull(amqp.AppendNull(b))
	b = append(amqp.AppendDescriptor(b, amqp.DescSource), source...)
	amqp.EndCompound(b, at, 6)
	return b
}
