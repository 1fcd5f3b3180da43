package amqp_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// frame is any performative or SASL frame.
type frame interface {
	Decode(f *amqp.Decoder) error
}

const channel = 0x0102

// encode appends the frame of any kind.
func encode(b []byte, f frame) []byte {
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

// blank returns an empty frame of a kind; nil if there is none.
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
	case amqp.DescEnd:
		return &amqp.End{}
	case amqp.DescClose:
		return &amqp.Close{}
	case amqp.DescMechanisms:
		return &amqp.SASLMechanisms{}
	case amqp.DescInit:
		return &amqp.SASLInit{}
	case amqp.DescChallenge:
		return &amqp.SASLChallenge{}
	case amqp.DescResponse:
		return &amqp.SASLResponse{}
	case amqp.DescOutcome:
		return &amqp.SASLOutcome{}
	case amqp.DescDeclare:
		return &amqp.Declare{}
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

func lifetime() []byte { // delete on close (Messaging, section 3.5.10)
	b := amqp.AppendSymbol(amqp.BeginMap(nil), "lifetime-policy")
	b = append(b, amqp.CodeDescribed, amqp.CodeSmallUlong, 0x2b, amqp.CodeList0)
	amqp.EndCompound(b, 0, 2)
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
		IdleTimeout: 30000, OutgoingLocales: []string{"en-US"}, IncomingLocales: []string{"de-DE", "en-US"},
		OfferedCapabilities: []string{"ANONYMOUS-RELAY", "SHARED-SUBS"}, DesiredCapabilities: []string{"sole-connection-for-container"},
		Properties: fields("product", "perfmq", "version", "2"),
	}},
	{"begin, least", &amqp.Begin{NextOutgoingID: 0, IncomingWindow: 1, OutgoingWindow: 1}},
	{"begin", &amqp.Begin{
		RemoteChannel: amqp.Some[uint16](7), NextOutgoingID: 0xfffffffd, IncomingWindow: 8192, OutgoingWindow: 1<<31 - 1,
		HandleMax: amqp.Some[uint32](1023), OfferedCapabilities: []string{"a"}, DesiredCapabilities: []string{"b", "c"},
		Properties: fields("k", "v"),
	}},
	{"attach, refused", &amqp.Attach{Name: "link", Handle: 0, Role: amqp.RoleSender}},
	{"attach, sender", &amqp.Attach{
		Name: "sender", Handle: 3, Role: amqp.RoleSender, SenderSettleMode: amqp.SenderMixed, ReceiverSettleMode: amqp.ReceiverSecond,
		Source: amqp.Terminus{Kind: amqp.DescSource, ExpiryPolicy: amqp.ExpireSessionEnd},
		Target: amqp.Terminus{
			Kind: amqp.DescTarget, Address: amqp.Some("queue"), Durable: amqp.DurableUnsettledState, ExpiryPolicy: amqp.ExpireNever,
			Timeout: 60, Capabilities: []string{"queue"},
		},
		Unsettled: unsettledMap(), IncompleteUnsettled: true, InitialDeliveryCount: amqp.Some[uint32](5), MaxMessageSize: 1 << 40,
		OfferedCapabilities: []string{"DELAYED_DELIVERY"}, DesiredCapabilities: []string{"x"}, Properties: fields("paired", "yes"),
	}},
	{"attach, receiver", &amqp.Attach{
		Name: "sub|global", Handle: 258, Role: amqp.RoleReceiver, SenderSettleMode: amqp.SenderSettled,
		Source: amqp.Terminus{
			Kind: amqp.DescSource, Address: amqp.Some("topic"), Durable: amqp.DurableConfiguration, ExpiryPolicy: amqp.ExpireLinkDetach,
			Timeout: 5, DistributionMode: amqp.DistributionCopy, Filters: []amqp.Filter{amqp.SelectorFilter("colour = 'red'")},
			DefaultOutcome: state(amqp.State{Kind: amqp.DescModified, DeliveryFailed: true}),
			Outcomes:       []string{amqp.DescAccepted.String(), amqp.DescRejected.String()}, Capabilities: []string{"topic", "shared", "global"},
		},
		Target: amqp.Terminus{Kind: amqp.DescTarget, Address: amqp.Some(""), ExpiryPolicy: amqp.ExpireConnectionClose},
	}},
	{"attach, dynamic", &amqp.Attach{
		Name: "dynamic", Handle: 1, Role: amqp.RoleReceiver, SenderSettleMode: amqp.SenderMixed,
		Source: amqp.Terminus{Kind: amqp.DescSource, ExpiryPolicy: amqp.ExpireSessionEnd, Dynamic: true, NodeProperties: lifetime()},
		Target: amqp.Terminus{Kind: amqp.DescTarget, ExpiryPolicy: amqp.ExpireSessionEnd, Dynamic: true, NodeProperties: lifetime()},
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
		Available: amqp.Some[uint32](12), Drain: true, Echo: true, Properties: fields("k", "v"),
	}},
	{"transfer, continued", &amqp.Transfer{Handle: 5, More: true}},
	{"transfer", &amqp.Transfer{
		Handle: 5, DeliveryID: amqp.Some[uint32](0xfffffffe), DeliveryTag: []byte{0, 0, 1, 2}, MessageFormat: amqp.Some[uint32](0), Settled: true,
	}},
	{"transfer, all", &amqp.Transfer{
		Handle: 0, DeliveryID: amqp.Some[uint32](0), DeliveryTag: []byte{}, MessageFormat: amqp.Some[uint32](1 << 8), More: true,
		ReceiverSettleMode: amqp.Some(amqp.ReceiverSecond), State: state(amqp.State{Transactional: true, TxnID: []byte{9, 8}}),
		Resume: true, Aborted: true, Batchable: true,
	}},
	{"transfer, large state", &amqp.Transfer{
		Handle: 1, DeliveryID: amqp.Some[uint32](1), DeliveryTag: []byte("tag"), MessageFormat: amqp.Some[uint32](0),
		State: state(amqp.State{Transactional: true, TxnID: []byte(long)}),
	}},
	{"disposition, least", &amqp.Disposition{Role: amqp.RoleSender, First: 4, Last: 4}},
	{"disposition, accepted", &amqp.Disposition{
		Role: amqp.RoleReceiver, First: 0xfffffff0, Last: 15, Settled: true, State: []byte(amqp.Accepted), Batchable: true,
	}},
	{"disposition, received", &amqp.Disposition{
		Role: amqp.RoleReceiver, First: 0, Last: 0, State: state(amqp.State{Kind: amqp.DescReceived, SectionNumber: 2, SectionOffset: 1 << 33}),
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
			Kind: amqp.DescModified, DeliveryFailed: true, UndeliverableHere: true, Annotations: fields("x-opt-reason", "none"),
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
	{"close, least", &amqp.Close{}},
	{"close", &amqp.Close{Error: failure}},
	{"mechanisms", &amqp.SASLMechanisms{Mechanisms: []string{"SCRAM-SHA-256", "PLAIN", "ANONYMOUS"}}},
	{"init, least", &amqp.SASLInit{Mechanism: "EXTERNAL"}},
	{"init", &amqp.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("\x00user\x00secret"), Hostname: "host"}},
	{"challenge", &amqp.SASLChallenge{Challenge: []byte("r=nonce")}},
	{"response", &amqp.SASLResponse{Response: []byte{}}},
	{"outcome, least", &amqp.SASLOutcome{Code: amqp.SASLOK}},
	{"outcome", &amqp.SASLOutcome{Code: amqp.SASLSysTemp, AdditionalData: []byte("v=sum")}},
}

