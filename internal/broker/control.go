package broker

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/internal/safetext"
)

const (
	// ControlHeader is the header that a request must carry to change something, with any value. A form or a script on a
	// web page cannot send it to another origin without asking that first (CORS), and it is never told yes.
	ControlHeader = "Perfmq-Control"
	// maxControl bounds the body of a request to the control.
	maxControl = 4096
)

// Control returns the HTTP handler for operators; it answers with plain text or JSON:
//
//	GET  /stats            the counts, as JSON, see [Stats]: of 1000 destinations, and the path to the next ones
//	GET  /faults           the faults at work: lose=1000,delay=5ms
//	PUT  /faults           replaces them by those of the body; "none" ends them all
//	POST /stall?for=2s     stops the broker for a time; 0s ends a stall
//	POST /drop             breaks all connections, and ends a stall
//
// What changes something needs [ControlHeader]. If the broker has a user, all needs that user and password (HTTP
// Basic). Requests must name this machine: by an address, localhost, or one of the names, see [listen.Local].
func (b *Broker) Control(names []string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stats", b.serveStats)
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) {
		say(w, "%s", FormatFaults(b.store.Faults()))
	})
	mux.HandleFunc("PUT /faults", changes(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControl))
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		f, err := ParseFaults(string(text))
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
			refuse(w, http.StatusBadRequest, "must be /stall?for=TIME, such as 2s, and at most "+longestDelay.String())
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

// changes lets only those requests through that carry [ControlHeader].
func changes(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(ControlHeader) == "" {
			refuse(w, http.StatusForbidden,
				"requests that change the broker need a header that no web page can send: curl -H '"+ControlHeader+": 1' ...")
			return
		}
		h(w, r)
	}
}

// authenticated asks for the broker's user and password, if it has some.
func (b *Broker) authenticated(h http.Handler) http.Handler {
	if b.login == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); !b.login(user, password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="perfmq broker", charset="UTF-8"`)
			refuse(w, http.StatusUnauthorized, "give the broker's user and password: curl -u USER ...")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// How many destinations an answer has, unless the request says otherwise, and at most.
const (
	pageSize    = 1000
	maxPageSize = 10_000
)

func (b *Broker) serveStats(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	limit := pageSize
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxPageSize {
			refuse(w, http.StatusBadRequest, "must be /stats?limit=N, N being 0 to "+strconv.Itoa(maxPageSize))
			return
		}
		limit = n
	}
	s := b.StatsPage(query.Get("after"), limit)
	if n := len(s.Destinations); n > 0 && s.More > 0 {
		s.Next = "/stats?" + url.Values{"limit": {strconv.Itoa(limit)}, "after": {s.Destinations[n-1].Address}}.Encode()
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(safetext.JSON(text), '\n')) // the peer has left
}

func say(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, format+"\n", args...) // the peer has left
}

func refuse(w http.ResponseWriter, status int, text string) {
	http.Error(w, safetext.Line(text), status)
}
