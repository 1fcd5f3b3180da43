package amqp

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// rabbit replays RabbitMQ 4.0.5: its management node, and a begin that is lost when its channel was ended just before.
type rabbit struct {
	*peer
	queues   map[string]string // kinds by name, with x-max-priority: "classic 9"
	requests []string          // "PUT c1 quorum"
	hurried  int               // requests to refuse because credit for the answer has not come yet
	starting int               // attachments of consumers to refuse because the stream has not started yet
	ended    map[uint16]bool
}

func newRabbit(t *testing.T) *rabbit {
	t.Helper()
	r := &rabbit{peer: newPeer(t), queues: map[string]string{}, ended: map[uint16]bool{}}
	r.open = productOf("RabbitMQ", "4.0.5")
	r.on = func(_ *peer, b *wire.Body) bool {
		switch b.Kind {
		case wire.DescEnd:
			over := r.ended[r.channel]
			r.ended[r.channel] = true
			return over
		case wire.DescBegin:
			return r.ended[r.channel]
		case wire.DescTransfer:
			r.request(t, b.Payload)
			return true
		case wire.DescAttach:
			var a wire.Attach
			fields := b.Fields
			require.NoError(t, a.Decode(&fields))
			if a.Role != wire.RoleReceiver || r.starting == 0 || a.Source.Address.V != "/queues/s" {
				return false
			}
			r.starting--
			r.ended[r.channel] = true
			why := &wire.Error{Condition: wire.CondInternal, Description: "stream queue 's' does not have a running replica"}
			r.write((&wire.End{Error: why}).AppendFrame(nil, r.channel))
			return true
		}
		return false
	}
	return r
}

// request answers a request to the management node.
func (r *rabbit) request(t *testing.T, payload []byte) {
	t.Helper()
	if r.hurried > 0 {
		r.hurried--
		r.ended[r.channel] = true
		why := &wire.Error{Condition: wire.CondPrecondition, Description: "insufficient credit (0) for management link"}
		r.write((&wire.End{Error: why}).AppendFrame(nil, r.channel))
		return
	}
	var m wire.Message
	var p wire.Properties
	require.NoError(t, m.Decode(payload))
	require.NoError(t, p.Decode(m.Properties))
	arguments := wire.Lookup(m.Body, "arguments")
	asked := arguments.Raw()
	kindValue := wire.Lookup(asked, "x-queue-type")
	kind, _ := kindValue.Text()
	limitValue := wire.Lookup(asked, "x-delivery-limit")
	limit := ""
	if n, ok := limitValue.Integer(); ok {
		limit = " " + strconv.FormatInt(n, 10)
	}
	name := strings.ReplaceAll(strings.TrimPrefix(string(p.To), "/queues/"), "%20", " ")
	r.requests = append(r.requests, strings.TrimSpace(string(p.Subject)+" "+name+" "+string(kind)+limit))
	status, value := r.answer(string(p.Subject), name, string(kind))
	answer := wire.Properties{CorrelationID: p.MessageID, Subject: []byte(status)}
	head := wire.Transfer{
		Handle: 1, DeliveryID: wire.Some(uint32(len(r.requests))), DeliveryTag: []byte{1}, Settled: true, //nolint:gosec // small
	}
	b := answer.AppendSection(head.AppendHead(nil, r.channel))
	b = append(wire.AppendDescriptor(b, wire.DescValue), value...)
	wire.EndFrame(b, 0)
	r.write(b)
}

func (r *rabbit) answer(method, name, kind string) (status string, value []byte) {
	known, exists := r.queues[name]
	switch {
	case method == "GET" && !exists:
		return "404", wire.AppendStr(nil, "queue '"+name+"' in vhost '/' not found")
	case method == "PUT" && exists && known != kind:
		return "409", wire.AppendStr(nil, "inequivalent arg 'x-queue-type' for queue '"+name+"'")
	case method == "PUT" && !exists:
		r.queues[name], known = kind, kind
	}
	arguments, entries := wire.BeginMap(nil), 0
	known, maximum, _ := strings.Cut(known, " ")
	if n, err := strconv.ParseInt(maximum, 10, 64); err == nil {
		arguments, entries = wire.AppendLong(wire.AppendStr(arguments, "x-max-priority"), n), 2
	}
	wire.EndCompound(arguments, 0, entries)
	b := wire.AppendStr(wire.AppendStr(wire.BeginMap(nil), "type"), known)
	b = append(wire.AppendStr(b, "arguments"), arguments...)
	wire.EndCompound(b, 0, 4)
	return "200", b
}

