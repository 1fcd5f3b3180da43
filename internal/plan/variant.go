package plan

import (
	"cmp"
	"fmt"
	"math"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// MaxWeight is the greatest weight of a [Variant].
const MaxWeight = 1_000_000

// Variant is a kind of messages of a producer group.
type Variant struct {
	// Sizes are the sizes of the setting. Each becomes a variant with its BodySize.
	Sizes []Size `set:"message-size,made,one,daily" roles:"producer" section:"Message" arg:"SIZE" default:"1024" help:"bytes, such as 64KiB; several by weight, such as 1KiB/80:64KiB/20"`
	// File is the source of Body; empty for BodySize and Fill.
	File string `set:"body-file,made" roles:"producer" arg:"FILE" help:"file with the body of every message; of a folder, each file in turn"`
	Fill string `set:"fill,made" roles:"producer" words:"random,compressible,zeros" default:"random" help:"random text, compressible (gzip halves it), or zeros"`
	// Variant has the payload of a file, or a payload of BodySize and Fill from [Plan.MakeBodies].
	driver.Variant
	// Weight over the sum of all is the share of the messages.
	Weight   int `set:"weight,made,key" range:"1..1000000" default:"1" help:"share of the message by weight"`
	BodySize int
	// Law is the distribution of which all variants of the group are sizes; empty for none.
	Law string
}

// BodySource says where the body is from.
func (v *Variant) BodySource() string {
	if v.File != "" {
		return fmt.Sprintf("%s, %d bytes", v.File, v.Size())
	}
	text := map[string]string{Compressible: "compressible text", Zeros: "zeros"}[v.Fill]
	return fmt.Sprintf("%d bytes of %s", v.Size(), cmp.Or(text, "fixed random text"))
}

// tree is the message as a scenario has it. With content, it also has the length and the checksum of a
// file's content.
func (v *Variant) tree(content bool) (t tree) {
	if v.File != "" {
		t.add("body-file", v.File)
		if content {
			t.add("body", tree{{"bytes", v.Size()}, {"crc32c", fmt.Sprintf("%08x", verify.BodySum(v.Body))}})
		}
	} else {
		if v.Law != "" {
			t.add("message-size", v.Law)
		} else {
			t.add("message-size", v.Size())
		}
		if v.Fill != Random {
			t.add("fill", v.Fill)
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

// Order returns the order of the variants, by the seed of the plan if sizes have a distribution. The group is valid.
func (g *Group) Order(seed uint64) load.Mix {
	mix := load.NewMix(g.weights())
	if g.law() != "" {
		mix = mix.Shuffled(seed, g.Name)
	}
	return mix
}

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
	if g.law() != "" { // hardly ever more
		bytes += int64(4*math.Sqrt(float64(n))) * int64(g.LargestBody())
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
	v.wrong(total > MaxMessageSize, TooMany("bytes of bodies", total, MaxMessageSize))
	v.wrong(len(list) > driver.MaxVariants, TooMany("messages", len(list), driver.MaxVariants))
	length := load.CycleLength(g.weights())
	v.refuse(length > load.MaxCycle, "give rounder weights", "there are %d messages by their weights, more than %d",
		length, load.MaxCycle)
}
