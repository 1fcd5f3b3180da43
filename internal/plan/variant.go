package plan

import (
	"fmt"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/pkg/driver"
)

// MaxWeight is the greatest weight of a [Variant].
const MaxWeight = 1_000_000

// Variant is a kind of messages of a producer group.
type Variant struct {
	// Weight over the sum of all is the share of the messages, from 1 to [MaxWeight].
	Weight int
	// Variant has the payload of a file, or a payload of BodySize and Fill from [Plan.MakeBodies].
	driver.Variant
	BodySize int
	Fill     Fill
	File     string // that Body was read from; empty for BodySize and Fill
}

// BodySource says where the body is from.
func (v *Variant) BodySource() string {
	if v.File != "" {
		return fmt.Sprintf("%s, %d bytes", v.File, v.Size())
	}
	return v.Fill.Describe(v.Size())
}

// tree is the message as a scenario has it.
func (v *Variant) tree() (t tree) {
	if v.File != "" {
		t.add("body-file", v.File)
	} else {
		t.add("message-size", v.Size())
		if v.Fill != "" && v.Fill != Random {
			t.add("fill", string(v.Fill))
		}
	}
	t.rows(&v.Variant, nil)
	return t
}

// Size returns the length of the body, also before it is made.
func (v *Variant) Size() int { return max(v.BodySize, len(v.Body)) }

func (g *Group) weights() (list []int) {
	for i := range g.Mix {
		list = append(list, g.Mix[i].Weight)
	}
	return list
}

// Order returns the order of the variants. The group is valid.
func (g *Group) Order() load.Mix { return load.NewMix(g.weights()) }

// LargestBody returns the length of the longest body that the group sends; 0 if it sends nothing.
func (g *Group) LargestBody() (size int) {
	if !g.Role.Produces() {
		return 0
	}
	for _, v := range g.Mix {
		size = max(size, v.Size())
	}
	return size
}

// Bytes returns the size of the bodies of n messages, rounded up, or a little more.
func (g *Group) Bytes(n int64) (bytes int64) {
	list := g.Mix
	var sum int64
	for i := range list {
		sum += int64(list[i].Weight)
	}
	for i := range list {
		share := n/sum*int64(list[i].Weight) + (n%sum*int64(list[i].Weight)+sum-1)/sum
		bytes += share * int64(list[i].Size())
	}
	return bytes
}

// AcceptOwn raises the limit on bodies from the brokers to the longest body that the plan sends: it comes back,
// whatever its size.
func (p *Plan) AcceptOwn() {
	largest := 0
	for _, g := range p.distinct() {
		largest = max(largest, g.LargestBody())
	}
	for _, b := range p.Brokers() {
		b.MaxBody = max(b.LargestBody(), largest)
	}
}

// mix finds the mistakes of the kinds of messages as a whole.
func (v *validator) mix() {
	g := v.group
	list := g.Mix
	total := 0
	for i := range list {
		total += min(list[i].Size(), MaxMessageSize+1)
	}
	v.refuse(total > MaxMessageSize, "", "the bodies have %d bytes in all, more than %d", total, MaxMessageSize)
	v.refuse(len(list) > driver.MaxVariants, "", "there are %d messages, more than %d", len(list), driver.MaxVariants)
	length := load.CycleLength(g.weights())
	v.refuse(length > load.MaxCycle, "give rounder weights", "the weights of the messages add up to %d, more than %d",
		length, load.MaxCycle)
}
