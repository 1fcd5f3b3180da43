package amqp_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

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
