//go:build unix

package amqp_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// proton runs Qpid Proton for Python on bytes, and returns what it prints. See testdata/proton_codec.py.
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

// TestProtonReadsTypes: Proton takes each golden value for what it is, and writes it in the same bytes.
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
	kinds := map[string]string{
		"null": "null", "true": "bool", "false": "bool", "ubyte": "ubyte", "ushort": "ushort", "uint0": "uint", "smalluint": "uint",
		"uint": "uint", "ulong0": "ulong", "smallulong": "ulong", "ulong": "ulong", "byte": "byte", "short": "short", "smallint": "int",
		"int": "int", "int, highest": "int", "smalllong": "long", "long": "long", "long, lowest": "long", "float": "float",
		"double": "double", "char": "char", "timestamp": "timestamp", "timestamp before 1970": "timestamp", "uuid": "uuid",
		"decimal32": "decimal32", "decimal64": "decimal64", "decimal128": "decimal128", "binary8": "binary", "binary, empty": "binary",
		"binary32": "binary", "string8": "string", "string, empty": "string", "string of 255": "string", "string32": "string",
		"symbol8": "symbol", "symbol32": "symbol",
	}
	values := map[string]any{
		"null": nil, "true": true, "false": false, "ubyte": "ubyte:ubyte(255)", "ushort": "ushort:ushort(65535)",
		"uint0": "uint:uint(0)", "smalluint": "uint:uint(255)", "uint": "uint:uint(4294967295)", "ulong0": "ulong:ulong(0)",
		"smallulong": "ulong:ulong(255)", "ulong": "ulong:ulong(18446744073709551615)", "byte": "byte:byte(-128)",
		"short": "short:short(-32768)", "smallint": "int32:int32(-128)", "int": "int32:int32(-129)",
		"int, highest": "int32:int32(2147483647)", "smalllong": "int:127", "long": "int:128", "long, lowest": "int:-9223372036854775808",
		"float": "float32:float32(1.5)", "double": "float:-2.25", "char": "char:\U0001f600",
		"timestamp": "timestamp:timestamp(1700000000123)", "timestamp before 1970": "timestamp:timestamp(-1)",
		"uuid": "UUID:00112233-4455-6677-8899-aabbccddeeff", "binary8": "binary:00ff", "binary, empty": "binary:",
		"string8": "str:grüße", "string, empty": "str:", "symbol8": "symbol:amqp:accepted:list",
	}
	for i, c := range scalars {
		assert.Equal(t, kinds[c.name], got[i][0], c.name)
		if want, ok := values[c.name]; ok {
			assert.Equal(t, want, got[i][1], c.name)
		}
		assert.Equal(t, hex.EncodeToString(input[i]), got[i][2], c.name)
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

// TestProtonReadsMessages: Proton reads the golden messages as they were meant, and writes them in bytes that say the same.
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

// TestProtonReadsBodies: what Proton's engine does not use of SASL and transactions, it reads as values.
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
		described("119", described("50", []any{"binary:0102"})),
		described("119", described("50", []any{"binary:0102", true})),
	}
	var got [][3]any
	proton(t, "values", input, &got)
	require.Len(t, got, len(want))
	for i := range want {
		assert.Equal(t, want[i], got[i][1])
	}
}