// TestDeclare: queues of RabbitMQ 4 are declared by the options, or described.
func TestDeclare(t *testing.T) {
	for name, c := range map[string]struct {
		options  []string
		priority int
		queues   map[string]string
		hurried  int
		requests []string
		fails    string // the text of the error
		hint     string
	}{
		"must exist": {
			priority: -1, requests: []string{"GET a b"},
			fails: "it does not exist: queue 'a b' in vhost '/' not found", hint: "-o declare=classic (or quorum)",
		},
		"exists":  {priority: -1, queues: map[string]string{"a b": "classic"}, requests: []string{"GET a b"}},
		"classic": {options: []string{"declare=classic"}, priority: -1, requests: []string{"PUT a b classic", "PUT a b classic"}},
		"quorum":  {options: []string{"declare=quorum"}, priority: 7, requests: []string{"PUT a b quorum", "PUT a b quorum"}},
		"answered too early": {
			options: []string{"declare=quorum"}, priority: -1, hurried: 2, requests: []string{"PUT a b quorum", "PUT a b quorum"},
		},
		"another kind": {
			options: []string{"declare=quorum"}, priority: -1, queues: map[string]string{"a b": "stream"}, requests: []string{"PUT a b quorum"},
			fails: "the queue exists with other settings: inequivalent arg", hint: "leave out -o declare",
		},
		"with priorities": {
			priority: 7, queues: map[string]string{"a b": "classic 9"}, requests: []string{"GET a b", "GET a b"},
		},
		"without priorities": {
			priority: 7, queues: map[string]string{"a b": "classic"}, requests: []string{"GET a b", "GET a b"},
			fails: "the queue has no priorities", hint: "x-max-priority",
		},
		"stream": {
			priority: -1, queues: map[string]string{"a b": "stream"}, requests: []string{"GET a b"},
			fails: "each consumer of a stream gets all messages", hint: "use topic:///queues/a%20b",
		},
		"limited": {options: []string{"declare=quorum", "delivery-limit=5"}, priority: -1, requests: []string{"PUT a b quorum 5", "PUT a b quorum 5"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRabbit(t)
				maps.Copy(r.queues, c.queues)
				r.hurried = c.hurried
				d := r.driver(driver.OpenOptions{}, c.options...)
				consumed, produced := consumerSpec(), producerSpec(1)
				consumed.Destination.Name, produced.Destination.Name = "a b", "a b"
				produced.Connection, produced.Variants[0].Priority = consumed.Connection, c.priority
				k, err := d.Consumer(t.Context(), consumed)
				if err == nil {
					var p driver.Producer
					if p, err = d.Producer(t.Context(), produced, newEnds()); err == nil {
						require.NoError(t, p.Close(t.Context()))
					}
					require.NoError(t, k.Close(t.Context()))
				}
				require.NoError(t, d.Close(t.Context()))
				if c.fails == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, c.fails)
					require.Contains(t, driver.HintOf(err), c.hint)
				}
				require.Equal(t, c.requests, r.requests)
			})
		})
	}
}

// TestLostBegin: producers can be opened after others were closed on the same connection.
func TestLostBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRabbit(t)
		r.queues["q"] = "classic"
		d := r.driver(driver.OpenOptions{})
		keeper := musttest.Get(d.Producer(t.Context(), producerSpec(1), newEnds()))(t)
		for range 3 {
			p := musttest.Get(d.Producer(t.Context(), producerSpec(1), newEnds()))(t)
			require.NoError(t, p.Close(t.Context()))
		}
		require.NoError(t, keeper.Close(t.Context()))
		require.NoError(t, d.Close(t.Context()))
	})
}

// TestStreamAsTopic: a stream is a topic, by its name if it is declared, by its address if it exists, and is
// waited for until it has started.
func TestStreamAsTopic(t *testing.T) {
	for name, c := range map[string]struct {
		topic, exists string
		options       []string
		starting      int
		fails, hint   string
	}{
		"declared":         {topic: "s", options: []string{"declare=stream"}},
		"declared, late":   {topic: "s", options: []string{"declare=stream"}, starting: 3},
		"never started":    {topic: "s", options: []string{"declare=stream"}, starting: 100, fails: "does not have a running replica"},
		"by its address":   {topic: "/queues/s", exists: "stream"},
		"a queue":          {topic: "/queues/s", exists: "quorum", fails: "it is no stream", hint: "use queue://NAME"},
		"missing":          {topic: "/queues/s", fails: "it does not exist", hint: "-o declare=stream"},
		"of another topic": {topic: "s", fails: "only queues and streams can be consumed from", hint: "a stream"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRabbit(t)
				if r.starting = c.starting; c.exists != "" {
					r.queues["s"] = c.exists
				}
				d := r.driver(driver.OpenOptions{}, c.options...)
				spec := consumerSpec()
				spec.Destination = driver.Destination{Kind: driver.Topic, Name: c.topic}
				k, err := d.Consumer(t.Context(), spec)
				if c.fails == "" {
					require.NoError(t, err)
					require.NoError(t, k.Close(t.Context()))
				} else {
					require.ErrorContains(t, err, c.fails)
					require.Contains(t, driver.HintOf(err), c.hint)
				}
				require.NoError(t, d.Close(t.Context()))
			})
		})
	}
}
