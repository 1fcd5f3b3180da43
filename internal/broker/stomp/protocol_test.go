package stomp

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/leaktest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/transport"
)

func TestConnect(t *testing.T) {
	t.Parallel()
	s := serve(t, store.Config{}, Server{})
	c := dial(t, s.addr)
	c.raw("STOMP\r\naccept-version:1.0,1.2,9.9\r\nhost:x\r\nheart-beat:0,0\r\n\r\n\x00\r\n")
	a := c.get()
	assert.Equal(t, "CONNECTED", a.command)
	assert.Equal(t, "perfmq embedded broker/"+transport.Version, a.headers["server"])
	assert.Equal(t, "1.2", a.headers["version"])
	assert.Equal(t, "0,0", a.headers["heart-beat"])

	// The agreed heart-beats: the first number is the time between ours, the second between the client's.
	for asked, want := range map[string]string{"60000,30000": "30000,60000", "1,0": "0,100", "0,1": "100,0"} {
		c = dial(t, s.addr)
		c.raw("CONNECT\naccept-version:1.2\nheart-beat:" + asked + "\n\n\x00")
		assert.Equal(t, want, c.get().headers["heart-beat"], "%s was asked for", asked)
	}

	c = dial(t, s.addr)
	c.raw("CONNECT\naccept-version:1.1,2.0\n\n\x00")
	a = c.refused("Supported protocol versions are")
	assert.Equal(t, "1.2", a.headers["version"])
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	s := serve(t, store.Config{}, Server{Authenticate: func(user, password string) bool { return user+"/"+password == `u\c/p:w` }})
	connected(t, s.addr, `login:u\c`, "passcode:p:w") // there are no escapes in CONNECT
	c := dial(t, s.addr)
	c.put("CONNECT", "", "accept-version:1.2", "login:u", "passcode:x")
	c.refused("authentication failed")
	c = dial(t, s.addr)
	c.put("CONNECT", "", "accept-version:1.2")
	c.refused("authentication failed")
}

// TestRefused sends frames that must end the connection with ERROR, and only that one.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, store.Config{}, Server{MaxMessage: 100})
	bystander := connected(t, s.addr)
	for text, words := range map[string]string{
		"SEND\n\nx\x00":                                                                              "no header destination",
		"SEND\ndestination:\n\nx\x00":                                                                "no header destination",
		"SEND\ndestination:/queue/x\npriority:10\n\n\x00":                                            `priority:"10"`,
		"SEND\ndestination:/queue/x\nexpires:x\n\n\x00":                                              `expires:"x"`,
		"SEND\ndestination:/queue/x\nAMQ_SCHEDULED_DELAY:-1\n\n\x00":                                 `AMQ_SCHEDULED_DELAY:"-1"`,
		"SEND\ndestination:/queue/x\ntransaction:t\n\n\x00":                                          "no such transaction",
		"SEND\ndestination:/queue/x\na:\\t\n\n\x00":                                                  "has an unknown escape",
		"SEND\ndestination:/queue/x\n\n" + strings.Repeat("x", 101) + "\x00":                         "larger than the limit of 100",
		"SUBSCRIBE\nid:1\n\n\x00":                                                                    "no header destination",
		"SUBSCRIBE\ndestination:/queue/x\n\n\x00":                                                    "no header id",
		"SUBSCRIBE\nid:1\ndestination:/queue/x\nack:foo\n\n\x00":                                     `ack:"foo"`,
		"SUBSCRIBE\nid:1\ndestination:/queue/x\nselector:a =\n\n\x00":                                "invalid selector",
		"SUBSCRIBE\nid:1\ndestination:/queue/x\nprefetch-count:x\n\n\x00":                            `prefetch-count:"x"`,
		"SUBSCRIBE\nid:1\ndestination:/topic/x\ndurable-subscription-name:d\n\n\x00":                 "needs the header client-id",
		"SUBSCRIBE\nid:1\ndestination:/queue/x\n\n\x00SUBSCRIBE\nid:1\ndestination:/queue/x\n\n\x00": "a subscription with that id already",
		"UNSUBSCRIBE\nid:1\n\n\x00":                                                                  "no such subscription",
		"UNSUBSCRIBE\nid:1\ndurable-subscription-name:d\n\n\x00":                                     "no such subscription",
		"ACK\nid:1\n\n\x00":                                                                          "was not delivered",
		"ACK\n\n\x00":                                                                                "no header id",
		"NACK\nid:1-2-3\n\n\x00":                                                                     "was not delivered",
		"BEGIN\n\n\x00":                                                                              "no header transaction",
		"BEGIN\ntransaction:t\n\n\x00BEGIN\ntransaction:t\n\n\x00":                                   "a transaction \"t\" already",
		"COMMIT\ntransaction:t\n\n\x00":                                                              "no such transaction",
		"ABORT\ntransaction:t\n\n\x00":                                                               "no such transaction",
		"CONNECT\n\n\x00":                                                                            "a second CONNECT",
		"MESSAGE\n\n\x00":                                                                            "unknown command",
		"\x00":                                                                                       "",
	} {
		c := connected(t, s.addr)
		if words == "" {
			c.raw(text + strings.Repeat("x", 32))
			c.refused("not STOMP")
			continue
		}
		head, rest, _ := strings.Cut(text, "\n\n")
		if strings.Count(text, "\x00") == 1 {
			text = head + "\nreceipt:r\\c1\n\n" + rest
		}
		c.raw(text)
		a := c.refused(words)
		if strings.Contains(text, "receipt:") && !strings.Contains(words, "limit of") && !strings.Contains(words, "unknown command") {
			assert.Equal(t, `r\c1`, a.headers["receipt-id"], words)
		}
	}
	c := dial(t, s.addr)
	c.put("SEND", "x", "destination:/queue/x")
	c.refused("the first one must be CONNECT")
	bystander.ask("SEND", "x", "destination:/queue/x")
	assert.EqualValues(t, 1, queueStats(s.store, "x").Stored)
}