// conversation is what we say to Proton: all performatives, and all states.
func conversation(t *testing.T) [][]byte {
	byName := map[string][]byte{}
	for _, f := range frames {
		byName[f.name] = encode(nil, f.frame)
	}
	transfer := func(tr amqp.Transfer, payload []byte) []byte {
		b := append(tr.AppendHead(nil, channel), payload...)
		amqp.EndFrame(b, 0)
		return b
	}
	some, body := amqp.Some[uint32], amqp.AppendData(nil, []byte("payload"))
	disposition := func(n uint32, s amqp.State) []byte {
		return encode(nil, &amqp.Disposition{Role: amqp.RoleReceiver, First: n, Last: n, Settled: true, State: state(s)})
	}
	inTxn := state(amqp.State{Transactional: true, TxnID: []byte{9, 8}})
	return [][]byte{
		join([]byte(amqp.HeaderAMQP), byName["open"], encode(nil, &amqp.Begin{IncomingWindow: 200, OutgoingWindow: 100}),
			byName["attach, sender"], byName["attach, receiver"], byName["attach, dynamic"], byName["attach, coordinator"]),
		join(
			transfer(amqp.Transfer{Handle: 3, DeliveryID: some(0), DeliveryTag: []byte("a"), MessageFormat: some(0)}, body),
			transfer(amqp.Transfer{Handle: 3, DeliveryID: some(1), DeliveryTag: []byte("b"), MessageFormat: some(0), More: true}, body[:5]),
			transfer(amqp.Transfer{Handle: 3, More: true}, body[5:6]),
			transfer(amqp.Transfer{Handle: 3}, body[6:]),
			transfer(amqp.Transfer{Handle: 3, DeliveryID: some(2), DeliveryTag: []byte("c"), MessageFormat: some(0), Settled: true}, body),
			transfer(amqp.Transfer{Handle: 3, DeliveryID: some(3), DeliveryTag: []byte("d"), MessageFormat: some(0), More: true}, body[:5]),
			transfer(amqp.Transfer{Handle: 3, Aborted: true}, nil),
			transfer(amqp.Transfer{Handle: 3, DeliveryID: some(4), DeliveryTag: []byte("e"), MessageFormat: some(0), State: inTxn, ReceiverSettleMode: amqp.Some(amqp.ReceiverSecond)}, body),
			transfer(amqp.Transfer{Handle: 2, DeliveryID: some(5), DeliveryTag: []byte("f"), MessageFormat: some(0)}, (&amqp.Declare{}).AppendMessage(nil)),
			amqp.AppendHeartbeat(nil),
			encode(nil, &amqp.Flow{
				NextIncomingID: some(0), IncomingWindow: 100, NextOutgoingID: 6, OutgoingWindow: 100, Handle: some(258),
				DeliveryCount: some(0), LinkCredit: some(6),
			}),
		),
		join(
			amqp.AppendAccepted(nil, channel, 0, 0, true),
			disposition(1, amqp.State{Kind: amqp.DescRejected, Error: failure}),
			disposition(2, amqp.State{Kind: amqp.DescReleased}),
			disposition(3, amqp.State{Kind: amqp.DescModified, DeliveryFailed: true, UndeliverableHere: true, Annotations: fields("x-opt-reason", "none")}),
			amqp.AppendAccepted(nil, channel, 70000, 70005, false),
			encode(nil, &amqp.Disposition{Role: amqp.RoleSender, First: 80000, Last: 80009, Settled: true, Batchable: true}),
			disposition(100, amqp.State{Kind: amqp.DescDeclared, TxnID: []byte{1, 2}}), // of deliveries that are not there
			disposition(101, amqp.State{Kind: amqp.DescRejected, Error: failure, Transactional: true, TxnID: []byte{1, 2}}),
			encode(nil, &amqp.Disposition{Role: amqp.RoleReceiver, First: 4, Last: 4, State: state(amqp.State{Kind: amqp.DescReceived, SectionNumber: 2, SectionOffset: 1 << 33})}),
		),
		join(
			encode(nil, &amqp.Flow{
				NextIncomingID: some(5), IncomingWindow: 100, NextOutgoingID: 6, OutgoingWindow: 100, Handle: some(258),
				DeliveryCount: some(5), LinkCredit: some(1), Drain: true,
			}),
			encode(nil, &amqp.Detach{Handle: 3, Closed: true, Error: failure}), encode(nil, &amqp.Detach{Handle: 258}),
			byName["end"], byName["close"],
		),
	}
}

// TestProtonTalks: Proton, an AMQP engine of its own, understands all that we say; and we read all that it says.
func TestProtonTalks(t *testing.T) {
	var got struct {
		Log    json.RawMessage
		Output string
	}
	proton(t, "peer", conversation(t), &got)
	var log bytes.Buffer
	require.NoError(t, json.Indent(&log, got.Log, "", " "))
	path := filepath.Join("testdata", "proton_log.json")
	if *update {
		require.NoError(t, os.WriteFile(path, log.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), log.String(), "what Proton has understood")
	said, err := hex.DecodeString(got.Output)
	require.NoError(t, err)
	checkProton(t, said)
}

// checkProton reads what Proton said, which testdata/proton_codec.py had it say.
func checkProton(t *testing.T, said []byte) {
	r := readerOf(said, 4096, 4096)
	h, err := r.ReadProtocolHeader()
	require.NoError(t, err)
	assert.Equal(t, amqp.HeaderAMQP, string(h[:]))
	seen := map[amqp.Descriptor][]frame{}
	var bodies []string
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		p, err := amqp.ParseBody(f.Body)
		require.NoError(t, err)
		fr := blank(p.Kind)
		require.NoError(t, fr.Decode(&p.Fields))
		seen[p.Kind] = append(seen[p.Kind], fr)
		if p.Kind == amqp.DescTransfer {
			var m amqp.Message
			require.NoError(t, m.Decode(p.Payload))
			bodies = append(bodies, string(m.Payload(nil)))
		}
	}
	some := amqp.Some[uint32]
	assert.Equal(t, []frame{&amqp.Open{
		ContainerID: "proton", Hostname: "its host", MaxFrameSize: some(4096), ChannelMax: amqp.Some[uint16](999), IdleTimeout: 15000,
		OfferedCapabilities: []string{"one", "two"}, DesiredCapabilities: []string{"three"},
		Properties: unhex(t, "d1 0000001f 00000004 a3 07 70726f64756374 a1 0b 517069642050726f746f6e a3 01 6e 55 07"),
	}}, seen[amqp.DescOpen])
	assert.Equal(t, []frame{&amqp.Begin{
		RemoteChannel: amqp.Some[uint16](channel), IncomingWindow: 1<<31 - 1, OutgoingWindow: 1<<31 - 1,
	}}, seen[amqp.DescBegin])
	assert.Equal(t, protonAttaches(t), seen[amqp.DescAttach])
	assert.Equal(t, &amqp.Flow{
		NextIncomingID: some(0), IncomingWindow: 1<<31 - 1, OutgoingWindow: 1<<31 - 1, Handle: some(0), DeliveryCount: some(5), LinkCredit: some(10),
	}, seen[amqp.DescFlow][0])
	assert.Equal(t, []string{"message 0", "message 1", "message 2", "message 3", "message 4"}, bodies[:5])
	assert.Equal(t, &amqp.Transfer{
		Handle: 1, DeliveryID: some(4), DeliveryTag: []byte("tag 4"), MessageFormat: some(0),
	}, seen[amqp.DescTransfer][4])
	states := map[amqp.Descriptor]amqp.State{}
	for _, f := range seen[amqp.DescDisposition] {
		s, err := amqp.ParseState(f.(*amqp.Disposition).State)
		require.NoError(t, err)
		states[s.Kind] = s
	}
	one := amqp.AppendLong(amqp.AppendSymbol(amqp.BeginMap(nil), "k"), 1)
	amqp.EndCompound(one, 0, 2)
	assert.Equal(t, amqp.State{
		Kind: amqp.DescRejected, Error: &amqp.Error{Condition: "perfmq:test", Description: "rejected", Info: one},
	}, states[amqp.DescRejected])
	assert.Equal(t, amqp.State{
		Kind: amqp.DescModified, DeliveryFailed: true, UndeliverableHere: true, Annotations: fields("x-opt-a", "b"),
	}, states[amqp.DescModified])
	assert.Contains(t, states, amqp.DescAccepted)
	assert.Contains(t, states, amqp.DescReleased)
	assert.Equal(t, []frame{
		&amqp.Detach{Handle: 0, Closed: true, Error: &amqp.Error{Condition: "perfmq:detach", Description: "detached", Info: fields("k", "v")}},
		&amqp.Detach{Handle: 1},
	}, seen[amqp.DescDetach])
	assert.Equal(t, []frame{&amqp.End{Error: &amqp.Error{Condition: "perfmq:end", Description: "ended"}}}, seen[amqp.DescEnd])
	assert.Equal(t, []frame{&amqp.Close{Error: &amqp.Error{Condition: "perfmq:close"}}}, seen[amqp.DescClose])
}

