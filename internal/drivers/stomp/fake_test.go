package stomp

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// patience bounds each wait of these tests.
const patience = time.Minute

// fakeBroker plays a broker by hand: the test reads the driver's frames and writes the answers.
type fakeBroker struct {
	t      *testing.T
	l      net.Listener
	conn   net.Conn
	frames *frame.Reader
}

func newFakeBroker(t *testing.T) *fakeBroker {
	t.Helper()
	l := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	b := &fakeBroker{t: t, l: l}
	t.Cleanup(func() {
		_ = l.Close()
		if b.conn != nil {
			_ = b.conn.Close()
		}
	})
	return b
}

// accept takes a connection and answers its first frame, which it returns.
func (b *fakeBroker) accept(answer string) (connect string) {
	b.t.Helper()
	var err error
	b.conn, err = b.l.Accept()
	require.NoError(b.t, err)
	require.NoError(b.t, b.conn.SetDeadline(time.Now().Add(patience)))
	buf := make([]byte, 4096)
	n := musttest.Get(b.conn.Read(buf))(b.t)
	b.frames = frame.NewReader(b.conn)
	b.write(answer)
	return string(buf[:n])
}

func (b *fakeBroker) write(text string) {
	b.t.Helper()
	musttest.Get(io.WriteString(b.conn, text))(b.t)
}

// next returns the next frame that is not a heart-beat.
func (b *fakeBroker) next(command string) *frame.Frame {
	b.t.Helper()
	for {
		f, err := b.frames.Read()
		require.NoError(b.t, err, "read a frame of type %s", command)
		if f != nil {
			require.Equal(b.t, command, f.Command)
			return f
		}
	}
}

func (b *fakeBroker) receipt(id string) { b.write("RECEIPT\nreceipt-id:" + id + "\n\n\x00") }

const connectedClassic = "CONNECTED\nversion:1.2\nserver:ActiveMQ/5.18.3\nheart-beat:0,0\n\n\x00"

const connected12 = "CONNECTED\nversion:1.2\nserver:ActiveMQ-Artemis/2.56.0\nheart-beat:0,0\n\n\x00"

// open opens a driver on the fake.
func (b *fakeBroker) open(options ...string) driver.Driver {
	b.t.Helper()
	o := Factory().NewOptions()
	require.NoError(b.t, driver.SetOptions(o, options))
	d, err := Factory().Open(b.t.Context(), driver.OpenOptions{
		URL: "stomp://" + b.l.Addr().String(), User: "user", Password: "a:b\\c", ConnectTimeout: patience, Options: o,
	})
	require.NoError(b.t, err)
	b.t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(b.t, d.Close(ctx))
	})
	return d
}

// producer opens a producer on the fake, which greets with answer.
func (b *fakeBroker) producer(
	d driver.Driver, answer string, spec driver.ProducerSpec, done driver.Completions,
) (p driver.Producer, connect string) {
	b.t.Helper()
	opened := make(chan error, 1)
	go func() {
		var err error
		p, err = d.Producer(b.t.Context(), spec, done)
		opened <- err
	}()
	connect = b.accept(answer)
	require.NoError(b.t, <-opened)
	b.t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(b.t, p.Close(ctx))
	})
	return p, connect
}

// consumer opens a consumer on the fake, which greets with answer; empty: over the connection that is open. It returns
// the SUBSCRIBE, too.
func (b *fakeBroker) consumer(
	d driver.Driver, answer string, spec driver.ConsumerSpec,
) (k driver.Consumer, subscribe *frame.Frame) {
	b.t.Helper()
	if spec.Destination.Name == "" {
		spec.Destination.Name = "q"
	}
	opened := make(chan error, 1)
	go func() {
		var err error
		k, err = d.Consumer(b.t.Context(), spec)
		opened <- err
	}()
	if answer != "" {
		b.accept(answer)
	}
	subscribe = b.next(frame.SUBSCRIBE)
	b.receipt(subscribe.Header.Get(frame.Receipt))
	require.NoError(b.t, <-opened)
	b.t.Cleanup(func() {
		closed, cancel := context.WithCancel(context.Background())
		cancel()
		_ = k.Close(closed) // the fake does not answer
	})
	return k, subscribe
}

func plainSpec() driver.ProducerSpec {
	return driver.ProducerSpec{Destination: driver.Destination{Name: "q"}, MaxPending: 10, Variants: bodies()}
}

// bodies are kinds of messages with bodies of two bytes. The second byte is their number.
func bodies() (list []driver.Variant) {
	for i := range byte(10) {
		list = append(list, driver.Variant{Body: []byte{0, i}, Priority: -1})
	}
	return list
}

// slot is the slot of the first message in that place.
func slot(index int) driver.Slot { return driver.NewSlot(uint32(index), 1) }

