package amqp_test

import (
	"bufio"
	"bytes"
	"testing"

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
	b = tmpl.Append(b, time, id)
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
	accepted := amqp.AppendAccepted(nil, 0, 1000, 1999, true)
	flow := appendFlow(nil, 70000)
	txn := amqp.State{Kind: amqp.DescAccepted, Transactional: true, TxnID: []byte{1, 2, 3, 4}}
	disposition := amqp.Disposition{Role: amqp.RoleReceiver, First: 1, Last: 1 << 20, State: txn.Append(nil)}
	transacted := disposition.AppendFrame(nil, 0)
	for name, f := range map[string]func() error{
		"encode transfer":    func() error { buf = appendTransfer(buf[:0], tmpl, 7, 1<<50, id); return nil },
		"encode accepted":    func() error { buf = amqp.AppendAccepted(buf[:0], 0, 1000, 1999, true); return nil },
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
	frame := amqp.AppendAccepted(nil, 0, 1, 2, true)
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
