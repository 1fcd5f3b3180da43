package amqp_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// frame is any performative or SASL frame.
type frame interface {
	Decode(f *amqp.Decoder) error
}

const channel = 0x0102

// encode appends the frame of any kind.
func encode(b []byte, f frame) []byte { return encodeOn(b, f, channel) }

func encodeOn(b []byte, f frame, channel uint16) []byte {
	switch f := f.(type) {
	case *amqp.Transfer:
		at := len(b)
		b = f.AppendHead(b, channel)
		amqp.EndFrame(b, at)
		return b
	case interface{ AppendFrame(b []byte) []byte }:
		return f.AppendFrame(b)
	case interface {
		AppendFrame(b []byte, channel uint16) []byte
	}:
		return f.AppendFrame(b, channel)
	}
	panic("no frame")
}

// blank returns an empty frame of a kind, or nil for an unknown one.
func blank(kind amqp.Descriptor) frame {
	switch kind {
	case amqp.DescOpen:
		return &amqp.Open{}
	case amqp.DescBegin:
		return &amqp.Begin{}
	case amqp.DescAttach:
		return &amqp.Attach{}
	case amqp.DescFlow:
		return &amqp.Flow{}
	case amqp.DescTransfer:
		return &amqp.Transfer{}
	case amqp.DescDisposition:
		return &amqp.Disposition{}
	case amqp.DescDetach:
		return &amqp.Detach{}
	case amqp.DescEnd, amqp.DescClose:
		return &amqp.End{}
	case amqp.DescMechanisms, amqp.DescInit, amqp.DescChallenge, amqp.DescResponse, amqp.DescOutcome:
		return &amqp.SASL{Kind: kind}
	case amqp.DescDischarge:
		return &amqp.Discharge{}
	}
	return nil
}

// state returns a state as it is encoded.
func state(s amqp.State) []byte { return s.Append(nil) }

// fields returns a map of symbols and strings.
func fields(pairs ...string) []byte {
	b := amqp.BeginMap(nil)
	for i := 0; i < len(pairs); i += 2 {
		b = amqp.AppendStr(amqp.AppendSymbol(b, pairs[i]), pairs[i+1])
	}
	amqp.EndCompound(b, 0, len(pairs))
	return b
}

var failure = &amqp.Error{
	Condition: amqp.CondInvalidField, Description: "there is one already", Info: fields("invalid-field", "container-id"),
}

