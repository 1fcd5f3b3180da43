package transport

import (
	"context"
	"net"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Factory completes f for drivers with the options O. Further reports mistakes in the settings beside those that
// [Check] finds.
func Factory[O any](
	f driver.Factory, p *Protocol, options func() *O, further func(*Settings[O], Fail),
	open func(Settings[O]) driver.Driver,
) driver.Factory {
	check := func(opts driver.OpenOptions) (Settings[O], error) {
		return Check(p, opts, *options(), further)
	}
	f.Diagnose = p.Diagnose
	f.Schemes, f.DefaultURL = p.Schemes, p.Schemes[0]+"://localhost:"+p.PlainPort
	f.NewOptions = func() any { return options() }
	f.Check = func(opts driver.OpenOptions) error {
		_, err := check(opts)
		return err
	}
	f.Open = func(_ context.Context, opts driver.OpenOptions) (driver.Driver, error) {
		s, err := check(opts)
		if err != nil {
			return nil, err
		}
		return open(s), nil
	}
	return f
}

// Dial opens a connection to the first host that accepts it, tried in the order of spec. open gets a connection to one
// host: conn is raw, or TLS on top of it. It logs in. If open fails, Dial closes the connection.
func Dial[C, O any](
	ctx context.Context, p *Protocol, s *Settings[O], spec *driver.Connection,
	open func(ctx context.Context, host Endpoint, conn net.Conn, raw *Metered) (C, error),
) (C, error) {
	return First(ctx, s.Target.Hosts, spec.Order, s.ConnectTimeout,
		func(ctx context.Context, host Endpoint) (c C, err error) {
			conn, raw, err := p.Dial(ctx, host, s.Target.TLS, s.TLS, spec)
			if err != nil {
				return c, err
			}
			began := time.Now()
			if c, err = open(ctx, host, conn, raw); err != nil {
				_ = raw.Close() // not TLS, which would first send a close alert to a peer that may not read
				return c, p.ConnectError(host, err)
			}
			spec.Stages.Ended(driver.StageLogin, began)
			return c, nil
		})
}
