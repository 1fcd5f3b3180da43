package driver

import "context"

// Counting is implemented by producers and consumers with counters that are specific to their protocol. The engine
// finds it by type assertion and adds up counters of the same name.
type Counting interface {
	// Counters returns the counters in the order in which to print them, always the same counters for one producer or
	// consumer. It may be called at any time, also after Close, and by any goroutine.
	Counters() []Counter
}

// Counter is a count that is specific to a protocol.
type Counter struct {
	// Name is lower case, words joined by hyphens: "tx-checks".
	Name string
	// Help describes the count in one line.
	Help string
	// Value counts from the opening of the producer or consumer.
	Value uint64
}

// Prober is implemented by consumers that can ask their broker for a sign of life.
type Prober interface {
	// Probe asks the broker for an answer, on the consumer's own connection if the protocol allows, and returns nil when
	// the answer has come. It must not change anything at the broker. A client that reconnects by itself may be without a
	// connection although the broker answers: its consumers return nil only when they receive. Probe may be called while
	// Run is running, by one goroutine at a time, and not after Close. It returns soon after ctx ends.
	Probe(ctx context.Context) error
}

// Watched is implemented by producers that notice the end of their connection, session or link between two sends.
type Watched interface {
	// OnEnd sets the function to call when nothing more can be sent, with the reason that Send returns from then on. The
	// function is called exactly once, and at once if that is so already, by any goroutine. It does not block. For the end
	// by Close it need not be called. OnEnd is called once.
	OnEnd(func(why error))
}

// Located is implemented by producers and consumers that open a connection to one of the hosts in the URL.
type Located interface {
	// Host returns the host to which the connection was opened, as [Factory.Hosts] names it. It may be called at any
	// time, also after Close, and by any goroutine.
	Host() string
}

// Identified is implemented by a [Driver] that learns the broker's product.
type Identified interface {
	// Broker returns product and version as the broker reported them when the last connection was opened, of at most
	// [MaxBrokerText] bytes each: "apache-activemq-artemis", "2.40.0". Both are empty until a connection was opened;
	// version alone is empty if the broker does not report it. The texts come from the peer: escape them before they are
	// printed. It may be called at any time, also after Close, and by any goroutine.
	Broker() (product, version string)
}

// MaxBrokerText is the length in bytes to which drivers cut the product and the version that a broker reports.
const MaxBrokerText = 200
