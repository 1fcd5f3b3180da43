package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/pkg/driver"
)

// LibraryClient is the value of --client for the client library of a protocol.
const LibraryClient = "library"

// ByClient splits a list of factories into the usual drivers of the protocols and those on client libraries beside
// them. The first driver of a protocol is the usual one: the native driver, unless the protocol has only libraries.
func ByClient(list []driver.Factory) (usual, libraries []driver.Factory) {
	for _, f := range list {
		if byName(usual, f.Name) != nil {
			libraries = append(libraries, f)
		} else {
			usual = append(usual, f)
		}
	}
	return usual, libraries
}

// Driver returns the driver of a broker. For hints, a client library's driver knows the features of the native one.
func (m *Maker) Driver(b *plan.Broker) *driver.Factory {
	usual := byName(m.Factories, b.Protocol)
	for _, l := range m.Libraries {
		if l.Name == b.Protocol && l.Client == b.Client && b.Client != usual.Client {
			if isNative(usual) {
				l.Native = &usual.Capabilities
			}
			return &l
		}
	}
	return usual
}

// isNative reports whether a factory is of our own data path.
func isNative(f *driver.Factory) bool { return f.Client == "" || f.Client == driver.Native }

// CanEmbed reports whether the broker in the binary speaks the protocol.
func CanEmbed(f *driver.Factory) bool { return slices.Contains(broker.Protocols(), f.Name) }

// librariesOf returns the client libraries of a protocol.
func librariesOf(f *driver.Factory, libraries []driver.Factory) []driver.Factory {
	return slices.DeleteFunc(slices.Clone(libraries), func(l driver.Factory) bool { return l.Name != f.Name })
}

// Schemes returns the beginnings of the URLs of a protocol, such as amqp://.
func Schemes(f *driver.Factory) []string {
	list := make([]string, len(f.Schemes))
	for i, s := range f.Schemes {
		list[i] = s + "://"
	}
	return list
}

// Names returns the names of protocols.
func Names(factories []driver.Factory) []string {
	names := make([]string, len(factories))
	for i, f := range factories {
		names[i] = f.Name
	}
	return names
}

// NewOptions returns the options of a protocol at their defaults, or nil.
func NewOptions(f *driver.Factory) any {
	if f.NewOptions == nil {
		return nil
	}
	return f.NewOptions()
}

// byScheme returns the first protocol with that scheme, or nil.
func byScheme(list []driver.Factory, scheme string) *driver.Factory {
	return first(list, func(f *driver.Factory) bool { return slices.Contains(f.Schemes, scheme) })
}

// byName returns the protocol of a name, in whatever case, or nil.
func byName(list []driver.Factory, name string) *driver.Factory {
	return first(list, func(f *driver.Factory) bool { return strings.EqualFold(f.Name, name) })
}

// first returns the first element that is meant, or nil.
func first[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// plainValue rewrites the value of an option that is a number, size or time as people write it, such as 64KiB or 1k, to
// the form that [driver.SetOptions] reads. Any other text is returned as it is, and judged there.
func plainValue(value any, text string) string {
	switch value.(type) {
	case int:
		if n, err := quantity.Bytes(text, math.MaxInt64); err == nil {
			return strconv.FormatInt(n, 10)
		}
	case time.Duration:
		if d, err := quantity.Duration(text, 0); err == nil {
			return d.String()
		}
	}
	return text
}