func send(t *testing.T, p driver.Producer, n int) {
	t.Helper()
	for i := range n {
		require.NoError(t, p.Send(t.Context(), &driver.Message{Slot: slot(i), Time: 5, Variant: i % 10}))
	}
}

func TestErrorNamesOneMessage(t *testing.T) {
	b, o := newFakeBroker(t), newOutcomes()
	p, connect := b.producer(b.open(), connected12, plainSpec(), o)
	require.Contains(t, connect, "\npasscode:a:b\\c\n")
	require.Contains(t, connect, "\naccept-version:1.2\n")
	send(t, p, 3)
	var ids []string
	for i := range 3 {
		f := b.next(frame.SEND)
		require.Equal(t, []byte{0, byte(i)}, f.Body)
		require.Equal(t, "5", f.Header.Get("time"))
		require.Equal(t, "ANYCAST", f.Header.Get("destination-type"))
		ids = append(ids, f.Header.Get(frame.Receipt))
	}
	b.receipt(ids[2])
	b.receipt(ids[2]) // once more: is of no send any more
	b.write("ERROR\nreceipt-id:" + ids[0] + "\nmessage:AMQ229102\\c Address \"q\" is full.\n\n\x00")
	b.receipt(ids[1])
	got := o.wait(t, 3)
	require.Equal(t, driver.Accepted, got[slot(1)].State)
	require.Equal(t, driver.Accepted, got[slot(2)].State)
	require.Equal(t, driver.Rejected, got[slot(0)].State)
	require.Equal(t, driver.ClassFull, got[slot(0)].Class)
	require.ErrorContains(t, got[slot(0)].Err, `send to queue://q: Artemis says: AMQ229102: Address "q" is full.`)
	require.NotEmpty(t, driver.HintOf(got[slot(0)].Err))
}

func TestErrorEndsConnection(t *testing.T) {
	for name, named := range map[string]bool{"names a message": true, "names none": false} {
		t.Run(name, func(t *testing.T) {
			b, o := newFakeBroker(t), newOutcomes()
			p, _ := b.producer(b.open(), connected12, plainSpec(), o)
			send(t, p, 3)
			id := b.next(frame.SEND).Header.Get(frame.Receipt)
			text := "ERROR\nmessage:boom\n\njava.lang.Exception: all broken\n\tat a.B.c(D.java:1)\x00"
			if named {
				text = strings.Replace(text, "\n", "\nreceipt-id:"+id+"\n", 1)
			}
			b.write(text)
			require.NoError(t, b.conn.(*net.TCPConn).CloseWrite())
			for s, out := range o.wait(t, 3) {
				want := driver.Unknown
				if named && s == slot(0) {
					want = driver.Failed
				}
				require.Equal(t, want, out.State)
				require.ErrorContains(t, out.Err, "Artemis says: boom: java.lang.Exception: all broken")
				require.NotContains(t, out.Err.Error(), "D.java")
			}
			err := p.Send(t.Context(), &driver.Message{Slot: slot(5)})
			require.ErrorContains(t, err, "boom")
		})
	}
}

func TestTransactions(t *testing.T) {
	b, o := newFakeBroker(t), newOutcomes()
	spec := plainSpec()
	spec.CommitInterval = 2
	p, _ := b.producer(b.open(), connected12, spec, o)
	send(t, p, 5)
	var commits []string
	for range 2 {
		tx := b.next(frame.BEGIN).Header.Get(frame.Transaction)
		for range 2 {
			f := b.next(frame.SEND)
			require.Equal(t, tx, f.Header.Get(frame.Transaction))
			require.Empty(t, f.Header.Get(frame.Receipt))
		}
		f := b.next(frame.COMMIT)
		require.Equal(t, tx, f.Header.Get(frame.Transaction))
		commits = append(commits, f.Header.Get(frame.Receipt))
	}
	b.receipt(commits[0])
	o.wait(t, 2)
	b.next(frame.BEGIN) // a transaction that is not full may wait, but only until the reader has nothing to do
	b.next(frame.SEND)
	require.NoError(t, b.conn.Close())
	got := o.wait(t, 5)
	require.Equal(t, driver.Accepted, got[slot(0)].State)
	require.Equal(t, driver.Accepted, got[slot(1)].State)
	require.Equal(t, driver.Unknown, got[slot(2)].State, "commit sent, no answer")
	require.Equal(t, driver.Unknown, got[slot(4)].State, "never committed: to be sent again")
	require.Equal(t, driver.ClassConnectionLost, got[slot(4)].Class)
}