// frames has each kind of frame with as little as it may have, and with all.
var frames = []struct {
	name  string
	frame frame
}{
	{"open, least", &amqp.Open{ContainerID: "c"}},
	{"open", &amqp.Open{
		ContainerID: "container", Hostname: "host", MaxFrameSize: amqp.Some[uint32](131072), ChannelMax: amqp.Some[uint16](1023),
		IdleTimeout: 30000, OfferedCapabilities: []string{"ANONYMOUS-RELAY", "SHARED-SUBS"},
		Properties: fields("product", "perfmq", "version", "2"),
	}},
	{"begin, least", &amqp.Begin{NextOutgoingID: 0, IncomingWindow: 1, OutgoingWindow: 1}},
	{"begin", &amqp.Begin{
		RemoteChannel: amqp.Some[uint16](7), NextOutgoingID: 0xfffffffd, IncomingWindow: 8192, OutgoingWindow: 1<<31 - 1,
		HandleMax: amqp.Some[uint32](1023),
	}},
	{"attach, refused", &amqp.Attach{Name: "link", Handle: 0, Role: amqp.RoleSender}},
	{"attach, sender", &amqp.Attach{
		Name: "sender", Handle: 3, Role: amqp.RoleSender, SenderSettleMode: amqp.SenderMixed,
		Source: amqp.Terminus{Kind: amqp.DescSource, ExpiryPolicy: amqp.ExpireSessionEnd},
		Target: amqp.Terminus{
			Kind: amqp.DescTarget, Address: amqp.Some("queue"), Durable: amqp.DurableUnsettledState, ExpiryPolicy: amqp.ExpireNever,
			Capabilities: []string{"queue"},
		},
		InitialDeliveryCount: amqp.Some[uint32](5), MaxMessageSize: 1 << 40, Properties: fields("paired", "yes"),
	}},
	{"attach, receiver", &amqp.Attach{
		Name: "sub|global", Handle: 258, Role: amqp.RoleReceiver, SenderSettleMode: amqp.SenderSettled,
		Source: amqp.Terminus{
			Kind: amqp.DescSource, Address: amqp.Some("topic"), Durable: amqp.DurableConfiguration, ExpiryPolicy: amqp.ExpireLinkDetach,
			DistributionMode: amqp.DistributionCopy, Selector: amqp.Some("colour = 'red'"),
			Outcomes: []string{"amqp:accepted:list", "amqp:rejected:list"}, Capabilities: []string{"topic", "shared", "global"},
		},
		Target: amqp.Terminus{Kind: amqp.DescTarget, Address: amqp.Some(""), ExpiryPolicy: "connection-close"},
	}},
	{"attach, dynamic", &amqp.Attach{
		Name: "dynamic", Handle: 1, Role: amqp.RoleReceiver, SenderSettleMode: amqp.SenderMixed,
		Source: amqp.Terminus{Kind: amqp.DescSource, ExpiryPolicy: amqp.ExpireSessionEnd, Dynamic: true},
		Target: amqp.Terminus{Kind: amqp.DescTarget, ExpiryPolicy: amqp.ExpireSessionEnd, Dynamic: true},
	}},
	{"attach, coordinator", &amqp.Attach{
		Name: "txn", Handle: 2, Role: amqp.RoleSender, SenderSettleMode: amqp.SenderMixed,
		Source:               amqp.Terminus{Kind: amqp.DescSource, ExpiryPolicy: amqp.ExpireSessionEnd},
		Target:               amqp.Terminus{Kind: amqp.DescCoordinator, Capabilities: []string{amqp.TxnLocal, amqp.TxnMultiPerSession}},
		InitialDeliveryCount: amqp.Some[uint32](0),
	}},
	{"flow, session", &amqp.Flow{IncomingWindow: 8192, NextOutgoingID: 1, OutgoingWindow: 1<<31 - 1}},
	{"flow", &amqp.Flow{
		NextIncomingID: amqp.Some[uint32](0xffffffff), IncomingWindow: 0, NextOutgoingID: 300, OutgoingWindow: 5,
		Handle: amqp.Some[uint32](0), DeliveryCount: amqp.Some[uint32](70000), LinkCredit: amqp.Some[uint32](0),
		Drain: true, Echo: true,
	}},
	{"transfer, continued", &amqp.Transfer{Handle: 5, More: true}},
	{"transfer", &amqp.Transfer{
		Handle: 5, DeliveryID: amqp.Some[uint32](0xfffffffe), DeliveryTag: []byte{0, 0, 1, 2}, MessageFormat: amqp.Some[uint32](0), Settled: true,
	}},
	{"transfer, all", &amqp.Transfer{
		Handle: 0, DeliveryID: amqp.Some[uint32](0), DeliveryTag: []byte{}, MessageFormat: amqp.Some[uint32](1 << 8), More: true,
		State: state(amqp.State{Transactional: true, TxnID: []byte{9, 8}}), Aborted: true,
	}},
	{"transfer, large state", &amqp.Transfer{
		Handle: 1, DeliveryID: amqp.Some[uint32](1), DeliveryTag: []byte("tag"), MessageFormat: amqp.Some[uint32](0),
		State: state(amqp.State{Transactional: true, TxnID: []byte(long)}),
	}},
	{"disposition, least", &amqp.Disposition{Role: amqp.RoleSender, First: 4, Last: 4}},
	{"disposition, accepted", &amqp.Disposition{
		Role: amqp.RoleReceiver, First: 0xfffffff0, Last: 15, Settled: true, State: []byte(amqp.Accepted),
	}},
	{"disposition, received", &amqp.Disposition{
		Role: amqp.RoleReceiver, First: 0, Last: 0, State: state(amqp.State{Kind: amqp.DescReceived}),
	}},
	{"disposition, rejected", &amqp.Disposition{
		Role: amqp.RoleReceiver, First: 1, Last: 2, Settled: true, State: state(amqp.State{Kind: amqp.DescRejected, Error: failure}),
	}},
	{"disposition, rejected without a reason", &amqp.Disposition{
		Role: amqp.RoleReceiver, First: 1, Last: 2, Settled: true, State: state(amqp.State{Kind: amqp.DescRejected}),
	}},
	{"disposition, released", &amqp.Disposition{
		Role: amqp.RoleReceiver, First: 1, Last: 1, Settled: true, State: state(amqp.State{Kind: amqp.DescReleased}),
	}},
	{"disposition, modified", &amqp.Disposition{
		Role: amqp.RoleReceiver, First: 1, Last: 1, Settled: true, State: state(amqp.State{
			Kind: amqp.DescModified, DeliveryFailed: true, UndeliverableHere: true,
		}),
	}},
	{"disposition, declared", &amqp.Disposition{
		Role: amqp.RoleReceiver, First: 1, Last: 1, Settled: true, State: state(amqp.State{Kind: amqp.DescDeclared, TxnID: []byte{1, 2, 3}}),
	}},
	{"disposition, accepted in a transaction", &amqp.Disposition{
		Role: amqp.RoleReceiver, First: 1, Last: 9, State: state(amqp.State{Kind: amqp.DescAccepted, Transactional: true, TxnID: []byte{1, 2, 3}}),
	}},
	{"detach, least", &amqp.Detach{Handle: 9}},
	{"detach", &amqp.Detach{Handle: 0, Closed: true, Error: failure}},
	{"end, least", &amqp.End{}},
	{"end", &amqp.End{Error: &amqp.Error{Condition: amqp.CondWindow}}},
	{"end, all", &amqp.End{Error: failure}},
	{"mechanisms", &amqp.SASL{Kind: amqp.DescMechanisms, Mechanisms: []string{"SCRAM-SHA-256", "PLAIN", "ANONYMOUS"}}},
	{"init, least", &amqp.SASL{Kind: amqp.DescInit, Mechanism: "EXTERNAL"}},
	{"init", &amqp.SASL{Kind: amqp.DescInit, Mechanism: "PLAIN", Data: []byte("\x00user\x00secret"), Hostname: "host"}},
	{"challenge", &amqp.SASL{Kind: amqp.DescChallenge, Data: []byte("r=nonce")}},
	{"response", &amqp.SASL{Kind: amqp.DescResponse, Data: []byte{}}},
	{"outcome, least", &amqp.SASL{Kind: amqp.DescOutcome, Code: amqp.SASLOK}},
	{"outcome", &amqp.SASL{Kind: amqp.DescOutcome, Code: 4, Data: []byte("v=sum")}},
}

