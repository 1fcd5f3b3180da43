package rocketmq

import (
	"fmt"
	"slices"
	"strings"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// membership is the consumer group of a consumer.
type membership struct {
	group string
	// passing groups belong to one run: they start at the next message and are deleted when their last member leaves.
	passing bool
	// alone: the group belongs to one consumer, and ends with it.
	alone bool
	// fromNext: a new group starts at the next message sent instead of at the first one stored.
	fromNext bool
}

// membershipOf chooses the group. A queue is a topic with one group that all its consumers share and that stays as long
// as the topic: the group's offsets make it a queue. A subscription is a group of its own.
func (o *Options) membershipOf(spec *driver.ConsumerSpec, unique string) membership {
	m := membership{}
	filter := ""
	if spec.Selector != "" { // all members of a group must have the same filter
		filter = fmt.Sprintf("-%08x", fold(spec.Selector))
	}
	switch {
	case o.Group != "":
		m.group, m.fromNext = o.Group, spec.Destination.Kind == driver.Topic
	case spec.Destination.Kind == driver.Queue:
		m.group = groupName("perfmq-queue-" + spec.Destination.Name + filter)
	case spec.Durable || spec.Shared:
		name := spec.Subscription
		if spec.Connection.ClientID != "" {
			name = spec.Connection.ClientID + "-" + name
		}
		m.group, m.fromNext = groupName("perfmq-sub-"+spec.Destination.Name+"-"+name+filter), true
		m.passing = !spec.Durable || !spec.KeepSubscription
	default:
		m.group, m.fromNext, m.passing = groupName("perfmq-run-"+spec.Destination.Name+"-"+unique), true, true
		m.alone = true
	}
	return m
}

// groupName makes a legal name from any text: if the text contains illegal characters, or is too long, these become _,
// it is cut to 100 bytes, and a hash of the whole text is appended.
func groupName(text string) string {
	if rules().Legal(text) {
		return text
	}
	legal := strings.Map(func(r rune) rune {
		if r < 128 && rules().Legal(string(r)) {
			return r
		}
		return '_'
	}, text)
	return fmt.Sprintf("%s-%08x", legal[:min(len(legal), 100)], fold(text))
}

func fold(text string) uint32 {
	h := uint32(2_166_136_261) // FNV-1a
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * 16_777_619
	}
	return h
}

// parseSelector parses tag:A || B, a filter by tags, or else an SQL92 expression.
func parseSelector(selector string) wire.Subscription {
	s := wire.Subscription{Expression: "*", Kind: wire.KindTag, Tags: []string{}, Codes: []int32{}}
	tags, ok := strings.CutPrefix(selector, "tag:")
	if !ok && selector != "" {
		s.Expression, s.Kind = strings.TrimPrefix(selector, "sql:"), wire.KindSQL
		return s
	}
	for tag := range strings.SplitSeq(tags, "||") {
		if tag = strings.TrimSpace(tag); tag != "" && tag != "*" {
			s.Tags, s.Codes = append(s.Tags, tag), append(s.Codes, wire.HashCode([]byte(tag)))
		}
	}
	if len(s.Tags) > 0 {
		s.Expression = strings.Join(s.Tags, " || ")
	}
	return s
}

// takes reports whether a message with this tag matches. Brokers compare only hashes of tags.
func (c *consumer) takes(tag []byte) bool {
	tags := c.filter.Tags
	return len(tags) == 0 || slices.ContainsFunc(tags, func(t string) bool { return t == string(tag) })
}

// data describes the consumer. It is set before the consumer is registered and does not change.
func (c *consumer) data() wire.ConsumerData {
	retry := parseSelector("")
	retry.Topic, retry.Version = wire.RetryPrefix+c.group, c.filter.Version
	return wire.ConsumerData{
		Group: c.group, Type: "CONSUME_PASSIVELY", Model: "CLUSTERING", From: "CONSUME_FROM_FIRST_OFFSET",
		Subscriptions: []wire.Subscription{c.filter, retry},
	}
}