// TestCommitIsWritten: a COMMIT that was gathered with later frames is written with the last of them, although that one
// begins a transaction: the producer may have to wait for the answer before it can send more.
func TestCommitIsWritten(t *testing.T) {
	b, o := newFakeBroker(t), newOutcomes()
	spec := plainSpec()
	spec.CommitInterval = 2
	p, _ := b.producer(b.open(), connected12, spec, o)
	for i := range 5 {
		require.NoError(t, p.Send(t.Context(), &driver.Message{Slot: slot(i), More: i < 4}))
	}
	for range 2 {
		b.next(frame.BEGIN)
		b.next(frame.SEND)
		b.next(frame.SEND)
		b.receipt(b.next(frame.COMMIT).Header.Get(frame.Receipt))
	}
	for _, out := range o.wait(t, 4) {
		require.Equal(t, driver.Accepted, out.State)
	}
}

func TestTransactionFlushAndFailedCommit(t *testing.T) {
	b, o := newFakeBroker(t), newOutcomes()
	spec := plainSpec()
	spec.CommitInterval = 10
	p, _ := b.producer(b.open(), connected12, spec, o)
	send(t, p, 3)
	require.NoError(t, p.(driver.Flusher).Flush(t.Context()))
	b.next(frame.BEGIN)
	for range 3 {
		b.next(frame.SEND)
	}
	b.write("ERROR\nreceipt-id:" + b.next(frame.COMMIT).Header.Get(frame.Receipt) + "\nmessage:cannot commit\n\n\x00")
	for _, out := range o.wait(t, 3) {
		require.Equal(t, driver.Failed, out.State)
	}
}

// TestHeartBeats: each side beats as often as it can and the other one wants.
func TestHeartBeats(t *testing.T) {
	b := newFakeBroker(t)
	p, connect := b.producer(b.open("heart-beat=400ms"), "CONNECTED\nversion:1.2\nheart-beat:5000,600\n\n\x00", plainSpec(), newOutcomes())
	require.Contains(t, connect, "\nheart-beat:400,400\n")
	c := p.(*producer).conn
	require.Equal(t, []time.Duration{600 * time.Millisecond, 5 * time.Second}, []time.Duration{c.sendEvery, c.hearEvery})
}

// TestEscapes: headers are escaped on the way out, and an ACK repeats the broker's own.
func TestEscapes(t *testing.T) {
	b, o := newFakeBroker(t), newOutcomes()
	d := b.open()
	spec := plainSpec()
	spec.Variants[0].Properties = []driver.Property{{Key: "k:v", Value: "x\ny\r"}}
	p, _ := b.producer(d, connected12, spec, o)
	send(t, p, 1)
	raw := make([]byte, 4096)
	n, err := b.conn.Read(raw)
	require.NoError(t, err)
	require.Contains(t, string(raw[:n]), "\nk\\cv:x\\ny\\r\n")

	k, _ := b.consumer(d, "", driver.ConsumerSpec{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx, func(*driver.Delivery) driver.Verdict { cancel(); return driver.Accept }) }()
	b.write("MESSAGE\nsubscription:0\nmessage-id:m\\c1\nack:a\\c1\ntime:5\n\nbody\x00")
	require.NoError(t, <-ended)
	n, err = b.conn.Read(raw)
	require.NoError(t, err)
	require.Equal(t, "ACK\nid:a\\c1\n\n\x00", string(raw[:n]))
}

func TestGreetings(t *testing.T) {
	for answer, want := range map[string]struct {
		class driver.Class
		text  string
	}{
		"HTTP/1.1 400 Bad Request\r\n\r\n": {driver.ClassProtocol, `it answered "HTTP`},
		"AMQP\x00\x01\x00\x00":             {driver.ClassProtocol, `it answered "AMQP`},
		"\x15\x03\x01\x00\x02":             {driver.ClassProtocol, "no STOMP broker"},
		"ERROR\nmessage:Bad CONNECT\n\nAccess refused for user 'user'\n\x00":      {driver.ClassAuth, "Access refused"},
		"ERROR\nversion:1.1\nmessage:Supported protocol versions are 3.0\n\n\x00": {driver.ClassUnsupported, "3.0"},

		"CONNECTED\n\n\x00":                              {driver.ClassProtocol, "chose version"},
		"CONNECTED\nversion:9.9\n\n\x00":                 {driver.ClassProtocol, "9.9"},
		"CONNECTED\nversion:1.2\nheart-beat:a,b\n\n\x00": {driver.ClassProtocol, "heart-beat"},
		"RECEIPT\nreceipt-id:1\n\n\x00":                  {driver.ClassProtocol, "no STOMP broker"},

		"ERROR\nmessage:Virtual host '/' does not exist, or something else\n\n\x00\n": {driver.ClassNotFound, "Virtual host"},
	} {
		b := newFakeBroker(t)
		d := b.open()
		opened := make(chan error, 1)
		go func() {
			_, err := d.Producer(t.Context(), plainSpec(), newOutcomes())
			opened <- err
		}()
		b.accept(answer)
		err := <-opened
		require.ErrorContains(t, err, want.text, "%q", answer)
		require.Equal(t, want.class, driver.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, "connect to 127.0.0.1:")
	}
}
