package page

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/listen"
)

// Times of a server. A request for a newer version is answered after pollTime at the latest, well within the limit that
// listen sets for a request; the browser then asks again. Close waits up to leaveTime for browsers that have not seen
// the end of the run, if they were answered within seenTime.
const (
	pollTime  = 5 * time.Second
	seenTime  = 5 * time.Second
	leaveTime = 5 * time.Second
)

// Server serves a changing page at /, and its words and numbers at /data. It is read-only. The page is rendered on
// request, once for each version; Publish does not wait for rendering.
type Server struct {
	http *listen.HTTP

	mu       sync.Mutex
	version  uint64
	changed  chan struct{} // closed at the next version
	final    bool
	closing  bool
	build    func() (*Page, error)
	asking   int // requests of browsers that follow
	waiting  int // browsers that will ask again
	answered time.Time

	rendering sync.Mutex // guards rendered; locked before mu
	rendered  rendered
}

// rendered is a version of the page with its answers so far.
type rendered struct {
	version uint64
	final   bool
	page    *Page
	err     error
	html    []byte // the answer of /
	data    []byte // the answer of /data
}

// NewServer returns a server that listens on address, HOST:PORT or :PORT (on loopback); setting names the flag in
// errors.
func NewServer(address, setting string) (*Server, error) {
	l, err := listen.TCP(context.Background(), "the page", setting, address)
	if err != nil {
		return nil, err
	}
	s := &Server{changed: make(chan struct{})}
	s.http = listen.Serve(l, s.handler(address, l.Addr()))
	return s, nil
}

// Address returns the address of the listener, with the real port if port 0 was requested.
func (s *Server) Address() net.Addr { return s.http.Addr() }

// Publish announces a new version. build makes its page on request; any goroutine may call it, one at a time. final
// marks the last version.
func (s *Server) Publish(build func() (*Page, error), final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.build, s.final = build, final
	close(s.changed)
	s.changed = make(chan struct{})
}

// Close stops serving. Browsers that follow the page have five seconds to fetch the last version.
func (s *Server) Close() error {
	deadline := time.NewTimer(leaveTime)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for s.expected() {
		select {
		case <-tick.C:
			continue
		case <-deadline.C:
		}
		break
	}
	s.mu.Lock()
	s.closing = true
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	return s.http.Close()
}

// expected reports whether a browser may still fetch the last version: a request is open, perhaps for an earlier
// version, or a browser was answered shortly before.
func (s *Server) expected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.final && (s.asking > 0 || s.waiting > 0 && time.Since(s.answered) < seenTime)
}

// handler serves reads only. On loopback it refuses requests with a foreign host name, because these come from web
// pages (DNS rebinding).
func (s *Server) handler(address string, at net.Addr) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.servePage)
	mux.HandleFunc("GET /data", s.serveData)
	secured := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
	if listen.IsLoopback(at.String()) {
		return listen.Local(listen.HostNames(address), secured)
	}
	return secured
}

func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	if !s.await(r.Context(), 0) {
		http.Error(w, "there is nothing to show yet", http.StatusServiceUnavailable)
		return
	}
	text, err := s.html()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text)
}

// serveData answers with the first version newer than after, or with the present one when pollTime is over.
func (s *Server) serveData(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseUint(r.FormValue("after"), 10, 64)
	if err != nil {
		http.Error(w, "after must be the number of a version", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.waiting = max(0, s.waiting-1)
	s.asking++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.asking--
		s.mu.Unlock()
	}()
	if !s.await(r.Context(), after) && r.Context().Err() != nil {
		return
	}
	answer, final := s.data()
	s.mu.Lock()
	s.answered = time.Now()
	if !final {
		s.waiting++
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

// await waits for a version newer than after. It returns false if none was published in time.
func (s *Server) await(ctx context.Context, after uint64) bool {
	timer := time.NewTimer(pollTime)
	defer timer.Stop()
	for {
		s.mu.Lock()
		known, changed, over := s.version > after, s.changed, s.closing || s.final
		s.mu.Unlock()
		if known || over {
			return known
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// current returns the last version. The caller holds rendering, so that build runs once at a time.
func (s *Server) current() *rendered {
	s.mu.Lock()
	version, final, build := s.version, s.final, s.build
	s.mu.Unlock()
	if s.rendered.version != version {
		s.rendered = rendered{version: version, final: final}
		s.rendered.page, s.rendered.err = build()
	}
	return &s.rendered
}

// html returns the page of the last version.
func (s *Server) html() ([]byte, error) {
	s.rendering.Lock()
	defer s.rendering.Unlock()
	r := s.current()
	if r.html != nil || r.err != nil {
		return r.html, r.err
	}
	var b bytes.Buffer
	err := r.page.html(&b, r.version)
	r.html = b.Bytes()
	return r.html, err
}

// news is the answer to a browser that follows the page.
type news struct {
	Version uint64     `json:"version"`
	Final   bool       `json:"final"`
	Title   string     `json:"title,omitempty"`
	Words   string     `json:"words,omitempty"`
	Data    *chartData `json:"data,omitempty"`
	Error   string     `json:"error,omitempty"`
}

// data returns the answer of the last version, and whether that version is final.
func (s *Server) data() (answer []byte, final bool) {
	s.rendering.Lock()
	defer s.rendering.Unlock()
	r := s.current()
	if r.version == 0 {
		return []byte(`{"version":0}`), false
	}
	if r.data == nil {
		u := news{Version: r.version, Final: r.final}
		err := r.err
		if err == nil {
			u.Title = r.page.Title + " - perfmq report"
			u.Words, err = r.page.words()
			u.Data = dataOf(r.page)
		}
		if err != nil {
			u = news{Version: r.version, Final: r.final, Error: err.Error()}
		}
		r.data, _ = json.Marshal(u) // cannot fail: numbers and texts
	}
	return r.data, r.final
}