func unsettledMap() []byte {
	b := amqp.AppendBinary(amqp.BeginMap(nil), []byte{1})
	b = append(b, amqp.Accepted...)
	amqp.EndCompound(b, 0, 2)
	return b
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
		case *amqp.Open, *amqp.Close:
			assert.Equal(t, amqp.Frame{Type: amqp.FrameAMQP, Channel: 0, Body: got.Body}, got)
		case *amqp.SASLMechanisms, *amqp.SASLInit, *amqp.SASLChallenge, *amqp.SASLResponse, *amqp.SASLOutcome:
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
		{Kind: amqp.DescModified, UndeliverableHere: true, Annotations: fields("a", "b")},
		{Kind: amqp.DescReceived, SectionNumber: 0, SectionOffset: 0},
		{Kind: amqp.DescReceived, SectionNumber: 3, SectionOffset: 1 << 60},
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
		got, err := amqp.ParseState(raw)
		require.NoError(t, err)
		assert.Equal(t, s, got)
		assert.Equal(t, s.Kind >= amqp.DescAccepted && s.Kind <= amqp.DescModified, got.Terminal())
	}
	for _, accepted := range []string{
		"00 53 24 45", "00 53 24 c0 01 00", "00 80 0000000000000024 d0 00000004 00000000",
		"00 a3 12 616d71703a61636365707465643a6c697374 45",
	} {
		s, err := amqp.ParseState(unhex(t, accepted))
		require.NoError(t, err)
		assert.Equal(t, amqp.State{Kind: amqp.DescAccepted}, s)
	}
}

