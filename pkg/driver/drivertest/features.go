package drivertest

import (
	"reflect"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Feature names a feature that a protocol or a broker may lack: the name of the field of [driver.KindCapabilities].
type Feature string

// The features. Queues and Topics are the field Exists of each kind.
const (
	Queues              Feature = "Queues"
	Topics              Feature = "Topics"
	DurableSubscription Feature = "DurableSubscription"
	SharedSubscription  Feature = "SharedSubscription"
	Persistent          Feature = "Persistent"
	TTL                 Feature = "TTL"
	Priority            Feature = "Priority"
	Group               Feature = "Group"
	Properties          Feature = "Properties"
	Selector            Feature = "Selector"
	Transactions        Feature = "Transactions"
	TransactedReceive   Feature = "TransactedReceive"
	Credit              Feature = "Credit"
	Reject              Feature = "Reject"
	Release             Feature = "Release"
	Delay               Feature = "Delay"
	Text                Feature = "Text"
	Redelivered         Feature = "Redelivered"
	RequestReply        Feature = "RequestReply"
	DynamicReply        Feature = "DynamicReply"
)

// On returns the feature of one kind of destination, for [Config.Lacks].
func (f Feature) On(kind driver.Kind) Feature { return f + "/" + Feature(kind.String()) }

// trait is a feature of a kind of destination, except the kind itself.
type trait struct {
	feature Feature
	// ask asks for a feature that must be refused; nil for a feature that a caller cannot ask for.
	ask func(*env, refusal)
}

// exists is the field of the kind itself.
const exists = "Exists"

// traits are the fields of [driver.KindCapabilities], in their order.
func traits() []trait {
	asks := asks()
	var list []trait
	for _, field := range reflect.VisibleFields(reflect.TypeFor[driver.KindCapabilities]()) {
		if field.Name != exists {
			list = append(list, trait{Feature(field.Name), asks[Feature(field.Name)]})
		}
	}
	return list
}

// declared returns where the driver declares a feature.
func declared(c *driver.KindCapabilities, f Feature) *bool {
	return reflect.ValueOf(c).Elem().FieldByName(string(f)).Addr().Interface().(*bool)
}

// Features returns all features, in the order of the table of features.
func Features() []Feature {
	list := []Feature{Queues, Topics}
	for _, t := range traits() {
		list = append(list, t.feature)
	}
	return list
}

// kindFeature returns the feature that is a kind of destination itself.
func kindFeature(kind driver.Kind) Feature {
	if kind == driver.Topic {
		return Topics
	}
	return Queues
}

// kinds returns the kinds to test: those of both protocol and broker.
func (c *Config) kinds() []driver.Kind {
	var list []driver.Kind
	for _, kind := range []driver.Kind{driver.Queue, driver.Topic} {
		if works, _ := c.works(kindFeature(kind), kind); works {
			list = append(list, kind)
		}
	}
	return list
}

// works reports whether protocol and broker have the feature for a kind of destination, and if not, whether only the
// broker lacks it.
func (c *Config) works(f Feature, kind driver.Kind) (works, brokerLacks bool) {
	caps := c.Factory.Capabilities.Of(kind)
	can := caps.Exists && (f == kindFeature(kind) || *declared(caps, f))
	lacks := c.reason(f, kind) != ""
	return can && !lacks, can && lacks
}

// reason returns why the broker lacks the feature; empty if it has it.
func (c *Config) reason(f Feature, kind driver.Kind) string {
	if why, ok := c.Lacks[f.On(kind)]; ok {
		return why
	}
	return c.Lacks[f]
}
