package amqp_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// A message is encoded once; each transfer copies it and fills in its numbers, time and ID.
func ExampleTemplate() {
	tmpl, err := amqp.NewTemplate(&amqp.Content{
		Header: amqp.Header{Durable: true}, TimeKey: "time", IDKey: "perfmq_id", Body: []byte("hello"),
	})
	if err != nil {
		panic(err)
	}
	var out []byte
	var tag [4]byte
	t := amqp.Transfer{Handle: 0, MessageFormat: amqp.Some[uint32](0)}
	for number := range uint32(2) {
		at := len(out)
		t.DeliveryID, t.DeliveryTag = amqp.Some(number), binary.BigEndian.AppendUint32(tag[:0], number)
		out = t.AppendHead(out, 0)
		out = tmpl.Append(out, 1_700_000_000_000_000, fmt.Appendf(nil, "1-0-%d-5", number))
		amqp.EndFrame(out, at)
	}
	fmt.Println(len(out), "bytes")
	// Output: 202 bytes
}

// Frames are read in place, and settled as a range when no more are there.
func ExampleFrameReader() {
	var in []byte
	for number := range uint32(3) {
		at := len(in)
		t := amqp.Transfer{DeliveryID: amqp.Some(number), DeliveryTag: []byte{byte(number)}, MessageFormat: amqp.Some[uint32](0)}
		in = amqp.AppendData(t.AppendHead(in, 0), fmt.Appendf(nil, "message %d", number))
		amqp.EndFrame(in, at)
	}
	r := amqp.NewFrameReader(bufio.NewReader(bytes.NewReader(in)), amqp.MinMaxFrameSize)
	var t amqp.Transfer
	var m amqp.Message
	for first := uint32(0); ; {
		f, err := r.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		p, err := amqp.ParseBody(f.Body)
		if err != nil || p.Kind != amqp.DescTransfer || t.Decode(&p.Fields) != nil || m.Decode(p.Payload) != nil {
			panic("malformed")
		}
		fmt.Printf("%s\n", m.Payload(nil))
		if r.Buffered() == 0 {
			out := amqp.AppendAccepted(nil, f.Channel, first, t.DeliveryID.V, true)
			fmt.Printf("accept %d to %d: %d bytes\n", first, t.DeliveryID.V, len(out))
			first = t.DeliveryID.V + 1
		}
	}
	// Output:
	// message 0
	// message 1
	// message 2
	// accept 0 to 2: 23 bytes
	// EOF
}