// TestForeignFrames: what other implementations write, and we do not.
func TestForeignFrames(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		want      frame
	}{
		{"open of symbols alone", "00 53 10 c0 30 0a a3 01 63 40 40 40 40 a3 05 656e2d5553 e0 08 01 a3 05 656e2d5553" +
			" a3 01 61 e0 02 00 a3 d1 0000000b 00000002 a3 01 6b a1 02 7676", &amqp.Open{
			ContainerID: "c", OutgoingLocales: []string{"en-US"}, IncomingLocales: []string{"en-US"}, OfferedCapabilities: []string{"a"},
			Properties: []byte{0xd1, 0, 0, 0, 11, 0, 0, 0, 2, 0xa3, 1, 'k', 0xa1, 2, 'v', 'v'},
		}},
		{
			"begin with all the width", "00 80 0000000000000011 d0 0000001b 00000005 60 0000 70 00000001 70 00000002 70 00000003 70 000003ff",
			&amqp.Begin{
				RemoteChannel: amqp.Some[uint16](0), NextOutgoingID: 1, IncomingWindow: 2, OutgoingWindow: 3, HandleMax: amqp.Some[uint32](1023),
			},
		},
		{"flow of nulls at the end", "00 53 13 c0 0c 0b 40 43 43 43 40 40 40 40 40 40 40", &amqp.Flow{}},
		{"detach with a boolean in a byte", "00 53 16 c0 05 02 52 07 56 01", &amqp.Detach{Handle: 7, Closed: true}},
		{
			"end with a symbol for a description", "00 53 17 c0 0d 01 00 53 1d c0 07 02 a3 01 63 a3 01 64",
			&amqp.End{Error: &amqp.Error{Condition: "c", Description: "d"}},
		},
		{"end with more fields than there are", "00 53 17 c0 03 02 40 40", &amqp.End{}},
		{
			"disposition by symbol", "00 a3 15 616d71703a646973706f736974696f6e3a6c697374 c0 09 05 41 43 40 41 00 53 24 45",
			&amqp.Disposition{Role: amqp.RoleReceiver, Settled: true, State: []byte(amqp.Accepted)},
		},
		{"close, wide and empty", "00 53 18 d0 00000004 00000000", &amqp.Close{}},
		{"declare", "00 53 31 45", &amqp.Declare{}},
		{"declare, global", "00 53 31 c0 04 01 a0 01 07", &amqp.Declare{GlobalID: []byte{0xa0, 1, 7}}},
		{"discharge", "00 53 32 c0 05 02 a0 01 07 41", &amqp.Discharge{TxnID: []byte{7}, Fail: true}},
	} {
		p, err := amqp.ParseBody(unhex(t, c.hex))
		require.NoError(t, err, c.name)
		got := blank(p.Kind)
		require.NoError(t, got.Decode(&p.Fields), c.name)
		assert.Equal(t, c.want, got, c.name)
	}
}

