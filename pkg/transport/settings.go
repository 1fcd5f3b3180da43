package transport

import (
	"errors"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Settings are the checked settings of a driver with options O.
type Settings[O any] struct {
	Target         Target
	TLS            driver.TLS
	ConnectTimeout time.Duration
	MaxBody        int // of a message that is received, in bytes
	Options        O
}

// Fail reports a mistake in the settings, with a hint for its correction, which may be empty.
type Fail func(hint, format string, args ...any)

// Check reads the settings of a driver of the protocol: the URL, with user and password of opts if there are any, the
// settings for connecting, and the options of opts, or the given ones without opts' own. Check validates options with
// an enum itself; further, unless it is nil, reports mistakes in the others. All mistakes are returned at once, joined.
func Check[O any](
	p *Protocol, opts driver.OpenOptions, options O, further func(*Settings[O], Fail),
) (Settings[O], error) {
	const op = "check the settings"
	s := Settings[O]{TLS: opts.TLS, ConnectTimeout: opts.ConnectTimeout, MaxBody: opts.LargestBody(), Options: options}
	var errs []error
	fail := func(hint, format string, args ...any) {
		errs = append(errs, driver.Errorf(driver.ClassOther, op, hint, format, args...))
	}
	if o, ok := opts.Options.(*O); ok && o != nil {
		s.Options = *o
	} else if opts.Options != nil && !ok {
		fail("", "options of type %T are not those of %s", opts.Options, p.Title)
	}
	if opts.ConnectTimeout <= 0 {
		fail("", "the connect timeout must be above zero")
	}
	var err error
	if s.Target, err = p.Parse(opts.URL); err != nil {
		errs = append(errs, err)
	}
	if opts.User != "" || opts.Password != "" {
		s.Target.User, s.Target.Password = opts.User, opts.Password
	}
	if s.Target.TLS {
		if _, err := opts.TLS.Config("host"); err != nil {
			errs = append(errs, &driver.Error{Class: driver.ClassTLS, Op: op, Err: err})
		}
	}
	for _, err := range driver.CheckOptions(&s.Options) {
		fail("", "%w", err)
	}
	if further != nil {
		further(&s, fail)
	}
	return s, errors.Join(errs...)
}
