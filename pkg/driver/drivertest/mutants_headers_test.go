package drivertest_test

import (
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// uninspected leaves the suite nothing to look at messages with but the driver, which may lack features.
func uninspected(features ...drivertest.Feature) func(*drivertest.Config) {
	return func(c *drivertest.Config) {
		c.Inspect = nil
		lacking(features...)(c)
	}
}

// headerMutants ignore or change the parts of a message beside the body.
func headerMutants() []mutant {
	variants := func(f func(*driver.Variant)) func() broken {
		return func() broken { return broken{sends: eachVariant(f)} }
	}
	spec := func(f func(*driver.ProducerSpec)) func() broken { return func() broken { return broken{sends: f} } }
	noProperties := variants(func(v *driver.Variant) { v.Properties = nil })
	noGroup := variants(func(v *driver.Variant) { v.Group = "" })
	noTTL := spec(func(s *driver.ProducerSpec) { s.TTL = 0 })
	ofFirst := spec(func(s *driver.ProducerSpec) {
		first := s.Variants[0]
		eachVariant(func(v *driver.Variant) {
			v.Properties, v.Priority, v.Group = first.Properties, first.Priority, first.Group
		})(s)
	})
	return []mutant{
		{name: "properties dropped", check: "Properties", says: "the property color did not arrive", broken: noProperties},
		{
			name: "properties dropped, which a selector shows", check: "Properties", says: "receive messages that have color = 'red'",
			broken: noProperties, with: uninspected(),
		},
		{name: "properties escaped twice", check: "Properties", says: "the property text changed", broken: variants(func(v *driver.Variant) {
			list := make([]driver.Property, len(v.Properties))
			for i, p := range v.Properties {
				list[i] = driver.Property{Key: p.Key, Value: strings.ReplaceAll(p.Value, "\n", "\\n")}
			}
			v.Properties = list
		})},
		{name: "only the first property", check: "Properties", says: "receive messages that have text", broken: variants(func(v *driver.Variant) {
			v.Properties = v.Properties[:min(1, len(v.Properties))]
		}), with: uninspected()},
		{name: "properties of the first variant", check: "Properties/Variants", says: "messages whose property color is", broken: ofFirst},
		{
			name: "properties of the first variant, which a selector shows", check: "Properties/Variants",
			says: "receive messages that have color = 'blue'", broken: ofFirst, with: uninspected(),
		},
		{
			name: "group of the first variant", check: "Properties/Variants", says: "the group of messages whose color is",
			broken: spec(func(s *driver.ProducerSpec) {
				first := s.Variants[0]
				eachVariant(func(v *driver.Variant) { v.Group = first.Group })(s)
			}),
		},
		{
			name: "priority of the first variant", check: "Properties/Variants", says: "the priority of messages whose color is",
			broken: variants(func(v *driver.Variant) { v.Priority = -1 }),
		},
		{
			name: "persistent ignored", check: "Persistent", says: "whether messages are persistent",
			broken: spec(func(s *driver.ProducerSpec) { s.Persistent = false }),
		},
		{
			name: "always persistent", check: "Persistent", says: "whether messages are persistent",
			broken: spec(func(s *driver.ProducerSpec) { s.Persistent = true }),
		},
		{
			name: "priority ignored", check: "Priority", says: "the priority of messages at the broker",
			broken: variants(func(v *driver.Variant) { v.Priority = -1 }),
		},
		{name: "group ignored", check: "Group", says: "the group of messages at the broker", broken: noGroup},
		{
			name: "group ignored, which two consumers show", check: "Group", says: "of one group went to two consumers",
			broken: noGroup, with: uninspected(),
		},
		{name: "ttl ignored", check: "TTL", says: "unknown time property", broken: noTTL},
		{
			name: "ttl ignored, without credit", check: "TTL", only: "topic", says: "the time to live of messages at the broker",
			broken: noTTL, with: lacking(drivertest.DurableSubscription, drivertest.Credit),
		},
		{
			name: "delay ignored", check: "Delay", says: "that the broker was to hold back",
			broken: spec(func(s *driver.ProducerSpec) { s.Delay = 0 }),
		},
		{
			name: "delay in another unit", check: "Delay", says: "that the broker was to hold back",
			broken: spec(func(s *driver.ProducerSpec) { s.Delay /= 1000 }),
		},
		{name: "text ignored", check: "Text", says: "messages that are text at the broker", broken: variants(func(v *driver.Variant) { v.Text = false })},
		{name: "all is text", check: "Text", says: "messages that are text at the broker", broken: variants(func(v *driver.Variant) { v.Text = true })},
		{name: "text without its accents", check: "Text", says: "the body of message", broken: variants(func(v *driver.Variant) {
			if v.Text {
				v.Body = []byte(strings.ReplaceAll(string(v.Body), "é", "e"))
			}
		})},
		{
			name: "without a ttl messages expire", check: "Settle/AfterVerdict", says: "was lost|did not come again",
			broken: spec(func(s *driver.ProducerSpec) { s.TTL = max(s.TTL, 1) }),
		},
		{
			name: "ttl always short", check: "TTL", says: "10 missing",
			broken: spec(func(s *driver.ProducerSpec) {
				if s.TTL > 0 {
					s.TTL = 1
				}
			}),
		},
	}
}
