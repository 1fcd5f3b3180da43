package broker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
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
