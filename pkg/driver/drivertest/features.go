package drivertest

import (
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
	Concurrency         Feature = "Concurrency"
	Redelivered         Feature = "Redelivered"
)

// On returns the feature of one kind of destination, for [Config.Lacks].
func (f Feature) On(kind driver.Kind) Feature { return f + "/" + Feature(kind.String()) }

// trait is a feature of a kind of destination.
type trait struct {
	feature Feature
	// declared is the field in which the driver declares the feature.
	declared func(*driver.KindCapabilities) *bool
	// ask asks for a feature that must be refused; nil for a feature that a caller cannot ask for.
	ask func(*env, refusal)
}

// traits are all features in the order of the table of features, except the kinds themselves.
func traits() []trait {
	type kc = driver.KindCapabilities
	return []trait{
		{DurableSubscription, func(c *kc) *bool { return &c.DurableSubscription }, refuseDurable},
		{SharedSubscription, func(c *kc) *bool { return &c.SharedSubscription }, refuseShared},
		{Persistent, func(c *kc) *bool { return &c.Persistent }, refusePersistent},
		{TTL, func(c *kc) *bool { return &c.TTL }, refuseTTL},
		{Priority, func(c *kc) *bool { return &c.Priority }, refusePriority},
		{Group, func(c *kc) *bool { return &c.Group }, refuseGroup},
		{Properties, func(c *kc) *bool { return &c.Properties }, refuseProperties},
		{Selector, func(c *kc) *bool { return &c.Selector }, refuseSelector},
		{Transactions, func(c *kc) *bool { return &c.Transactions }, refuseTransactions},
		{TransactedReceive, func(c *kc) *bool { return &c.TransactedReceive }, refuseTransactedReceive},
		{Credit, func(c *kc) *bool { return &c.Credit }, refuseCredit},
		{Reject, func(c *kc) *bool { return &c.Reject }, refuseReject},
		{Release, func(c *kc) *bool { return &c.Release }, refuseRelease},
		{Concurrency, func(c *kc) *bool { return &c.Concurrency }, refuseConcurrency},
		{Redelivered, func(c *kc) *bool { return &c.Redelivered }, nil},
	}
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

// works tells whether protocol and broker have the feature for a kind of destination, and if not, whether only the
// broker lacks it.
func (c *Config) works(f Feature, kind driver.Kind) (works, brokerLacks bool) {
	can := false
	caps := *c.Factory.Capabilities.Of(kind)
	if f == kindFeature(kind) {
		can = caps.Exists
	}
	for _, t := range traits() {
		if t.feature == f {
			can = *t.declared(&caps) && caps.Exists
		}
	}
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