// TestMalformedFrames: what is wrong is told with the place.
func TestMalformedFrames(t *testing.T) {
	for _, c := range []struct {
		hex, says string
		want      error
	}{
		{"00 53 10 45", "open: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 11 c0 05 04 40 43 43 40", "begin: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 12 c0 04 01 a1 01 61", "attach: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 12 c0 05 02 a1 01 61 43", "attach: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 13 c0 05 04 a1 00 43 43", "flow, field 1: a value of another type was expected", amqp.ErrType},
		{"00 53 13 c0 04 03 43 43 43", "flow: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 14 45", "transfer: a mandatory field is missing", amqp.ErrMissing},
		{
			"00 53 14 c0 26 03 43 43 a0 21" + "000000000000000000000000000000000000000000000000000000000000000000",
			"transfer, field 3: a value out of its range", amqp.ErrValue,
		},
		{"00 53 15 c0 02 01 41", "disposition: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 15 c0 03 02 40 43", "disposition: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 15 c0 03 02 41 52", "disposition, field 2: a value ends beyond what contains it", amqp.ErrTruncated},
		{"00 53 16 45", "detach: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 18 c0 05 01 00 53 1d 45", "close, field 1: error: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 18 c0 05 01 00 53 24 45", "close, field 1: an unexpected descriptor", amqp.ErrDescriptor},
		{"00 53 18 c0 0c 01 00 53 1d c0 06 03 a3 01 63 40 45", "close, field 1: error, field 3: a value of another type was expected", amqp.ErrType},
		{"00 53 12 c0 0e 06 a1 01 61 43 41 40 40 00 53 1d c0 01 00", "attach, field 6: an unexpected descriptor", amqp.ErrDescriptor},
		{
			"00 53 12 c0 0f 06 a1 01 61 43 41 40 40 00 53 28 c0 02 01 43",
			"attach, field 6: source, field 1: a value of another type was expected", amqp.ErrType,
		},
		{
			"00 53 12 c0 10 07 a1 01 61 43 41 40 40 40 00 53 30 c0 02 01 43",
			"attach, field 7: coordinator, field 1: a value of another type was expected", amqp.ErrType,
		},
		{"00 53 40 45", "sasl-mechanisms: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 41 45", "sasl-init: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 42 45", "sasl-challenge: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 43 45", "sasl-response: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 44 45", "sasl-outcome: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 32 45", "discharge: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 10 40", "performative: a value of another type was expected", amqp.ErrType},
		{"00 53 10 a1 00", "performative: a value of another type was expected", amqp.ErrType},
		{"45", "performative: a value of another type was expected", amqp.ErrType},
		{"40", "performative: a value ends beyond what contains it", amqp.ErrTruncated},
		{"", "performative: a value ends beyond what contains it", amqp.ErrTruncated},
		{"00 53 10", "performative: a value ends beyond what contains it", amqp.ErrTruncated},
	} {
		p, err := amqp.ParseBody(unhex(t, c.hex))
		if err == nil {
			err = blank(p.Kind).Decode(&p.Fields)
		}
		require.EqualError(t, err, c.says, c.hex)
		require.ErrorIs(t, err, c.want)
		var d *amqp.DecodeError
		require.True(t, errors.As(err, &d))
	}
	for text, says := range map[string]string{
		"43":          "delivery-state: a value of another type was expected",
		"00 53 24 40": "delivery-state: a value of another type was expected",
		"00 53 10 45": "delivery-state: an unexpected descriptor",
		"00 53 23 45": "delivery-state: received: a mandatory field is missing",
		"00 53 33 45": "delivery-state: declared: a mandatory field is missing",
		"00 53 34 45": "delivery-state: transactional-state: a mandatory field is missing",
		"00 53 34 c0 0a 02 a0 00 00 53 34 c0 02 01 40": "delivery-state: transactional-state, field 2: an unexpected descriptor",
		"00 53 27 c0 02 01 43":                         "delivery-state: modified, field 1: a value of another type was expected",
	} {
		_, err := amqp.ParseState(unhex(t, text))
		require.ErrorContains(t, err, says, text)
	}
}

