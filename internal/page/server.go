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

// Times of a server. A browser that asks for what is newer waits for so long at most, well below the time that listen
// gives a request, and then asks again; one that has not yet seen the end of the run is waited for when the server is
// closed, if it was there shortly before.
const (
	pollTime  = 5 * time.Second
	seenTime  = 5 * time.Second
	leaveTime = 5 * time.Second
)

// Server serves a page that changes, at the path / of a server of its own, and at /data its words and numbers. It only
// reads. The page is rendered when somebody asks for it, once for each change, and the run that publishes does not wait
// for that.
type Server struct {
	http *listen.HTTP

	mu       sync.Mutex
	version  uint64
	changed  chan struct{} // closed at the next version
	final    bool
	closing  bool
	build    func() (*Page, error)
	asking   int // requests of browsers that follow
	waiting  int // browsers that were answered and have not asked again
	answered time.Time

	rendering sync.Mutex // of rendered; locked before mu
	rendered  rendered
}

// rendered is a version of the page, and what was made of it so far.
type rendered struct {
	version uint64
	final   bool
	page    *Page
	err     error
	html    []byte // the answer of /
	data    []byte // the answer of /data
}

// NewServer returns a server that listens on address, HOST:PORT or :PORT, which is on loopback; setting names the flag
// in errors.
func NewServer(address, setting string) (*Server, error) {
	l, err := listen.TCP(context.Background(), "the page", setting, address)
	if err != nil {
		return nil, err
	}
	s := &Server{changed: make(chan struct{})}
	s.http = listen.Serve(l, s.handler(address, l.Addr()))
	return s, nil
}

// Address returns the address that is listened on, with the real port if 0 was asked for.
func (s *Server) Address() net.Addr { return s.http.Addr() }

// Publish says that there is something new. build makes the page, if somebody asks for it; it may be called by any
// goroutine, one at a time. final says that nothing newer comes.
func (s *Server) Publish(build func() (*Page, error), final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.build, s.final = build, final
	close(s.changed)
	s.changed = make(chan struct{})
}

// Close stops serving. Browsers that follow have five seconds to fetch what was published last.
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

// expected tells whether a browser is about to ask for the last page, or to be answered, perhaps with one before it.
func (s *Server) expected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.final && (s.asking > 0 || s.waiting > 0 && time.Since(s.answered) < seenTime)
}

// handler only reads. On loopback, another name than those of the machine comes from a web page of somebody else.
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

// serveData answers with what is newer than the version after, as soon as there is something, or with the same when the
// time is over.
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

// await waits for a version after that one. It is false if none came in time.
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

// current returns the last version. The lock of rendering is held, so that build is called by one at a time.
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
	if r.html == nil && r.err == nil {
		var b bytes.Buffer
		if err := r.page.html(&b, r.version); err != nil {
			return nil, err
		}
		r.html = b.Bytes()
	}
	return r.html, r.err
}

// news is the answer to a browser that follows.
type news struct {
	Version uint64     `json:"version"`
	Final   bool       `json:"final"`
	Title   string     `json:"title,omitempty"`
	Words   string     `json:"words,omitempty"`
	Data    *chartData `json:"data,omitempty"`
	Error   string     `json:"error,omitempty"`
}

// data returns the answer of the last version, and whether nothing newer comes.
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
			data := dataOf(r.page)
			u.Data = &data
		}
		if err != nil {
			u = news{Version: r.version, Final: r.final, Error: err.Error()}
		}
		r.data, _ = json.Marshal(u) // numbers and texts
	}
	return r.data, r.final
}
