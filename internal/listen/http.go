package listen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/netutil"
)

// The limits of a client of HTTP. No request takes long, and none has much to say. More than maxConnections clients
// wait for one another.
const (
	headerTimeout   = 5 * time.Second
	requestTimeout  = 10 * time.Second
	answerTimeout   = 30 * time.Second
	idleTimeout     = 10 * time.Second
	maxHeader       = 16 << 10
	maxBody         = 64 << 10
	maxConnections  = 2048
	shutdownTimeout = 2 * time.Second
)

// HTTP serves over a listener until Close.
type HTTP struct {
	listener net.Listener
	server   *http.Server
	served   chan error
}

// Serve answers requests by h, which sees bodies of at most 64 KiB. It does not wait for slow clients.
func Serve(l net.Listener, h http.Handler) *HTTP { return Web{}.Serve(l, h) }

func newHTTP(l net.Listener, h http.Handler) *HTTP {
	s := &HTTP{listener: netutil.LimitListener(l, maxConnections), served: make(chan error, 1)}
	s.server = &http.Server{
		Handler:           http.MaxBytesHandler(h, maxBody),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // it would show bytes of clients
	}
	return s
}

// Addr returns where it is served.
func (s *HTTP) Addr() net.Addr { return s.listener.Addr() }

// Close stops serving. Requests in progress have two seconds to finish. The error is why serving had ended before, if
// it had.
func (s *HTTP) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		_ = s.server.Close() // cuts off requests that are too slow
	}
	if err := <-s.served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Local lets only those requests through to h that name the machine by one of its names: localhost, an
// address, or one of the names, see [HostNames]. A web page can have a browser ask us under a name of its own that it
// lets point to 127.0.0.1 (DNS rebinding), but not under any of these. It also refuses requests of browsers for pages
// of other origins.
func Local(names []string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !ours(r.Host, names):
			http.Error(w, fmt.Sprintf("this is not %q: ask for localhost, or for the address", r.Host),
				http.StatusMisdirectedRequest)
		case foreign(r):
			http.Error(w, "web pages of other origins are not answered", http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// ours reports whether a Host header is a name that no foreign web page can have.
func ours(host string, names []string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	return name != "" && (IsLoopback(name) || net.ParseIP(strings.Trim(name, "[]")) != nil ||
		slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(name, n) }))
}

// HostNames returns the names that a request to an address to listen on may have, beside addresses: the one written in
// it, and the machine's.
func HostNames(address string) []string {
	var names []string
	if host, _, err := net.SplitHostPort(address); err == nil {
		names = append(names, host)
	}
	if host, err := os.Hostname(); err == nil {
		short, _, _ := strings.Cut(host, ".")
		names = append(names, host, short)
	}
	return names
}

// foreign reports whether a browser sent a request for a page of another origin (Fetch Standard, section 3.1; Fetch
// Metadata Request Headers, section 2.3). Other clients send neither header, and following a link only reads.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); r.Method {
	case http.MethodGet, http.MethodHead:
		return false
	default:
		return site != "" && site != "none" && site != "same-origin"
	}
}
