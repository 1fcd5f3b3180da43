package result

import (
	"cmp"
	"math"
	"reflect"
)

// Add adds other.
func (c *Counts) Add(other *Counts) {
	if other.Producers != nil {
		if c.Producers == nil {
			c.Producers = &Producers{}
		}
		c.Producers.addFailures(other.Producers.Failures)
	}
	if other.Consumers != nil && c.Consumers == nil {
		c.Consumers = &Consumers{}
	}
	to, from := c.places(), other.places()
	sum(to[:], from[:])
}

// Ended returns the number of messages that have ended, with any outcome, of counts by their [Counter].
func Ended(n []uint64) uint64 {
	return n[Completed] + n[Rejected] + n[Released] + n[Modified] + n[Failed] + n[Unconfirmed]
}

// InFlight returns the messages that were sent and have not ended.
func (c *Counts) InFlight() uint64 {
	n := c.Values()
	return n[Sent] - Ended(n[:])
}

// OfClass returns the failures of a class, of all states.
func (c *Counts) OfClass(class string) (n uint64) {
	if c.Producers != nil {
		for _, classes := range c.Producers.Failures {
			n += classes[class]
		}
	}
	return n
}

func (p *Producers) addFailures(failures map[string]map[string]uint64) {
	for state, classes := range failures {
		if p.Failures == nil {
			p.Failures = map[string]map[string]uint64{}
		}
		p.Failures[state] = addCounts(p.Failures[state], classes)
	}
}

// LeftOut returns the number of values that a latency lacks, because they are below zero.
func (r *Result) LeftOut(k *KindInfo) uint64 {
	if k.LeftOut == 0 {
		return 0
	}
	n := cmp.Or(r.Measured, &r.Total).Values()[k.LeftOut]
	if k.LeftOut == NegativeAges { // of both kinds, and each message has a value of each
		values := func(kind Kind) int64 { return cmp.Or(r.Latencies[kind], &Latency{}).Count }
		n = uint64(max(0, int64(n)+values(B2C)+values(S2C)-2*values(k.Kind)) / 2) //nolint:gosec // a count
	}
	return n
}

// Add adds o.
func (v *Verified) Add(o *Verified) { sum(fieldsOf(v), fieldsOf(o)) }

// Verified returns the findings so far in the form of those of the end.
func (p *Progress) Verified() Verified {
	return Verified{
		Received: p.Received, Duplicates: p.Duplicates, Redelivered: p.Redelivered, AfterOutage: p.AfterOutage,
		Resent: p.Resent, Disordered: p.Disordered, Damaged: p.Damaged, Foreign: p.Foreign,
	}
}

// Add adds o.
func (p *Progress) Add(o *Progress) { sum(fieldsOf(p), fieldsOf(o)) }

// fieldsOf returns the fields of a struct that has counts alone.
func fieldsOf(counts any) (list []*uint64) {
	for v, i := reflect.ValueOf(counts).Elem(), 0; i < v.NumField(); i++ {
		list = append(list, v.Field(i).Addr().Interface().(*uint64))
	}
	return list
}

// addCounts adds counts by name.
func addCounts(to, from map[string]uint64) map[string]uint64 {
	for name, n := range from {
		if to == nil {
			to = map[string]uint64{}
		}
		total := to[name]
		addTo(&total, n)
		to[name] = total
	}
	return to
}

// sum adds numbers by index.
func sum[T int64 | uint64](to, from []*T) {
	for i := range to {
		addTo(to[i], *from[i])
	}
}

// addTo adds a number that is not negative. No run comes near the largest sum: files that say so are forged.
func addTo[T int64 | uint64](to *T, n T) { *to = T(min(uint64(*to)+uint64(n), math.MaxInt64)) }
