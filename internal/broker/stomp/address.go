package stomp

import (
	"bytes"
	"strings"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// address parses a destination header. The kind is that of its prefix, else the routing type (ANYCAST or MULTICAST),
// else a queue.
func address(name, kind string) (store.Address, error) {
	a, prefixed := store.ParseAddress(name)
	given := store.KindQueue
	switch strings.ToUpper(kind) {
	case "", "ANYCAST":
	case "MULTICAST":
		given = store.KindTopic
	default:
		return a, refuse("invalid header: routing type %.40q is neither ANYCAST nor MULTICAST", kind)
	}
	switch {
	case prefixed && kind != "" && a.Kind != given:
		return a, refuse("invalid header: destination %.80q has not the routing type %s", name, kind)
	case !prefixed:
		a.Kind = given
	}
	if a.Name == "" {
		return a, refuse("invalid frame: no destination")
	}
	return a, nil
}

// addresses caches the destinations of header values.
type addresses struct {
	last       *store.Destination
	name, kind []byte // of last, with their escapes
	known      map[[2]string]*store.Destination
}

const maxKnown = 1000

// destination returns the destination of a SEND frame.
func (c *conn) destination(name, kind []byte) (*store.Destination, error) {
	known := &c.addresses
	if known.last != nil && bytes.Equal(known.name, name) && bytes.Equal(known.kind, kind) {
		return known.last, nil
	}
	key := [2]string{string(name), string(kind)}
	d := known.known[key]
	if d == nil {
		plain, _ := c.version.Unescape(name)
		plainKind, _ := c.version.Unescape(kind)
		a, err := address(string(plain), string(plainKind))
		if err != nil {
			return nil, err
		}
		if d, err = c.server.store.Open(a); err != nil {
			return nil, cannotOpen(a, err)
		}
		if len(known.known) >= maxKnown || known.known == nil {
			known.known = map[[2]string]*store.Destination{}
		}
		known.known[key] = d
	}
	known.last, known.name, known.kind = d, append(known.name[:0], name...), append(known.kind[:0], kind...)
	return d, nil
}
