package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// First opens a connection to the first host that accepts it, within timeout. It tries the hosts in the given order of
// their indexes; nil means the order of the URL. Each host gets an equal share of the remaining time, so that a silent
// host does not keep us from the next. It tries no more hosts after one that refuses our login: the next one knows the
// same users, and some brokers lock an account after a few failures.
func First[C any](
	ctx context.Context, hosts []Endpoint, order []int, timeout time.Duration,
	open func(context.Context, Endpoint) (C, error),
) (c C, err error) {
	deadline := time.Now().Add(timeout)
	chosen := hosts
	if len(order) > 0 {
		chosen = nil
	}
	for _, i := range order {
		chosen = append(chosen, hosts[i])
	}
	var errs []error
	for i, host := range chosen {
		share := time.Until(deadline) / time.Duration(len(chosen)-i)
		hostCtx, cancel := context.WithTimeout(ctx, share)
		opened, err := open(hostCtx, host)
		cancel()
		if err == nil {
			return opened, nil
		}
		errs = append(errs, err)
		if errors.Is(ctx.Err(), context.Canceled) {
			return c, driver.Errorf(driver.ClassConnect, "connect to "+host.String(), "", "%w", ctx.Err())
		}
		if ctx.Err() != nil || driver.ClassOf(err) == driver.ClassAuth {
			break // no time for another host: err tells how far this one came
		}
	}
	if len(errs) == 1 {
		return c, errs[0]
	}
	return c, &driver.Error{
		Class: driver.ClassOf(errs[0]), Op: fmt.Sprintf("connect to any of %d hosts", len(errs)), Err: errors.Join(errs...),
	}
}

// Dial connects to e, with TLS on top if encrypted. Raw is the connection below TLS. Its errors are from
// [Protocol.ConnectError].
func (p *Protocol) Dial(
	ctx context.Context, e Endpoint, encrypted bool, settings driver.TLS, spec *driver.Connection,
) (conn net.Conn, raw *Metered, err error) {
	began := time.Now()
	tcp, err := dialFrom(ctx, spec.Local, e.String())
	if err != nil {
		return nil, nil, p.ConnectError(e, err)
	}
	began = spec.Stages.Ended(driver.StageConnect, began)
	raw = Meter(tcp)
	if !encrypted {
		return raw, raw, nil
	}
	limit := TimeLeft(ctx)
	if conn, err = p.secure(ctx, raw, e.Host, settings); err != nil {
		if driver.ClassOf(err) == driver.ClassTimeout {
			err = unanswered("the TLS handshake", "is this the broker's TLS port, or should it be "+p.Schemes[0]+"://?",
				limit, err)
		}
		return nil, nil, p.ConnectError(e, err)
	}
	spec.Stages.Ended(driver.StageTLS, began)
	return conn, raw, nil
}

// dialFrom connects from an address of this machine, or from any if it is the zero value.
func dialFrom(ctx context.Context, local netip.Addr, to string) (net.Conn, error) {
	if !local.IsValid() {
		return new(net.Dialer).DialContext(ctx, "tcp", to)
	}
	network := "tcp6"
	if local.Is4() {
		network = "tcp4"
	}
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0))}
	conn, err := d.DialContext(ctx, network, to)
	var unsuited *net.AddrError
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, driver.Errorf(driver.ClassUnsupported, "", "see `ip address` for the addresses of this machine",
			"the local address %s is not one of this machine: %v", local, err)
	case errors.As(err, &unsuited):
		return nil, driver.Errorf(driver.ClassUnsupported, "", "give local addresses of the broker's family",
			"the broker cannot be reached from %s: %w", local, err)
	}
	return conn, err
}

// TimeLeft returns the time until the deadline of ctx; 0 without one.
func TimeLeft(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return 0
}

// secure puts TLS on raw and performs the handshake with host. On failure it closes raw; the error is a [driver.Error]
// unless the connection itself failed.
func (p *Protocol) secure(ctx context.Context, raw net.Conn, host string, settings driver.TLS) (net.Conn, error) {
	config, err := settings.Config(host)
	if err != nil {
		_ = raw.Close()
		return nil, &driver.Error{Class: driver.ClassTLS, Err: err}
	}
	config.NextProtos = p.NextProtos
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		if !isNetwork(err) {
			err = p.tlsError("", err)
		}
		return nil, err
	}
	return &secured{Conn: conn}, nil
}

// secured is a TLS connection. Its first write reports why the peer closed it. With TLS 1.3 a broker refuses the
// client's certificate after the client has finished its handshake (RFC 8446, section 4.4.2.4): the next write finds
// the connection reset while the alert is still unread.
type secured struct {
	*tls.Conn
	heard atomic.Bool // the peer has sent something: it has accepted us
}

// refusalTimeout bounds the wait for the rest of an alert.
const refusalTimeout = 500 * time.Millisecond

// Read implements [net.Conn].
func (c *secured) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
	}
	return n, err
}

// Write implements [net.Conn].
func (c *secured) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) && !c.heard.Load() {
		_ = c.SetReadDeadline(time.Now().Add(refusalTimeout))
		if _, alert := c.Conn.Read(make([]byte, 1)); IsAlert(alert) {
			err = alert
		}
	}
	return n, err
}

// isNetwork reports whether the connection itself failed, rather than the TLS protocol.
func isNetwork(err error) bool {
	return driver.ClassOf(err) != driver.ClassOther || errors.Is(err, context.Canceled) ||
		errors.As(err, new(net.Error)) && !IsAlert(err)
}

// Identity keeps the product and version that a broker reports. A driver that embeds it is a [driver.Identified]. The
// zero value is an unknown broker; it is safe for concurrent use.
type Identity struct{ told atomic.Pointer[[2]string] } // product and version

// Tell stores product and version, cut to [driver.MaxBrokerText] bytes each. It ignores an empty product.
func (i *Identity) Tell(product, version string) {
	if product == "" {
		return
	}
	clip := func(text string) string {
		return strings.ToValidUTF8(text[:min(len(text), driver.MaxBrokerText)], "")
	}
	i.told.Store(&[2]string{clip(product), clip(version)})
}

// Broker implements [driver.Identified].
func (i *Identity) Broker() (product, version string) {
	if told := i.told.Load(); told != nil {
		return told[0], told[1]
	}
	return "", ""
}

// Notice tells one function that a producer has ended: nothing more can be sent. It implements [driver.Watched]. The
// zero value is usable, and safe for concurrent use.
type Notice struct {
	mu   sync.Mutex
	call func(error)
	why  error // nil until the end
}

// OnEnd implements [driver.Watched].
func (n *Notice) OnEnd(call func(why error)) {
	n.mu.Lock()
	n.call = call
	why := n.why
	n.mu.Unlock()
	if why != nil {
		call(why)
	}
}

// End calls the function, for the first reason.
func (n *Notice) End(why error) {
	n.mu.Lock()
	first, call := n.why == nil, n.call
	if first {
		n.why = why
	}
	n.mu.Unlock()
	if first && call != nil {
		call(why)
	}
}
