//go:build unix

package amqp_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// conversation returns our frames to Proton: all performatives, and all states.
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

// checkProton reads the bytes that Proton said, as testdata/proton_codec.py told it to.
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

// TestProtonAuthenticates: a SASL client of Proton reads our server's frames, and we read the client's.
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