// TestFilters: of all kinds; nulls are left out, and no more than a limit is taken.
func TestFilters(t *testing.T) {
	attach := func(set []byte) ([]amqp.Filter, error) {
		source := amqp.BeginList(nil)
		for range 7 {
			source = amqp.AppendNull(source)
		}
		source = append(source, set...)
		amqp.EndCompound(source, 0, 8)
		b := amqp.BeginList(nil)
		b = append(amqp.AppendBool(amqp.AppendUint(amqp.AppendStr(b, "l"), 0), true), amqp.CodeNull, amqp.CodeNull)
		b = append(amqp.AppendDescriptor(b, amqp.DescSource), source...)
		amqp.EndCompound(b, 0, 6)
		d := amqp.NewDecoder(b)
		list, _ := d.List()
		var a amqp.Attach
		err := a.Decode(&list)
		return a.Source.Filters, err
	}
	set := unhex(t, "a3 01 61 00 80 0000468c00000004 a1 01 78"+ // a: selector x
		"a3 01 62 40"+ // b: null
		"a3 01 63 b1 00000001 79"+ // c: the string y, not described
		"a3 01 64 00 a3 04 61626364 45"+ // d: described by a symbol that is not known
		"a3 01 65 00 a3 01 7a a3 01 77") // e: likewise, a symbol
	list, err := attach(append([]byte{amqp.CodeMap8, byte(len(set) + 1), 10}, set...))
	require.NoError(t, err)
	assert.Equal(t, []amqp.Filter{
		{Name: "a", Descriptor: amqp.DescSelector, Text: "x", Value: amqp.SelectorFilter("x").Value},
		{Name: "c", Text: "y", Value: []byte{0xb1, 0, 0, 0, 1, 'y'}},
		{Name: "d", Value: []byte{0, 0xa3, 4, 'a', 'b', 'c', 'd', 0x45}},
		{Name: "e", Text: "w", Value: []byte{0, 0xa3, 1, 'z', 0xa3, 1, 'w'}},
	}, list)
	many := amqp.BeginMap(nil)
	for range amqp.MaxEntries + 1 {
		many = amqp.AppendBool(amqp.AppendSymbol(many, "f"), true)
	}
	amqp.EndCompound(many, 0, 2*amqp.MaxEntries+2)
	_, err = attach(many)
	require.ErrorIs(t, err, amqp.ErrLimit)
	_, err = attach(unhex(t, "c1 03 02 43 40"))
	require.EqualError(t, err, "attach, field 6: source, field 8: filter-set, field 1: a value of another type was expected")
}

// TestErrorText: what a peer says of an error is shown in quotes if it does not print.
func TestErrorText(t *testing.T) {
	for want, e := range map[string]*amqp.Error{
		"amqp:not-found":             {Condition: amqp.CondNotFound},
		"amqp:not-found: no queue Q": {Condition: amqp.CondNotFound, Description: "no queue Q"},
		`x: "\x1b[2J"`:               {Condition: "x", Description: "\x1b[2J"},
		`"a\nb": "c\xffd"`:           {Condition: "a\nb", Description: "c\xffd"},
	} {
		require.EqualError(t, e, want)
	}
	require.EqualError(t, &amqp.FrameError{Size: 7, DataOffset: 2}, "a frame of 7 bytes with a header of 8")
	for _, secret := range []any{
		amqp.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("secret")},
		&amqp.SASLInit{InitialResponse: []byte("secret")},
		amqp.SASLResponse{Response: []byte("secret")},
		&amqp.SASLResponse{Response: []byte("secret")},
	} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
			text := fmt.Sprintf(format, secret)
			for _, form := range []string{"secret", "736563", "115 101 99", "0x73, 0x65"} {
				assert.NotContains(t, text, form, format)
			}
		}
	}
}

