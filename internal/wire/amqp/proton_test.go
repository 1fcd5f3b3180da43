//go:build unix

package amqp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// proton runs Qpid Proton for Python on bytes, and returns its output. See testdata/proton_codec.py.
func proton(t *testing.T, mode string, input [][]byte, into any) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	texts := make([]string, 0, len(input))
	for _, b := range input {
		texts = append(texts, hex.EncodeToString(b))
	}
	given, err := json.Marshal(texts)
	require.NoError(t, err)
	for _, python := range []string{"/usr/bin/python3", "python3"} { // the system's own comes first: that is where packages go
		if exec.CommandContext(ctx, python, "-c", "import proton").Run() != nil {
			continue
		}
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(ctx, python, "testdata/proton_codec.py", mode)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(given), &out, &errs
		require.NoError(t, cmd.Run(), errs.String())
		require.NoError(t, json.Unmarshal(out.Bytes(), into))
		return out.Bytes()
	}
	t.Fatal("this test needs Qpid Proton for Python: apt-get install -y python3-qpid-proton")
	return nil
}

// TestProtonReadsTypes: Proton reads each golden value correctly, and writes it in the same bytes.
func TestProtonReadsTypes(t *testing.T) {
	var input [][]byte
	for _, g := range readGolden(t, "types.golden") {
		input = append(input, g.bytes)
	}
	for _, c := range foreignTypes {
		input = append(input, unhex(t, c.hex))
	}
	var got [][3]any
	proton(t, "values", input, &got)
	require.Len(t, got, len(input))
	for i, c := range scalars {
		kind, shown := protonValue(c.value)
		assert.Equal(t, []any{kind, shown, hex.EncodeToString(input[i])}, got[i][:], c.name)
	}
	for i, c := range foreignTypes { // Proton writes them in its own way, which says the same
		if c.name == "described descriptor" {
			assert.Equal(t, "refused", got[len(scalars)+i][0], "Proton has no such values; if it has now, compare them")
			continue
		}
		again, err := hex.DecodeString(got[len(scalars)+i][2].(string))
		require.NoError(t, err)
		if _, ok := c.value.(amqp.Encoded); ok {
			assert.Equal(t, tree(t, unhex(t, c.hex)), tree(t, again), c.name)
			continue
		}
		d := amqp.NewDecoder(again)
		assert.Equal(t, c.value, d.Scalar(), c.name)
	}
}

