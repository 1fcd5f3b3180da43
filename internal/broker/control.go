package broker

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

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

// fault is a fault in text form, name=value. Its field is a count, a time or a flag.
type fault struct {
	name, help string
	field      any // a pointer
}

// faults returns all faults, with pointers into set.
func faults(set *store.Faults) []fault {
	return []fault{
		{"lose", "lose every N-th message", &set.LoseEvery},
		{"damage", "flip a bit in the body of every N-th message", &set.DamageEvery},
		{"duplicate", "store every N-th message twice", &set.DuplicateEvery},
		{"reorder", "store every N-th message after the next one of its producer", &set.ReorderEvery},
		{"withhold", "never confirm every N-th message, but store it", &set.WithholdEvery},
		{"drop", "break all connections at every N-th message", &set.DropEvery},
		{"delay", "deliver each message this long after its send", &set.Delay},
		{"rate", "serve at most N messages a second", &set.Rate},
		{"work", "confirm each message after this time, one by one on each connection", &set.Work},
		{"full", "behave as if every queue were full", &set.Full},
		{"refuse", "close new connections at once", &set.Refuse},
	}
}

// FaultHelp returns the syntax of each fault, with a line of help.
func FaultHelp() (list [][2]string) {
	for _, f := range faults(&store.Faults{}) {
		value := "=N"
		switch f.field.(type) {
		case *time.Duration:
			value = "=TIME"
		case *bool:
			value = ""
		}
		list = append(list, [2]string{f.name + value, f.help})
	}
	return list
}

// longestDelay bounds the times of faults; the times of messages would overflow.
const longestDelay = 24 * time.Hour

// longestWork bounds the wait for the end of a connection that is busy with a message.
const longestWork = time.Second

// ParseFaults parses faults such as "lose=1000,delay=5ms,full"; "none" and an empty text mean no faults. It reports all
// mistakes, joined.
func ParseFaults(text string) (store.Faults, error) {
	var set store.Faults
	if text = strings.TrimSpace(text); text == "" || text == "none" {
		return set, nil
	}
	var errs []error
	for item := range strings.SplitSeq(text, ",") {
		errs = append(errs, setFault(&set, strings.TrimSpace(item)))
	}
	return set, errors.Join(errs...)
}

func setFault(set *store.Faults, item string) error {
	name, value, given := strings.Cut(item, "=")
	var names []string
	for _, f := range faults(set) {
		names = append(names, f.name)
		if f.name != name {
			continue
		}
		switch field := f.field.(type) {
		case *uint64:
			n, err := quantity.Whole(value, 0, math.MaxInt64)
			if err != nil {
				return fmt.Errorf("fault %s: must be %s=N, such as 1000 or 10k", item, name)
			}
			*field = uint64(n) //nolint:gosec // it is not negative
		case *time.Duration:
			d, err := quantity.Duration(value, 0)
			most := longestDelay
			if name == "work" {
				most = longestWork
			}
			if err != nil || d > most {
				return fmt.Errorf("fault %s: must be %s=TIME, such as 5ms, and at most %s", item, name, most)
			}
			*field = d
		case *bool:
			on, err := strconv.ParseBool(value)
			if given && err != nil {
				return fmt.Errorf("fault %s: must be %s, or %s=false", item, name, name)
			}
			*field = on || !given
		}
		return nil
	}
	return fmt.Errorf("unknown fault %q: known are %s", item, strings.Join(names, ", "))
}

// FormatFaults formats faults in the syntax of [ParseFaults].
func FormatFaults(set store.Faults) string {
	var items []string
	for _, f := range faults(&set) {
		switch value := reflect.ValueOf(f.field).Elem(); {
		case value.IsZero():
		case value.Kind() == reflect.Bool:
			items = append(items, f.name)
		default:
			items = append(items, fmt.Sprint(f.name, "=", value.Interface()))
		}
	}
	if len(items) == 0 {
		return "none"
	}
	return strings.Join(items, ",")
}
