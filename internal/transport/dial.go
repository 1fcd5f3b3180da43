package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// First opens a connection to the first host that lets us in, within timeout. Each host gets an equal share of the time
// that is left, so that a silent one does not keep us from the next. A host that does not know us is the last one tried:
// the next knows the same users, and some brokers lock an account after a few failures.
func First[C any](
	ctx context.Context, hosts []Endpoint, timeout time.Duration, open func(context.Context, Endpoint) (C, error),
) (c C, err error) {
	deadline := time.Now().Add(timeout)
	var errs []error
	for i, host := range hosts {
		share := time.Until(deadline) / time.Duration(len(hosts)-i)
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
			break // without time for another one, how far we came with this one is in err
		}
	}
	if len(errs) == 1 {
		return c, errs[0]
	}
	return c, &driver.Error{
		Class: driver.ClassOf(errs[0]), Op: fmt.Sprintf("connect to any of %d hosts", len(errs)), Err: errors.Join(errs...),
	}
}

// Secure puts TLS on raw and shakes hands with host. On failure it closes raw; the error is a [driver.Error] if the
// settings are at fault, else that of the handshake.
func Secure(ctx context.Context, raw net.Conn, host string, settings driver.TLS) (net.Conn, error) {
	config, err := settings.Config(host)
	if err != nil {
		_ = raw.Close()
		return nil, &driver.Error{Class: driver.ClassTLS, Err: err}
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		if !isNetwork(err) {
			err = &handshakeError{err}
		}
		return nil, err
	}
	return conn, nil
}

// isNetwork tells whether it is the connection that failed, not what was said over it.
func isNetwork(err error) bool {
	var ne net.Error
	return driver.ClassOf(err) != driver.ClassOther || errors.Is(err, context.Canceled) || errors.As(err, &ne) && !isAlert(err)
}