// TestFrames: every frame is written as the golden file has it, and read again as it was.
func TestFrames(t *testing.T) {
	cases := make([]golden, 0, len(frames))
	for _, f := range frames {
		cases = append(cases, golden{f.name, encode([]byte("what was there"), f.frame)[len("what was there"):]})
	}
	checkGolden(t, "frames.golden", cases)
	var stream []byte
	for _, g := range readGolden(t, "frames.golden") {
		stream = append(stream, g.bytes...)
	}
	r := readerOf(stream, 4096, 1<<20)
	for _, f := range frames {
		got, err := r.Next()
		require.NoError(t, err, f.name)
		p, err := amqp.ParseBody(got.Body)
		require.NoError(t, err, f.name)
		assert.Empty(t, p.Payload)
		read := blank(p.Kind)
		require.IsType(t, f.frame, read, f.name)
		require.NoError(t, read.Decode(&p.Fields), f.name)
		assert.Equal(t, f.frame, read, f.name)
		switch f.frame.(type) {
		case *amqp.Open:
			assert.Equal(t, amqp.Frame{Type: amqp.FrameAMQP, Channel: 0, Body: got.Body}, got)
		case *amqp.SASL:
			assert.Equal(t, amqp.Frame{Type: amqp.FrameSASL, Channel: 0, Body: got.Body}, got)
		default:
			assert.Equal(t, amqp.Frame{Type: amqp.FrameAMQP, Channel: channel, Body: got.Body}, got)
		}
	}
}