// protonAttaches are the answers to those of [conversation].
func protonAttaches(t *testing.T) (list []frame) {
	for i, name := range []string{"attach, sender", "attach, receiver", "attach, dynamic", "attach, coordinator"} {
		for _, f := range frames {
			if f.name != name {
				continue
			}
			a := *f.frame.(*amqp.Attach)
			a.Handle, a.Role = uint32(i), !a.Role
			a.InitialDeliveryCount, a.MaxMessageSize, a.Properties = amqp.Some[uint32](0), 1<<33, fields("its", "link")
			a.Unsettled, a.IncompleteUnsettled, a.OfferedCapabilities, a.DesiredCapabilities = nil, false, nil, nil
			a.Source.DefaultOutcome = nil // Proton has none
			switch name {
			case "attach, sender":
				a.Source = amqp.Terminus{} // one without an address is none to Proton
			case "attach, coordinator":
				a.Source, a.MaxMessageSize, a.Properties = amqp.Terminus{}, 0, nil
			}
			list = append(list, &a)
		}
	}
	require.Len(t, list, 4)
	return list
}

// TestProtonAuthenticates: a SASL client reads what a server says, and says what we read.
func TestProtonAuthenticates(t *testing.T) {
	for code, outcome := range map[uint8]int{amqp.SASLOK: 0, amqp.SASLAuth: 1, amqp.SASLSysTemp: 4} {
		var got struct {
			Outcome int
			Output  string
		}
		proton(t, "sasl", [][]byte{
			join([]byte(amqp.HeaderSASL), encode(nil, &amqp.SASLMechanisms{Mechanisms: []string{"PLAIN", "ANONYMOUS"}})),
			encode(nil, &amqp.SASLOutcome{Code: code}),
		}, &got)
		assert.Equal(t, outcome, got.Outcome)
		said, err := hex.DecodeString(got.Output)
		require.NoError(t, err)
		r := readerOf(said, 512, 512)
		h, err := r.ReadProtocolHeader()
		require.NoError(t, err)
		assert.Equal(t, amqp.HeaderSASL, string(h[:]))
		f, err := r.Next()
		require.NoError(t, err)
		assert.Equal(t, amqp.FrameSASL, f.Type)
		p, err := amqp.ParseBody(f.Body)
		require.NoError(t, err)
		require.Equal(t, amqp.DescInit, p.Kind)
		var init amqp.SASLInit
		require.NoError(t, init.Decode(&p.Fields))
		assert.Equal(t, "ANONYMOUS", init.Mechanism)
		if code == amqp.SASLOK {
			h, err = r.ReadProtocolHeader()
			require.NoError(t, err)
			assert.Equal(t, amqp.HeaderAMQP, string(h[:]))
		}
	}
}
