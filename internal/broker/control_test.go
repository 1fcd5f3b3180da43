package broker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestControlObeysNoWebPage: requests of a page in a browser change nothing, and the page cannot read an answer.
func TestControlObeysNoWebPage(t *testing.T) {
	b := start(t, Config{})
	h := b.Control([]string{"named.example"})
	for _, c := range []struct {
		name, method, path, host string
		headers                  map[string]string
		want                     int
	}{
		{"curl", "PUT", "/faults", "localhost:8162", map[string]string{ControlHeader: "1"}, 200},
		{"by address", "POST", "/drop", "127.0.0.1:8162", map[string]string{ControlHeader: "1"}, 200},
		{"by the name that it was given", "POST", "/stall?for=1ms", "named.example:8162", map[string]string{ControlHeader: "1"}, 200},
		{"a simple request of a page", "POST", "/drop", "localhost:8162", nil, 403},
		{"a form", "POST", "/stall?for=1h", "localhost:8162", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 403},
		{"a request that was allowed by mistake", "PUT", "/faults", "localhost:8162", map[string]string{ControlHeader: "1", "Origin": "http://evil.example"}, 403},
		{"a page whose name was rebound", "PUT", "/faults", "evil.example:8162", map[string]string{ControlHeader: "1"}, 421},
		{"the same, reading", "GET", "/stats", "evil.example:8162", nil, 421},
		{"the question before another request", "OPTIONS", "/faults", "localhost:8162", map[string]string{"Origin": "http://evil.example", "Access-Control-Request-Headers": ControlHeader}, 403},
		{"who only reads", "GET", "/stats", "localhost:8162", nil, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.Store().SetFaults(store.Faults{})
			dropped, stalls := b.Store().FaultCounts().Dropped, b.Store().FaultCounts().Stalls
			r := httptest.NewRequest(c.method, "http://x"+c.path, strings.NewReader("lose=2"))
			r.Host = c.host
			for k, v := range c.headers {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			assert.Equal(t, c.want, w.Code, w.Body.String())
			assert.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
			if c.want != http.StatusOK {
				assert.Equal(t, store.Faults{}, b.Store().Faults())
				assert.Equal(t, dropped, b.Store().FaultCounts().Dropped)
				assert.Equal(t, stalls, b.Store().FaultCounts().Stalls)
				assert.NotContains(t, w.Body.String(), "destinations")
			}
		})
	}
}

// TestControlAsksForTheUser: a broker that lets in one user lets no other one command it.
func TestControlAsksForTheUser(t *testing.T) {
	b := start(t, Config{User: "app", Password: "secret"})
	h := b.Control(nil)
	for _, c := range []struct {
		user, password string
		given          bool
		want           int
	}{
		{"", "", false, 401}, {"app", "wrong", true, 401}, {"other", "secret", true, 401}, {"", "", true, 401}, {"app", "secret", true, 200},
	} {
		for _, path := range []string{"/stats", "/faults"} {
			r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
			if c.given {
				r.SetBasicAuth(c.user, c.password)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			assert.Equal(t, c.want, w.Code)
			assert.Equal(t, c.want == 401, w.Header().Get("WWW-Authenticate") != "")
			assert.NotContains(t, w.Body.String(), "secret")
		}
	}
}

// TestControlLimits: a stall has a limit, and an error does not repeat control characters of the request.
func TestControlLimits(t *testing.T) {
	b := start(t, Config{})
	h := b.Control(nil)
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/stall?for=8760h", "", "at most 24h0m0s"},
		{"PUT", "/faults", "lose=\x1b[2J", `fault lose=\x1b[2J: must be lose=N`},
		{"PUT", "/faults", strings.Repeat("x", 10<<20), "request body too large"},
	} {
		r := httptest.NewRequest(c.method, "http://localhost"+c.path, strings.NewReader(c.body))
		r.Header.Set(ControlHeader, "1")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		assert.Equal(t, http.StatusBadRequest, w.Code)
		assert.Contains(t, w.Body.String(), c.want)
		assert.Less(t, w.Body.Len(), 2000)
	}
	b.Store().Destination(driver.Destination{Name: "\x1b[2J\u202e\u009b31m"})
	r := httptest.NewRequest(http.MethodGet, "http://localhost/stats", nil)
	w := httptest.NewRecorder()
	start := time.Now()
	h.ServeHTTP(w, r)
	assert.False(t, strings.ContainsAny(w.Body.String(), "\x1b\u202e\u009b"), "names are the clients'")
	assert.Less(t, time.Since(start), time.Minute)
}

// TestStatsAreBounded: however many destinations clients make, an answer has a bound.
func TestStatsAreBounded(t *testing.T) {
	b := start(t, Config{})
	for i := range 2500 {
		b.Store().Destination(driver.Destination{Name: fmt.Sprintf("%04d&?é", i)}).Send(&store.Message{Content: storetest.Content{Data: "x"}})
	}
	h := b.Control(nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/stats", nil))
	var s Stats
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &s))
	assert.EqualValues(t, 2500, s.Total.Sent)
	assert.Len(t, s.Destinations, 1000)
	assert.Equal(t, 1500, s.More)
	assert.Positive(t, s.Memory.Used)
}

