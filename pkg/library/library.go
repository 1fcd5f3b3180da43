// Package library has the code that the drivers on client libraries share. Each of them uses its library as an
// application does: a call for each message, and the library's own connections, writes and credit. With --client they
// show whether the broker or the client library sets the limit.
package library

import (
	"context"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Join returns a connection of the pool, unless check refuses it.
func Join[C transport.Shared](
	ctx context.Context, pool *transport.Pool[C], spec driver.Connection, check func(C) error,
) (*transport.Lease[C], error) {
	lease, err := pool.Acquire(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err = check(lease.Conn); err != nil {
		lease.Release(ctx)
	}
	return lease, err
}

// Sleep waits for d, or returns the error of ctx when it ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Call is [Bounded] for a call without a value.
func Call(ctx context.Context, f func() error) error {
	_, err := Bounded(ctx, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// Bounded calls f, which ignores contexts, and returns when ctx ends; f may continue for some seconds.
func Bounded[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		v, err := f()
		results <- result{v, err}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// EndGrace is the time that a library may take to report the end of a connection.
const EndGrace = time.Second

// Conn is a network connection for a library that does not report the end of its connection. It passes reads and writes
// through unchanged.
type Conn struct {
	net.Conn
	// Ended is closed when a read or write has failed, or when the connection was closed. Libraries close it after any
	// failure, but perhaps late.
	Ended chan struct{}
	// Overdue is closed [EndGrace] after Ended: the library should have reported the end by then.
	Overdue chan struct{}
	once    sync.Once
}

// NewConn returns conn with notice of its end.
func NewConn(conn net.Conn) *Conn {
	return &Conn{Conn: conn, Ended: make(chan struct{}), Overdue: make(chan struct{})}
}

func (c *Conn) end() {
	c.once.Do(func() {
		close(c.Ended)
		time.AfterFunc(EndGrace, func() { close(c.Overdue) })
	})
}

// HasEnded reports whether the connection has ended.
func (c *Conn) HasEnded() bool {
	select {
	case <-c.Ended:
		return true
	default:
		return false
	}
}

// Read implements [net.Conn].
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.end()
	}
	return n, err
}

// Write implements [net.Conn].
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		c.end()
	}
	return n, err
}

// Close implements [net.Conn].
func (c *Conn) Close() error {
	c.end()
	return c.Conn.Close()
}

// Silence is a logger that discards everything, for libraries that otherwise write to standard error.
type Silence struct{}

// Debugf does nothing, like the others.
func (Silence) Debugf(string, ...any) {}

// Infof does nothing.
func (Silence) Infof(string, ...any) {}

// Warningf does nothing.
func (Silence) Warningf(string, ...any) {}

// Errorf does nothing.
func (Silence) Errorf(string, ...any) {}

// Debug does nothing.
func (Silence) Debug(string) {}

// Info does nothing.
func (Silence) Info(string) {}

// Warning does nothing.
func (Silence) Warning(string) {}

// Error does nothing.
func (Silence) Error(string) {}

// Unsupported returns the error about a setting that a library, or the driver on it, does not support.
func Unsupported(op, hint, text string) error {
	return driver.Errorf(driver.ClassUnsupported, op, hint, "%s", text)
}

// TooLarge returns the error about a received body of size bytes that is larger than limit.
func TooLarge(op string, size, limit int) error {
	return transport.TooLarge(op, "a body of", size, limit)
}

// Rules are the rules of a driver beside its capabilities, for libraries and native drivers.
type Rules struct {
	Signs string // in names of destinations, beside letters and digits
	Most  int    // the largest length of a name; 0 for any
}

// PlainNames are the rules of libraries that pass names on, to brokers that take some signs for something else.
func PlainNames() Rules { return Rules{Signs: "._-:"} }

// Legal reports whether a destination can have that name.
func (r Rules) Legal(name string) bool {
	odd := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(r.Signs, c)
	}
	return name != "" && (r.Most == 0 || len(name) <= r.Most) && !strings.ContainsFunc(name, odd)
}

// Names describes the legal names.
func (r Rules) Names() string {
	text := "letters, digits and " + strings.Join(strings.Split(r.Signs, ""), " ")
	if r.Most > 0 {
		text += fmt.Sprintf(", at most %d of them", r.Most)
	}
	return text
}

// CheckProducer refuses features that the capabilities of f exclude, and names that the rules exclude.
func (r Rules) CheckProducer(op string, f *driver.Factory, spec *driver.ProducerSpec) error {
	return r.refuse(op, f, spec.Destination, spec.Missing(f.Capabilities.Of(spec.Destination.Kind)))
}

// CheckConsumer refuses features that the capabilities of f exclude, and names that the rules exclude.
func (r Rules) CheckConsumer(op string, f *driver.Factory, spec *driver.ConsumerSpec) error {
	return r.refuse(op, f, spec.Destination, spec.Missing(f.Capabilities.Of(spec.Destination.Kind)))
}

// refuse returns an error for the first missing setting, else for a destination that cannot be.
func (r Rules) refuse(op string, f *driver.Factory, dest driver.Destination, missing []string) error {
	native := ""
	if f.Client != driver.Native {
		native = ", or use --client native"
	}
	switch {
	case !f.Capabilities.Of(dest.Kind).Exists:
		return Unsupported(op, "use another destination"+native, f.Spoken()+" has no "+dest.Kind.String()+"s")
	case len(missing) > 0:
		return Unsupported(op, "leave "+missing[0]+" out", missing[0]+": "+f.Spoken()+" does not support that")
	case !r.Legal(dest.Name):
		return Unsupported(op, "use a name of "+r.Names()+native, f.Spoken()+": a name has "+r.Names())
	default:
		return nil
	}
}

// Properties returns the application properties common to all messages of a variant: the user's, and the origin.
func Properties(spec *driver.ProducerSpec, v *driver.Variant) map[string]string {
	m := map[string]string{}
	for _, property := range v.Properties {
		if !property.Varies {
			m[property.Key] = property.Value
		}
	}
	if spec.Origin != (driver.ID{}) {
		m[driver.IDProperty] = string(spec.Origin.Append(nil))
	}
	return m
}

// OfMessage returns the properties of a message of a variant, as texts: common, those of all of them, and its own.
func OfMessage(common map[string]string, v *driver.Variant, m *driver.Message) map[string]string {
	properties := maps.Clone(common)
	properties[driver.TimeProperty] = strconv.FormatInt(m.Time, 10)
	if m.ID != (driver.ID{}) {
		properties[driver.IDProperty] = string(m.ID.Append(nil))
	}
	for i, key := range v.Varying() {
		properties[key] = string(m.Values[i])
	}
	return properties
}

// ReadText sets d's time and ID from the texts of the properties [driver.TimeProperty] and [driver.IDProperty]; a text
// is empty if the message lacks the property.
func ReadText(d *driver.Delivery, sent, id string) {
	var err error
	d.Time, err = strconv.ParseInt(sent, 10, 64)
	d.HasTime = err == nil
	if id != "" {
		d.ID = ID(id)
	}
}

// ID returns the message ID in value, which is the value of the property [driver.IDProperty]: none for nil, a garbled
// one if value is not the text of an ID.
func ID(value any) driver.ID {
	switch text := value.(type) {
	case nil:
		return driver.ID{}
	case string:
		return driver.ParseID(text)
	default:
		return driver.GarbledID()
	}
}
