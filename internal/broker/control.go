package broker

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxControl bounds what a request to the control may carry.
const maxControl = 4096

// Control returns what an operator can do over HTTP, all of it plain text or JSON:
//
//	GET  /stats            all counts, as JSON
//	GET  /faults           the faults at work: lose=1000,delay=5ms
//	PUT  /faults           replaces them by those of the body; "none" ends them all
//	POST /stall?for=2s     stops the broker for a time; 0s ends a stall
//	POST /drop             breaks all connections, and ends a stall
func (b *Broker) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(b.Stats()) // the peer has left
	})
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) {
		say(w, "%s", FormatFaults(b.store.Faults()))
	})
	mux.HandleFunc("PUT /faults", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControl))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		f, err := ParseFaults(string(text))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b.store.SetFaults(f)
		say(w, "%s", FormatFaults(f))
	})
	mux.HandleFunc("POST /stall", func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxControl)
		d, err := time.ParseDuration(r.FormValue("for"))
		if err != nil || d < 0 {
			http.Error(w, "want /stall?for=TIME, such as 2s", http.StatusBadRequest)
			return
		}
		b.store.Stall(d)
		say(w, "stalled for %s", d)
	})
	mux.HandleFunc("POST /drop", func(w http.ResponseWriter, _ *http.Request) {
		say(w, "connections broken: %d", b.DropConnections())
	})
	return mux
}

func say(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, format+"\n", args...) // the peer has left
}