// onPipe runs a connection in a bubble of synctest, where time is free.
func onPipe(t *testing.T, o Server, connect string, f func(c *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		s := o
		s.Store = store.New(store.Config{})
		go s.Serve(far) // the bubble waits for its end
		c := &client{t: t, Conn: near, r: nil}
		c.reset()
		if connect != "" {
			c.raw(connect)
			require.Equal(t, "CONNECTED", c.get().command)
		}
		f(c)
		_ = near.Close()
	})
}

func TestHeartBeats(t *testing.T) {
	t.Parallel()
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		onPipe(t, Server{}, "CONNECT\naccept-version:1.2\nheart-beat:0,3000\n\n\x00", func(c *client) {
			start := time.Now()
			_ = c.SetReadDeadline(time.Time{})
			for range 100 {
				before := time.Now()
				b := musttest.Get(c.r.ReadByte())(t)
				assert.Equal(t, byte('\n'), b)
				assert.LessOrEqual(t, time.Since(before), 3*time.Second)
			}
			assert.Greater(t, time.Since(start), 50*time.Second, "more often than asked for")
		})
	})
	t.Run("theirs", func(t *testing.T) {
		t.Parallel()
		var silent time.Duration
		onPipe(t, Server{}, "CONNECT\naccept-version:1.2\nheart-beat:1000,0\n\n\x00", func(c *client) {
			for range 20 {
				time.Sleep(900 * time.Millisecond) //nolint:forbidigo // in a bubble
				c.raw("\n")
			}
			start := time.Now()
			require.Equal(t, "EOF", c.get().command)
			silent = time.Since(start)
		})
		assert.InDelta(t, 2, silent.Seconds(), 1)
	})
	t.Run("not before CONNECTED", func(t *testing.T) { // the writer may begin when they are agreed, and CONNECTED is not written
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := &conn{beats: time.Second, wake: make(chan struct{}, 1), drained: make(chan struct{}, 1)}
			go func() {
				time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
				c.write([]byte("CONNECTED"))
			}()
			require.True(t, c.collect(time.NewTimer(time.Hour)))
			require.Equal(t, "CONNECTED", string(c.buf))
		})
	})
	t.Run("never connects", func(t *testing.T) {
		t.Parallel()
		onPipe(t, Server{}, "", func(c *client) {
			_ = c.SetReadDeadline(time.Time{})
			_, err := c.r.ReadByte()
			require.Error(t, err)
		})
	})
}

func TestServeEnds(t *testing.T) {
	before := goleak.IgnoreCurrent()
	defer func() { require.NoError(t, leaktest.Find(before)) }()
	s := Server{Store: store.New(store.Config{})}
	for name, end := range map[string]func(near, far net.Conn){
		"by the client": func(near, _ net.Conn) { _ = near.Close() },
		"by the broker": func(_, far net.Conn) { _ = far.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			defer near.Close()
			served := make(chan struct{})
			go func() {
				defer close(served)
				s.Serve(far)
			}()
			c := &client{t: t, Conn: near}
			c.reset()
			c.raw("CONNECT\naccept-version:1.2\n\n\x00")
			require.Equal(t, "CONNECTED", c.get().command)
			c.put("SUBSCRIBE", "", "id:1", "destination:/queue/x")
			end(near, far)
			select {
			case <-served:
			case <-time.After(patience):
				t.Fatal("Serve did not return")
			}
			assert.Zero(t, queueStats(s.Store, "x").Consumers)
		})
	}
}

// FuzzServe throws input at a connection; it must end, and leave the others alone.
func FuzzServe(f *testing.F) {
	for _, s := range []string{
		"SEND\ndestination:/queue/x\n\nabc\x00SUBSCRIBE\nid:1\ndestination:/queue/x\nack:client\n\n\x00ACK\nid:1-0-0\n\n\x00",
		"BEGIN\ntransaction:t\n\n\x00SEND\ndestination:x\ntransaction:t\n\n\x00COMMIT\ntransaction:t\n\n\x00DISCONNECT\nreceipt:1\n\n\x00",
		"SUBSCRIBE\nid:1\ndestination:topic://x\nselector:a = 'b'\n\n\x00UNSUBSCRIBE\nid:1\n\n\x00NACK\nid:2-0-0\n\n\x00",
		"SUBSCRIBE\nid:1\ndestination:/topic/x\nshared-subscription-name:a\nprefetch-count:0\n\n\x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		near, far := net.Pipe()
		s := Server{Store: store.New(store.Config{Limit: 100}), MaxMessage: 1 << 16}
		served := make(chan struct{})
		go func() {
			defer close(served)
			s.Serve(far)
		}()
		go func() {
			buf := make([]byte, 4096)
			for {
				if _, err := near.Read(buf); err != nil {
					return
				}
			}
		}()
		_ = near.SetWriteDeadline(time.Now().Add(patience))
		_, _ = fmt.Fprintf(near, "CONNECT\naccept-version:1.2\nclient-id:c\n\n\x00%s", in)
		_ = near.Close()
		select {
		case <-served:
		case <-time.After(patience):
			require.Fail(t, "the connection does not end")
		}
	})
}
