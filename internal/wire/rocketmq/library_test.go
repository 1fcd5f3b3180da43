package rocketmq_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	lib "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// libraryEnv makes the test binary a producer of rocketmq-client-go, which leaves goroutines behind and has data races
// of its own: so it gets a process. Its codec, internal/remote, cannot be imported.
const libraryEnv = "PERFMQ_TEST_ROCKETMQ_WIRE"

func TestMain(m *testing.M) {
	if addr := os.Getenv(libraryEnv); addr != "" {
		if err := libraryProducer(addr); err != nil {
			fmt.Println(err)
		}
		return
	}
	m.Run()
}

const libraryMessages = 200

// sentText is a text that one side sends for the other to compare: as likely as not to need escapes.
func sentText(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(20) {
		b.WriteRune([]rune("ab \"\\/\n\r\t\b\x00\x1f\x7fü\u2028😀{}[]:,=&<>")[r.IntN(25)])
	}
	return b.String()
}

// sentMessage is the nth message that the library sends.
func sentMessage(n uint64) (body []byte, name, value string, flag int32) {
	r := rand.New(rand.NewPCG(n, 1)) //nolint:gosec // no secret
	body = []byte(strings.Repeat(sentText(r), 1+r.IntN(500)))
	return body, sentText(r), sentText(r), r.Int32()
}

// answered is how we answer it: the fields of a primitive.SendResult, or an error.
type answered struct {
	ID, Transaction, Region string
	Offset                  int64
	Err                     string
}

func sentAnswer(n uint64) (a answered) {
	r := rand.New(rand.NewPCG(n, 2)) //nolint:gosec // no secret
	if n%5 == 0 {
		a.Err = "CODE: 13, DESC: " + sentText(r)
		return a
	}
	return answered{ID: sentText(r), Transaction: sentText(r), Region: sentText(r), Offset: r.Int64() - 1<<62}
}

type quiet struct{}

func (quiet) Debug(string, map[string]any)   {}
func (quiet) Info(string, map[string]any)    {}
func (quiet) Warning(string, map[string]any) {}
func (quiet) Error(string, map[string]any)   {}
func (quiet) Fatal(string, map[string]any)   {}
func (quiet) Level(string)                   {}
func (quiet) OutputPath(string) error        { return nil }

// libraryProducer sends messages and prints the answers, a line of JSON each.
func libraryProducer(addr string) error {
	rlog.SetLogger(quiet{})
	p, err := lib.NewProducer(producer.WithNameServer(primitive.NamesrvAddr{addr}), producer.WithGroupName("group"), producer.WithRetry(0),
		producer.WithCredentials(primitive.Credentials{AccessKey: "key", SecretKey: "secret"}))
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for n := range uint64(libraryMessages) {
		body, name, value, flag := sentMessage(n)
		m := primitive.NewMessage("T", body)
		m.Flag = flag
		m.WithProperty(name, value)
		var a answered
		if r, err := p.SendSync(context.Background(), m); err != nil {
			a.Err = err.Error()
		} else {
			a = answered{ID: r.OffsetMsgID, Transaction: r.TransactionID, Region: r.RegionID, Offset: r.QueueOffset}
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	return nil
}

// TestGoLibrary: rocketmq-client-go and we understand each other. We read its requests, whose headers are in JSON, with
// their signatures; it reads our answers, in either codec.
func TestGoLibrary(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var conns sync.WaitGroup
	s := &server{t: t, addr: l.Addr().String()}
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { s.serve(c) })
		}
	})
	defer conns.Wait()
	defer l.Close()
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), libraryEnv+"="+s.addr, "GORACE=exitcode=0")
	cmd.Stderr = io.Discard
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	lines := json.NewDecoder(strings.NewReader(string(out)))
	for n := range uint64(libraryMessages) {
		var a answered
		require.NoError(t, lines.Decode(&a))
		require.Equal(t, sentAnswer(n), a, "answer %d", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	require.EqualValues(t, libraryMessages, s.sent)
}

// server is a name server and broker for one producer.
type server struct {
	t    *testing.T
	addr string
	mu   sync.Mutex
	sent uint64
}

func (s *server) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	signer := wire.NewSigner("key", "secret")
	var f wire.Frame
	var w wire.Writer
	for {
		var size [wire.LengthSize]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return
		}
		b := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(in, b); err != nil {
			return
		}
		if !assert.NoError(s.t, f.Parse(b)) {
			return
		}
		if f.Code != wire.ReqGetRouteInfoByTopic { // the library does not sign requests to name servers
			assert.True(s.t, signer.Verify(&f), "request %d", f.Code)
		}
		w.B = w.B[:0]
		switch f.Code {
		case wire.ReqGetRouteInfoByTopic:
			body, err := json.Marshal(wire.Route{
				Brokers: []wire.BrokerData{{Cluster: "c", Name: "b", Addresses: map[string]string{wire.MasterID: s.addr}}},
				Queues:  []wire.QueueData{{Broker: "b", Read: 1, Write: 1, Perm: wire.PermRead | wire.PermWrite}},
			})
			assert.NoError(s.t, err)
			w.Begin(f.Codec, wire.ResSuccess, wire.FlagAnswer, f.Opaque, "")
			w.End(len(body))
			w.B = append(w.B, body...)
		case wire.ReqSendMessage:
			s.send(&f, &w)
		default:
			w.Begin(f.Codec, wire.ResSuccess, wire.FlagAnswer, f.Opaque, "")
			w.End(0)
		}
		if _, err := c.Write(w.B); err != nil {
			return
		}
	}
}

// send compares a message with the sent message, and answers in the codecs by turns.
func (s *server) send(f *wire.Frame, w *wire.Writer) {
	s.mu.Lock()
	n := s.sent
	s.sent++
	s.mu.Unlock()
	body, name, value, flag := sentMessage(n)
	got := f.Body
	if f.NumberOr("sysFlag", 0)&wire.SysCompressed != 0 {
		var err error
		got, err = new(wire.Inflater).Inflate(wire.SysCompressed, f.Body, 1<<20)
		assert.NoError(s.t, err)
	}
	assert.Equal(s.t, string(body), string(got), "message %d", n)
	assert.Equal(s.t, value, string(wire.Property(f.Get("properties"), name)), "message %d", n)
	assert.EqualValues(s.t, flag, f.NumberOr("flag", 0), "message %d", n)
	assert.Equal(s.t, "T", string(f.Get("topic")))

	codec, a := wire.Codec(n%2), sentAnswer(n)
	if a.Err != "" {
		w.Begin(codec, wire.ResMessageIllegal, wire.FlagAnswer, f.Opaque, strings.TrimPrefix(a.Err, "CODE: 13, DESC: "))
		w.End(0)
		return
	}
	w.Begin(codec, wire.ResSuccess, wire.FlagAnswer, f.Opaque, "")
	w.Text("msgId", a.ID)
	w.Text("transactionId", a.Transaction)
	w.Text("MSG_REGION", a.Region)
	w.Int("queueOffset", a.Offset)
	w.End(0)
}
