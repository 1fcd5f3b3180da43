package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
)

// The broker in this process has room for what the messages weigh, not for the largest of them each time.
func TestMemoryOfMixes(t *testing.T) {
	g := &plan.Group{Role: plan.Producer, Count: 1000, Mix: []plan.Variant{{Weight: 9, BodySize: 1 << 10}, {Weight: 1, BodySize: 1 << 20}}}
	p := &plan.Plan{Steps: []plan.Step{{Groups: []*plan.Group{g}}}}
	messages, bytes := stored(p)
	require.EqualValues(t, 1000, messages)
	require.EqualValues(t, 900<<10+100<<20+1000*512, bytes)
	g.Mix[1].BodySize = 16 << 20
	require.EqualValues(t, 4*(16<<20+1<<10), backlog(p), "room for four of the largest")
}

// What a step leaves is there until a later one is drained.
func TestMemoryOfSteps(t *testing.T) {
	senders := func(n uint64) *plan.Group { return &plan.Group{Role: plan.Producer, Count: n, BodySize: 512} }
	readers := &plan.Group{Role: plan.Consumer}
	p := &plan.Plan{Steps: []plan.Step{
		{Groups: []*plan.Group{senders(1000)}},
		{Groups: []*plan.Group{senders(500), readers}},
		{Groups: []*plan.Group{readers}, Drained: true},
		{Groups: []*plan.Group{senders(1200)}},
		{Groups: []*plan.Group{senders(100), readers}, Drained: true},
	}}
	messages, bytes := stored(p)
	require.EqualValues(t, 1500, messages)
	require.EqualValues(t, 1500<<10, bytes)
}