// protonValue returns the type that Proton has for a value, and how testdata/proton_codec.py shows it.
func protonValue(v any) (kind string, shown any) {
	switch v := v.(type) {
	case nil:
		return "null", nil
	case bool:
		return "bool", v
	case uint8:
		return "ubyte", fmt.Sprintf("ubyte:ubyte(%d)", v)
	case uint16:
		return "ushort", fmt.Sprintf("ushort:ushort(%d)", v)
	case uint32:
		return "uint", fmt.Sprintf("uint:uint(%d)", v)
	case uint64:
		return "ulong", fmt.Sprintf("ulong:ulong(%d)", v)
	case int8:
		return "byte", fmt.Sprintf("byte:byte(%d)", v)
	case int16:
		return "short", fmt.Sprintf("short:short(%d)", v)
	case int32:
		return "int", fmt.Sprintf("int32:int32(%d)", v)
	case int64:
		return "long", fmt.Sprintf("int:%d", v)
	case float32:
		return "float", fmt.Sprintf("float32:float32(%v)", v)
	case float64:
		return "double", fmt.Sprintf("float:%v", v)
	case string:
		return "string", "str:" + v
	case []byte:
		return "binary", fmt.Sprintf("binary:%x", v)
	case amqp.Symbol:
		return "symbol", "symbol:" + string(v)
	case amqp.Char:
		return "char", "char:" + string(rune(v))
	case amqp.Timestamp:
		return "timestamp", fmt.Sprintf("timestamp:timestamp(%d)", v)
	case amqp.UUID:
		return "uuid", fmt.Sprintf("UUID:%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])
	case amqp.Decimal32:
		return "decimal32", fmt.Sprintf("decimal32:decimal32(%d)", binary.BigEndian.Uint32(v[:]))
	case amqp.Decimal64:
		return "decimal64", fmt.Sprintf("decimal64:decimal64(%d)", binary.BigEndian.Uint64(v[:]))
	case amqp.Decimal128:
		return "decimal128", fmt.Sprintf("binary:%x", v[:])
	}
	panic("no such type")
}

// TestProtonReadsMessages: Proton reads the golden messages as they were meant, and writes them in bytes that say the
// same.
func TestProtonReadsMessages(t *testing.T) {
	list := readGolden(t, "messages.golden")
	var input [][]byte
	for _, g := range list {
		input = append(input, g.bytes)
	}
	var got []map[string]any
	proton(t, "messages", input, &got)
	require.Len(t, got, len(list))
	for i, g := range list {
		var m, again amqp.Message
		var p amqp.Properties
		require.NoError(t, m.Decode(g.bytes))
		require.NoError(t, p.Decode(m.Properties))
		assert.Equal(t, m.Header.Durable, got[i]["durable"], g.name)
		assert.InDelta(t, m.Header.Priority.Or(amqp.NormalPriority), got[i]["priority"], 0, g.name)
		assert.InDelta(t, float64(m.Header.TTL.V)/1000, got[i]["ttl"], 1e-9, g.name)
		assert.Equal(t, m.Header.FirstAcquirer, got[i]["first"], g.name)
		assert.InDelta(t, m.Header.DeliveryCount, got[i]["count"], 0, g.name)
		for name, text := range map[string][]byte{
			"to": p.To, "subject": p.Subject, "reply": p.ReplyTo, "group": p.GroupID, "replyGroup": p.ReplyToGroupID,
		} {
			if text == nil {
				assert.Nil(t, got[i][name], name)
			} else {
				assert.Equal(t, string(text), got[i][name], name)
			}
		}
		written, err := hex.DecodeString(got[i]["again"].(string))
		require.NoError(t, err)
		require.NoError(t, again.Decode(written), g.name)
		if g.name == "two data sections" { // Proton knows one
			continue
		}
		assert.Equal(t, string(m.Payload(nil)), string(again.Payload(nil)), g.name)
		if m.ApplicationProperties != nil {
			assert.Equal(t, tree(t, m.ApplicationProperties), tree(t, again.ApplicationProperties), g.name)
		}
	}
	all := got[8]
	assert.Equal(t, "int:7", all["id"])
	assert.Equal(t, "UUID:"+"00112233-4455-6677-8899-aabbccddeeff", all["correlation"])
	assert.Equal(t, "binary:75736572", all["user"])
	assert.Equal(t, "text/plain", all["type"])
	assert.Equal(t, "gzip", all["encoding"])
	assert.InDelta(t, 1.8e9, all["expiry"], 0)
	assert.InDelta(t, 1<<32-1, all["sequence"], 0)
	assert.Equal(t, map[string]any{"x-opt-d": "str:e"}, all["instructions"])
	assert.Equal(t, map[string]any{"x-opt-a": "str:b"}, all["annotations"])
	assert.Equal(t, map[string]any{"k": "str:v"}, all["properties"])
	assert.Equal(t, map[string]any{
		"s": "str:text", "i": "int:300", "b": true, "f": "float:1.5", "time": "int:1700000000123456", "perfmq_id": "str:1-2-3-4",
	}, got[10]["properties"])
}

// TestProtonReadsBodies: Proton reads frames of SASL and transactions as values, where its engine does not use them.
func TestProtonReadsBodies(t *testing.T) {
	names := []string{"mechanisms", "init", "challenge", "response", "outcome"}
	var input [][]byte
	for _, name := range names {
		for _, f := range frames {
			if f.name == name {
				input = append(input, encode(nil, f.frame)[amqp.FrameHeaderSize:])
			}
		}
	}
	input = append(input, (&amqp.Declare{}).AppendMessage(nil), (&amqp.Discharge{TxnID: []byte{1, 2}}).AppendMessage(nil),
		(&amqp.Discharge{TxnID: []byte{1, 2}, Fail: true}).AppendMessage(nil))
	described := func(code string, value any) map[string]any {
		return map[string]any{"described": "ulong:ulong(" + code + ")", "value": value}
	}
	want := []any{
		described("64", []any{map[string]any{"array": []any{"symbol:SCRAM-SHA-256", "symbol:PLAIN", "symbol:ANONYMOUS"}}}),
		described("65", []any{"symbol:PLAIN", "binary:007573657200736563726574", "str:host"}),
		described("66", []any{"binary:723d6e6f6e6365"}),
		described("67", []any{"binary:"}),
		described("68", []any{"ubyte:ubyte(4)", "binary:763d73756d"}),
		described("119", described("49", []any{})),
		described("119", described("50", []any{"binary:0102", false})), // Artemis and Classic want it said
		described("119", described("50", []any{"binary:0102", true})),
	}
	var got [][3]any
	proton(t, "values", input, &got)
	require.Len(t, got, len(want))
	for i := range want {
		assert.Equal(t, want[i], got[i][1])
	}
}