func TestParseFaults(t *testing.T) {
	for text, want := range map[string]store.Faults{
		"": {}, "none": {}, "lose=1000": {LoseEvery: 1000}, "full": {Full: true}, "full=false": {},
		" lose=1, damage=2,duplicate=3,reorder=4,withhold=5,drop=6,delay=5ms,rate=7,work=8us,full=true,refuse\n": {
			LoseEvery: 1, DamageEvery: 2, DuplicateEvery: 3, ReorderEvery: 4, WithholdEvery: 5, DropEvery: 6,
			Delay: 5 * time.Millisecond, Rate: 7, Work: 8 * time.Microsecond, Full: true, Refuse: true,
		},
	} {
		got, err := ParseFaults(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
		again := musttest.Get(ParseFaults(FormatFaults(got)))(t)
		assert.Equal(t, got, again)
	}
	_, err := ParseFaults("lose,delay=-1s,delay=2000000h,full=maybe,burn=1,damage=2,work=2s")
	require.EqualError(t, err, `fault lose: must be lose=N, such as 1000 or 10k
fault delay=-1s: must be delay=TIME, such as 5ms, and at most 24h0m0s
fault delay=2000000h: must be delay=TIME, such as 5ms, and at most 24h0m0s
fault full=maybe: must be full, or full=false
unknown fault "burn=1": known are lose, damage, duplicate, reorder, withhold, drop, delay, rate, work, full, refuse
fault work=2s: must be work=TIME, such as 5ms, and at most 1s`)
}

// sends sends n messages over a connection of its own and does not wait for answers. wait waits for the answers, and
// returns their number at the end of the connection.
type sends func(t *testing.T, b *Broker, n int) (wait func() int)

func overProtocols() map[string]sends {
	return map[string]sends{AMQP: sendAMQP, STOMP: sendSTOMP, RocketMQ: sendRocketMQ}
}

func sendAMQP(t *testing.T, b *Broker, n int) func() int {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	conn := musttest.Get(amqp.Dial(ctx, "amqp://"+b.Addr(AMQP), nil))(t)
	session := musttest.Get(conn.NewSession(ctx, nil))(t)
	sender := musttest.Get(session.NewSender(ctx, "Q", nil))(t)
	ended := make(chan bool, n)
	go func() {
		defer close(ended)
		var receipts []amqp.SendReceipt
		for range n {
			r, err := sender.SendWithReceipt(ctx, amqp.NewMessage([]byte("x")), nil)
			if err != nil {
				break
			}
			receipts = append(receipts, r)
		}
		for _, r := range receipts {
			_, err := r.Wait(ctx)
			ended <- err == nil
		}
	}()
	return func() (answered int) {
		for ok := range ended {
			if ok {
				answered++
			}
		}
		_ = conn.Close()
		cancel()
		return answered
	}
}

func sendSTOMP(t *testing.T, b *Broker, n int) func() int {
	p := dialSTOMP(t, b)
	for i := range n {
		p.say("SEND\ndestination:/queue/Q\nreceipt:" + strconv.Itoa(i) + "\n\nx")
	}
	return func() (answered int) {
		for ; answered < n; answered++ {
			if _, err := p.r.ReadString(0); err != nil {
				break
			}
		}
		return answered
	}
}

func sendRocketMQ(t *testing.T, b *Broker, n int) func() int {
	conn := dialRaw(t, b, RocketMQ)
	for i := range n {
		musttest.Get(conn.Write(sendRemoting(t, i, "T", "x")))(t)
	}
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	return func() (answered int) {
		var size [4]byte
		for ; answered < n; answered++ {
			if _, err := io.ReadFull(conn, size[:]); err != nil {
				break
			}
			if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
				break
			}
		}
		return answered
	}
}

// TestDelayedIsCounted: each message that was stored to be delivered later, over each protocol.
func TestDelayedIsCounted(t *testing.T) {
	const n = 20
	for protocol, send := range overProtocols() {
		for _, c := range []struct {
			faults store.Faults
			want   store.FaultCounts
		}{
			{store.Faults{Delay: 20 * time.Millisecond}, store.FaultCounts{Delayed: n}},
			{store.Faults{Delay: 20 * time.Millisecond, LoseEvery: 5}, store.FaultCounts{Delayed: n - 4, Lost: 4}},
			{store.Faults{Delay: 20 * time.Millisecond, DuplicateEvery: 5}, store.FaultCounts{Delayed: n, Duplicated: 4}},
			{store.Faults{LoseEvery: 5}, store.FaultCounts{Lost: 4}},
		} {
			t.Run(protocol+" "+FormatFaults(c.faults), func(t *testing.T) {
				b := start(t, Config{Faults: c.faults})
				require.Equal(t, n, send(t, b, n)())
				assert.Equal(t, c.want, b.Stats().Done)
			})
		}
	}
}