// TestAppendAccepted: it is the disposition that it stands for.
func TestAppendAccepted(t *testing.T) {
	for _, c := range []amqp.Disposition{
		{Role: amqp.RoleReceiver, First: 0, Last: 0, State: []byte(amqp.Accepted)},
		{Role: amqp.RoleReceiver, First: 255, Last: 256, Settled: true, State: []byte(amqp.Accepted)},
		{Role: amqp.RoleReceiver, First: 0xffffffff, Last: 3, Settled: true, State: []byte(amqp.Accepted)},
	} {
		b := amqp.AppendAccepted([]byte{1, 2, 3}, channel, c.First, c.Last, c.Settled)[3:]
		r := readerOf(b, 512, 512)
		f, err := r.Next()
		require.NoError(t, err)
		assert.Equal(t, uint16(channel), f.Channel)
		p, err := amqp.ParseBody(f.Body)
		require.NoError(t, err)
		var got amqp.Disposition
		require.NoError(t, got.Decode(&p.Fields))
		assert.Equal(t, c, got)
		_, err = r.Next()
		require.Error(t, err, "there is no more")
	}
}

// TestTransferOffsets: what is changed in place is what is read.
func TestTransferOffsets(t *testing.T) {
	for _, s := range [][]byte{nil, []byte(amqp.Accepted), bytesOf(128)} {
		tr := amqp.Transfer{Handle: 1, DeliveryID: amqp.Some[uint32](2), DeliveryTag: bytesOf(32), MessageFormat: amqp.Some[uint32](0), State: s}
		b := tr.AppendHead(nil, 9)
		if s == nil {
			assert.Equal(t, amqp.CodeFalse, b[len(b)-1], "where More is")
			tr.More = true
			b[len(b)-1] = amqp.CodeTrue
		}
		copy(b[amqp.TransferChannelAt:], []byte{1, 2})
		copy(b[amqp.TransferHandleAt:], []byte{0, 0, 0, 7})
		copy(b[amqp.TransferDeliveryIDAt:], []byte{0xff, 0xff, 0xff, 0xff})
		copy(b[amqp.TransferTagAt:], "another tag, of the same 32 byte")
		amqp.EndFrame(b, 0)
		f, err := readerOf(b, 512, 512).Next()
		require.NoError(t, err)
		assert.Equal(t, uint16(0x0102), f.Channel)
		p, err := amqp.ParseBody(f.Body)
		require.NoError(t, err)
		want := tr
		want.Handle, want.DeliveryID, want.DeliveryTag = 7, amqp.Some[uint32](0xffffffff), []byte("another tag, of the same 32 byte")
		var got amqp.Transfer
		if len(s) == 128 { // no value, but as long as one may be
			require.Error(t, got.Decode(&p.Fields))
			continue
		}
		require.NoError(t, got.Decode(&p.Fields))
		assert.Equal(t, want, got)
	}
}

func bytesOf(n int) []byte { return make([]byte, n) }

// TestDecodeForgets: a struct that is used again keeps nothing of the last time.
func TestDecodeForgets(t *testing.T) {
	for _, full := range frames {
		for _, least := range frames {
			if reflect.TypeOf(full.frame) != reflect.TypeOf(least.frame) {
				continue
			}
			used := blankLike(full.frame)
			for _, f := range []frame{full.frame, least.frame} {
				p, err := amqp.ParseBody(encode(nil, f)[amqp.FrameHeaderSize:])
				require.NoError(t, err)
				require.NoError(t, used.Decode(&p.Fields))
			}
			assert.Equal(t, least.frame, used)
		}
	}
}

func blankLike(f frame) frame {
	return reflect.New(reflect.TypeOf(f).Elem()).Interface().(frame)
}
