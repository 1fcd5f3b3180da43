//go:build unix

package amqppeer

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// rabbit replays RabbitMQ 4.0.5 as far as it is told here: the management node, queues by their names, filters that are
// all confirmed, whether they have an effect or not, and a begin that is lost when its channel has been ended a moment
// ago.
type rabbit struct {
	*peer
	mu       sync.Mutex
	queues   map[string]string // kinds by name
	priority map[string]string // x-max-priority by name
	requests []string          // "PUT c1 quorum"
	ended    map[*conn]map[uint16]bool
	lost     int              // begins
	answers  map[*conn]uint32 // handles of links for answers
	hurried  int              // requests that came when there was no credit for the answer yet: to be refused like that
}

func newRabbit(t *testing.T) *rabbit {
	t.Helper()
	r := &rabbit{
		peer: newPeer(t), queues: map[string]string{}, priority: map[string]string{},
		ended: map[*conn]map[uint16]bool{}, answers: map[*conn]uint32{},
	}
	r.open = mapOf(symbol("product"), text("RabbitMQ"), symbol("version"), text("4.0.5"))
	r.on = r.handle
	return r
}

func (r *rabbit) handle(k *conn, f *frame) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch f.code {
	case opEnd:
		if over := r.ended[k][f.channel]; over { // of a session that is not: no answer
			return true
		}
		r.end(k, f.channel)
	case opBegin:
		if r.ended[k][f.channel] { // the process of the old session takes it and dies
			r.lost++
			return true
		}
	case opAttach:
		return r.attach(k, f)
	case opTransfer:
		if strings.Contains(string(f.payload), "$me") {
			r.request(k, f)
			return true
		}
	}
	return false
}

// end notes that a session is over.
func (r *rabbit) end(k *conn, channel uint16) {
	if r.ended[k] == nil {
		r.ended[k] = map[uint16]bool{}
	}
	r.ended[k][channel] = true
}

// address is that of a source or target.
func address(terminus []byte) string {
	if isNull(terminus) {
		return ""
	}
	fields := items(terminus[3:])
	if len(fields) == 0 || isNull(fields[0]) {
		return ""
	}
	return textOf(fields[0])
}

func (r *rabbit) attach(k *conn, f *frame) bool {
	receiver := isReceiver(f)
	at := address(f.fields[6])
	if receiver {
		at = address(f.fields[5])
	}
	if at == "/management" {
		if receiver {
			r.answers[k] = numberOf(f.fields[1])
		}
		return false
	}
	name, err := url.PathUnescape(strings.TrimPrefix(at, "/queues/"))
	if _, exists := r.queues[name]; err != nil || !exists && strings.HasPrefix(at, "/queues/") {
		r.end(k, f.channel)
		k.frame(0, f.channel, opEnd, list(errorList, symbol("amqp:not-found"), text("no queue '"+name+"' in vhost '/'")))
		return true
	}
	return false
}

// request answers a request over the management node.
func (r *rabbit) request(k *conn, f *frame) {
	if r.hurried > 0 {
		r.hurried--
		r.end(k, f.channel)
		k.frame(0, f.channel, opEnd, list(errorList, symbol("amqp:precondition-failed"),
			text("insufficient credit (0) for management link from RabbitMQ to client")))
		return
	}
	var props [][]byte
	var body []byte
	for b := f.payload; len(b) > 0; {
		n := 3 + size(b[3:])
		switch b[2] {
		case properties:
			props = items(b[3:n])
		case amqpValue:
			body = b[3:n]
		}
		b = b[n:]
	}
	name, _ := url.PathUnescape(strings.TrimPrefix(textOf(props[2]), "/queues/"))
	method := textOf(props[3])
	kind, maximum := "", ""
	if method == "PUT" {
		all := items(body)
		for i := 0; i+1 < len(all); i += 2 {
			if textOf(all[i]) != "arguments" {
				continue
			}
			arguments := items(all[i+1])
			for j := 0; j+1 < len(arguments); j += 2 {
				switch textOf(arguments[j]) {
				case "x-queue-type":
					kind = textOf(arguments[j+1])
				case "x-max-priority":
					maximum = fmt.Sprint(arguments[j+1][len(arguments[j+1])-1])
				}
			}
		}
	}
	r.requests = append(r.requests, strings.TrimSpace(strings.Join([]string{method, name, kind, maximum}, " ")))
	status, answer := r.answer(method, name, kind, maximum)
	head := list(properties, null(), null(), null(), text(status), null(), props[0])
	k.transfer(f.channel, r.answers[k], uint32(len(r.requests)), true, append(head, value(answer)...)) //nolint:gosec // small
}

