package broker

import (
	"fmt"
	"io"
	"net/http"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// ControlHeader is required, with any value, of requests that change something. A web page cannot send it to
	// another origin without a CORS preflight, which is never allowed.
	ControlHeader = "Perfmq-Control"
	// maxControl bounds the body of a request.
	maxControl = 4096
)

// Control returns the HTTP handler for operators; it answers with plain text or JSON:
//
//	GET  /stats            the counts as JSON, see [Stats], of 1000 destinations at most
//	GET  /faults           the current faults: lose=1000,delay=5ms
//	PUT  /faults           replaces the faults by the body's; "none" ends all faults
//	POST /stall?for=2s     pauses the broker for a time; 0s ends a stall
//	POST /drop             breaks all connections, and ends a stall
//
// PUT and POST need [ControlHeader]. A broker with a user requires user and password (HTTP Basic). The Host of requests
// must be an address of this machine, localhost, or one of names, see [listen.Local].
func (b *Broker) Control(names []string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stats", b.serveStats)
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) {
		say(w, "%s", FormatFaults(b.store.Faults()))
	})
	mux.HandleFunc("PUT /faults", changes(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControl))
		var f store.Faults
		if err == nil {
			f, err = ParseFaults(string(text))
		}
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		b.store.SetFaults(f)
		say(w, "%s", FormatFaults(f))
	}))
	mux.HandleFunc("POST /stall", changes(func(w http.ResponseWriter, r *http.Request) {
		d, err := quantity.Duration(r.URL.Query().Get("for"), 0)
		if err != nil || d > longestDelay {
			refuse(w, http.StatusBadRequest, "must be /stall?for=TIME, at most "+longestDelay.String())
			return
		}
		b.store.Stall(d)
		say(w, "stalled for %s", d)
	}))
	mux.HandleFunc("POST /drop", changes(func(w http.ResponseWriter, _ *http.Request) {
		say(w, "connections broken: %d", b.DropConnections())
	}))
	return listen.Local(names, b.authenticated(mux))
}

// changes requires [ControlHeader].
func changes(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(ControlHeader) == "" {
			refuse(w, http.StatusForbidden,
				"changes need this header: curl -H '"+ControlHeader+": 1' ...")
			return
		}
		h(w, r)
	}
}

// authenticated requires the broker's user and password, if there are any.
func (b *Broker) authenticated(h http.Handler) http.Handler {
	if b.login == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); !b.login(user, password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="perfmq broker", charset="UTF-8"`)
			refuse(w, http.StatusUnauthorized, "log in: curl -u USER ...")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// pageSize is the largest number of destinations in an answer.
const pageSize = 1000

func (b *Broker) serveStats(w http.ResponseWriter, _ *http.Request) {
	text, _ := result.Encode(b.StatsOf(pageSize), "  ") // Stats have only texts and numbers
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the peer has left
}

func say(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, format+"\n", args...) // the peer has left
}

func refuse(w http.ResponseWriter, status int, text string) {
	http.Error(w, safetext.Line(text), status)
}
