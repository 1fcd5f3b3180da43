package setting

import (
	"slices"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/pkg/driver"
)

// LibraryClient is the value of --client for the client library of a protocol.
const LibraryClient = "library"

// CanEmbed tells whether the broker in the binary speaks the protocol.
func CanEmbed(f *driver.Factory) bool { return slices.Contains(broker.Protocols(), f.Name) }

// LibrariesOf returns the client libraries of a protocol.
func LibrariesOf(f *driver.Factory, libraries []driver.Factory) []driver.Factory {
	var list []driver.Factory
	for _, l := range libraries {
		if l.Name == f.Name {
			list = append(list, l)
		}
	}
	return list
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
	for i := range factories {
		names[i] = factories[i].Name
	}
	return names
}

// NewOptions returns the options of a protocol at their defaults; nil if it has none.
func NewOptions(f *driver.Factory) any {
	if f.NewOptions == nil {
		return nil
	}
	return f.NewOptions()
}