func (r *rabbit) answer(method, name, kind, maximum string) (status string, body []byte) {
	known, exists := r.queues[name]
	switch {
	case method == "GET" && !exists:
		return "404", text("queue '" + name + "' in vhost '/' not found")
	case method == "PUT" && exists && known != kind:
		return "409", text("inequivalent arg 'x-queue-type' for queue '" + name + "'")
	case method == "PUT" && !exists:
		r.queues[name], r.priority[name] = kind, maximum
		known, status = kind, "201"
	default:
		status = "200"
	}
	arguments := [][]byte{text("x-queue-type"), text(known)}
	if n := r.priority[name]; n != "" {
		arguments = append(arguments, text("x-max-priority"), []byte{0x55, n[0] - '0'})
	}
	return status, mapOf(text("name"), text(name), text("type"), text(known), text("arguments"), mapOf(arguments...))
}

// openBoth opens a consumer and a producer.
func openBoth(t *testing.T, d driver.Driver, dest driver.Destination, priority int) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	k, err := d.Consumer(ctx, driver.ConsumerSpec{Connection: driver.Connection{Key: "c"}, Destination: dest, Name: "consumer-0"})
	if err != nil {
		return err
	}
	t.Cleanup(func() { closeSoon(k.Close) })
	p, err := d.Producer(ctx, driver.ProducerSpec{
		Connection: driver.Connection{Key: "p"}, Destination: dest, Name: "producer-0", MaxPending: 1,
		Variants: []driver.Variant{{Body: []byte("x"), Priority: priority}},
	}, driver.DoneFunc(func(driver.Slot, driver.Outcome) {}))
	if err != nil {
		return err
	}
	t.Cleanup(func() { closeSoon(p.Close) })
	return nil
}

func closeSoon(f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = f(ctx)
}

// TestDeclare: queues of RabbitMQ are declared where asked, and described otherwise.
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
			options: []string{"declare=classic", "max-priority=9"}, priority: 7, requests: []string{"PUT a b classic 9", "PUT a b classic 9"},
		},
		"without priorities": {
			priority: 7, queues: map[string]string{"a b": "classic"}, requests: []string{"GET a b", "GET a b"},
			fails: "the queue has no priorities", hint: "-o max-priority=9",
		},
		"stream": {
			priority: -1, queues: map[string]string{"a b": "stream"}, requests: []string{"GET a b"},
			fails: "each consumer of a stream gets all messages", hint: "use a classic or quorum queue",
		},
	} {
		run(t, "declare/"+name, func(t *testing.T) error {
			r := newRabbit(t)
			maps.Copy(r.queues, c.queues)
			r.hurried = c.hurried
			err := openBoth(t, open(t, r.start(), c.options...), queue("a b"), c.priority)
			if c.fails == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.fails)
				require.Contains(t, driver.HintOf(err), c.hint)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			require.Equal(t, c.requests, r.requests)
			return nil
		})
	}
}

// TestSelectorThatIsConfirmed: RabbitMQ 4.0 confirms a selector and sends all messages: the driver refuses it.
func TestSelectorThatIsConfirmed(t *testing.T) {
	run(t, "selector", func(t *testing.T) error {
		r := newRabbit(t)
		r.queues["q"] = "classic"
		_, err := open(t, r.start()).Consumer(t.Context(), driver.ConsumerSpec{
			Destination: queue("q"), Name: "consumer-0", Selector: "color = 'red'",
		})
		require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, "there are no selectors")
		require.Contains(t, driver.HintOf(err), "leave out --selector")
		return nil
	})
}

// TestLostBegin: producers and consumers can be opened after others were closed on the same connection.
func TestLostBegin(t *testing.T) {
	run(t, "lost begin", func(t *testing.T) error {
		r := newRabbit(t)
		r.queues["q"] = "classic"
		d := open(t, r.start())
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		spec := driver.ProducerSpec{Connection: driver.Connection{Key: "p"}, Destination: queue("q"), Name: "keeps it open", MaxPending: 1, Variants: plain("x")}
		done := driver.DoneFunc(func(driver.Slot, driver.Outcome) {})
		keeper, err := d.Producer(ctx, spec, done)
		if err != nil {
			return err
		}
		defer closeSoon(keeper.Close)
		for i := range 3 {
			spec.Name = fmt.Sprintf("producer-%d", i)
			p, err := d.Producer(ctx, spec, done)
			if err != nil {
				return fmt.Errorf("producer %d: %w", i, err)
			}
			if err := p.Close(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}