// TestStates: a state is read as it was written.
func TestStates(t *testing.T) {
	for _, s := range []amqp.State{
		{},
		{Kind: amqp.DescAccepted},
		{Kind: amqp.DescReleased},
		{Kind: amqp.DescRejected},
		{Kind: amqp.DescRejected, Error: failure},
		{Kind: amqp.DescModified},
		{Kind: amqp.DescModified, UndeliverableHere: true},
		{Kind: amqp.DescReceived},
		{Kind: amqp.DescDeclared, TxnID: []byte{}},
		{Transactional: true, TxnID: []byte{1}},
		{Kind: amqp.DescRejected, Error: failure, Transactional: true, TxnID: []byte(long)},
		{Kind: amqp.DescModified, DeliveryFailed: true, Transactional: true, TxnID: []byte{}},
	} {
		raw := state(s)
		if s.Kind == 0 && !s.Transactional {
			assert.Equal(t, []byte{amqp.CodeNull}, raw)
			raw = nil // as null is read
		}
		got := musttest.Get(amqp.ParseState(raw))(t)
		assert.Equal(t, s, got)
		assert.Equal(t, s.Kind >= amqp.DescAccepted && s.Kind <= amqp.DescModified, got.Terminal())
	}
	for _, accepted := range []string{
		"00 53 24 45", "00 53 24 c0 01 00", "00 80 0000000000000024 d0 00000004 00000000",
	} {
		assert.Equal(t, amqp.State{Kind: amqp.DescAccepted}, musttest.Get(amqp.ParseState(unhex(t, accepted)))(t))
	}
}

// TestAppendAccepted: it is the disposition that it stands for.
func TestAppendAccepted(t *testing.T) {
	for _, c := range []amqp.Disposition{
		{Role: amqp.RoleReceiver, First: 0, Last: 0, Settled: true, State: []byte(amqp.Accepted)},
		{Role: amqp.RoleReceiver, First: 255, Last: 256, Settled: true, State: []byte(amqp.Accepted)},
		{Role: amqp.RoleReceiver, First: 0xffffffff, Last: 3, Settled: true, State: []byte(amqp.Accepted)},
	} {
		b := amqp.AppendAccepted([]byte{1, 2, 3}, channel, c.First, c.Last)[3:]
		r := readerOf(b, 512, 512)
		f := musttest.Get(r.Next())(t)
		assert.Equal(t, uint16(channel), f.Channel)
		p := musttest.Get(amqp.ParseBody(f.Body))(t)
		var got amqp.Disposition
		require.NoError(t, got.Decode(&p.Fields))
		assert.Equal(t, c, got)
		_, err := r.Next()
		require.Error(t, err, "there is no more")
	}
}

// TestDecodeForgets: a struct that is used again keeps nothing of the last time.
func TestDecodeForgets(t *testing.T) {
	for _, full := range frames {
		for _, least := range frames {
			if !reflect.DeepEqual(blankLike(full.frame), blankLike(least.frame)) {
				continue
			}
			used := blankLike(full.frame)
			for _, f := range []frame{full.frame, least.frame} {
				p := musttest.Get(amqp.ParseBody(encode(nil, f)[amqp.FrameHeaderSize:]))(t)
				require.NoError(t, used.Decode(&p.Fields))
			}
			assert.Equal(t, least.frame, used)
		}
	}
}

func blankLike(f frame) frame {
	if step, ok := f.(*amqp.SASL); ok {
		return &amqp.SASL{Kind: step.Kind}
	}
	return reflect.New(reflect.TypeOf(f).Elem()).Interface().(frame)
}

//go:generate go test . -short -count=1 -update

// Golden files have a line for each case: its name, and bytes in hexadecimal. Qpid Proton confirmed them. `go test
// -update` writes them, and a test compares the messages with go-amqp.
var update = flag.Bool("update", false, "write the golden files anew")

type golden struct {
	name  string
	bytes []byte
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b := musttest.Get(hex.DecodeString(strings.Join(strings.Fields(text), "")))(t)
	return b
}

// checkGolden compares the cases with a golden file, or writes it.
func checkGolden(t *testing.T, file string, cases []golden) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		var b bytes.Buffer
		for _, c := range cases {
			fmt.Fprintf(&b, "%s: %x\n", c.name, c.bytes)
		}
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	}
	want := readGolden(t, file)
	require.Len(t, cases, len(want))
	for i, c := range cases {
		assert.Equal(t, want[i].name, c.name)
		assert.Equal(t, fmt.Sprintf("%x", want[i].bytes), fmt.Sprintf("%x", c.bytes), c.name)
	}
}

func readGolden(t testing.TB, file string) (list []golden) {
	t.Helper()
	text := musttest.Get(os.ReadFile(filepath.Join("testdata", file)))(t)
	for line := range strings.Lines(string(text)) {
		name, digits, ok := strings.Cut(strings.TrimSpace(line), ": ")
		require.True(t, ok, line)
		list = append(list, golden{name, unhex(t, digits)})
	}
	return list
}
