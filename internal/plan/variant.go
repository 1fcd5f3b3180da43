package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/internal/template"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// MaxWeight is the greatest weight of a [Variant].
const MaxWeight = 1_000_000

// Variant is a kind of messages of a producer group.
type Variant struct {
	// Sizes are the sizes of the setting. Each becomes a variant with its BodySize.
	Sizes []Size `set:"message-size,made,one,daily" roles:"producer" section:"Message" arg:"SIZE" default:"1024" help:"bytes, such as 64KiB; several by weight, such as 1KiB/80:64KiB/20"`
	// File is the source of Body, or of Template; empty for BodySize and Fill.
	File string `set:"body-file,made" roles:"producer" arg:"FILE" help:"file with the body of every message; of a folder, each file in turn"`
	// TemplateFile is File if that is of a template.
	TemplateFile string `set:"body-template,made" roles:"producer" arg:"FILE" help:"file of a body with fields"`
	// Template fills in the bodies; nil if they are all the same. Body is one of them.
	Template *template.Template
	// Values are the templates of the properties with fields, in their order.
	Values []*template.Template
	// Fill is what a body of BodySize has.
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
		t.add(map[bool]string{false: "body-file", true: "body-template"}[v.Template != nil], v.File)
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

// Templates returns the templates of the variants; nil if there are none.
func (g *Group) Templates() []template.Message {
	list, some := make([]template.Message, len(g.Mix)), false
	for i := range g.Mix {
		list[i] = template.Message{Body: g.Mix[i].Template, Values: g.Mix[i].Values}
		some = some || list[i].Body != nil || list[i].Values != nil
	}
	if !some {
		return nil
	}
	return list
}

// driverVariant returns the kind for drivers: properties with fields vary, and their values are the longest ones.
func (v *Variant) driverVariant() driver.Variant {
	d := v.Variant
	if len(v.Values) == 0 {
		return d
	}
	d.Properties = slices.Clone(d.Properties)
	values := v.Values
	for i := range d.Properties {
		if p := &d.Properties[i]; template.HasFields(p.Value) {
			p.Varies, p.Value = true, string(template.NewFiller(0, 0).Fill(values[0], 0, 0))
			values = values[1:]
		}
	}
	return d
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
	for _, g := range p.uses() {
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

// Size is one of several sizes of messages, of a distribution (Law) or with a weight of its own.
type Size struct {
	Bytes, Weight int
	Law           string
}

// Lognormal is the distribution of sizes whose logarithm is normal.
const Lognormal = "lognormal"

// lawSizes is the number of sizes of a distribution: few enough to prepare a body of each.
const lawSizes = 64

// LognormalSizes reads lognormal:MEDIAN:SIGMA[:MAX]. The sizes are the medians of 64 parts of the distribution with
// equal probability. Those above MAX become MAX.
func LognormalSizes(text string) (list []Size, err error) {
	parts := append(strings.Split(text, ":"), "", "")
	median, err1 := quantity.Bytes(parts[1], MaxMessageSize)
	number, err2 := quantity.Number(parts[2])
	most, err3 := min(32*median, MaxMessageSize), err2 // which bounds the memory of the bodies
	if parts[3] != "" && err2 == nil {
		most, err3 = quantity.Bytes(parts[3], MaxMessageSize)
	}
	if len(parts) > 6 || errors.Join(err1, err2, err3) != nil || median == 0 || number.Sign() == 0 ||
		number.Cmp(big.NewRat(10, 1)) > 0 || most < median {
		return nil, errors.New("must be like lognormal:2KiB:1.0:64KiB: the median, sigma up to 10, and the maximum")
	}
	sigma, _ := number.Float64()
	law := fmt.Sprintf("%s:%s:%s:%s", Lognormal, quantity.FormatBytes(median), parts[2], quantity.FormatBytes(most))
	law = strings.ReplaceAll(law, " bytes", "")
	for i := range lawSizes {
		normal := math.Sqrt2 * math.Erfinv(float64(2*i+1)/lawSizes-1) // the quantile of (i + 1/2) / lawSizes
		size := min(math.Round(float64(median)*math.Exp(sigma*normal)), float64(most))
		list = append(list, Size{Bytes: int(max(1, size)), Weight: 1, Law: law})
	}
	return list, nil
}

// law returns the distribution of the group's sizes; empty for none.
func (g *Group) law() string {
	if len(g.Mix) == 0 {
		return ""
	}
	return g.Mix[0].Law
}

// meanBody returns the mean length of bodies with a distribution, all equally likely.
func (g *Group) meanBody() int {
	sum := 0
	for i := range g.Mix {
		sum += g.Mix[i].Size()
	}
	return (sum + len(g.Mix)/2) / len(g.Mix)
}

// MaxMessageSize is the largest body that a plan may ask for, in bytes.
const MaxMessageSize = 1 << 30

// alphabet has 64 characters, so that six bits of a random number select one without bias.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// The fills of bodies. Empty is [Random].
const (
	// Random is text: letters and digits that an operator can look at on a broker's console, from a generator with a fixed
	// seed (PCG). A broker or a link that compresses gains the quarter that plain text always gives.
	Random = "random"
	// Compressible is the same text, with one sentence again and again in each third part: deflate (gzip) makes it half
	// as long.
	Compressible = "compressible"
	// Zeros are bytes of value 0.
	Zeros = "zeros"
)

// Body returns a payload of --message-size: the same bytes in every run and release, and on every machine. A shorter
// one is the beginning of a longer one.
func Body(size int, fill string) []byte {
	body := make([]byte, size)
	switch fill {
	case Zeros:
	case Compressible:
		const part = 2 * len(sentence) // of random text before each sentence
		source := rand.NewPCG(1, 2)
		for i := 0; i < size; i += part + len(sentence) {
			randomText(source, body[i:min(i+part, size)])
			copy(body[min(i+part, size):], sentence)
		}
	default:
		randomText(rand.NewPCG(1, 2), body)
	}
	return body
}

// sentence is the text that compressible bodies repeat.
const sentence = "perfmq sends compressible text. "

func randomText(source *rand.PCG, body []byte) {
	const charactersPerNumber = 10 // of six bits each, from 64
	for i := 0; i < len(body); i += charactersPerNumber {
		bits := source.Uint64()
		for j := i; j < min(i+charactersPerNumber, len(body)); j++ {
			body[j] = alphabet[bits&63]
			bits >>= 6
		}
	}
}

// text finds the bodies that cannot be sent as text.
func (v *validator) text() {
	list := v.group.Mix
	for _, m := range list {
		if !m.Text {
			continue
		}
		const hint = "--message-type bytes sends any body"
		// A body of --message-size is not made yet; it is ASCII, and may be of zeros.
		v.refuse(!utf8.Valid(m.Body), hint, "--message-type text: the body is not UTF-8: %s", m.BodySource())
		v.refuse(v.stomp && (m.Fill == Zeros && m.BodySize > 0 || bytes.IndexByte(m.Body, 0) >= 0), hint,
			"--message-type text: the body has a NUL, which ends a text of STOMP: %s", m.BodySource())
	}
}

// CheckBody returns a [*Mistake] if no broker of the protocol takes bodies of that many bytes.
func CheckBody(f *driver.Factory, size int) error {
	if f.Name == "rocketmq" && size == 0 {
		return Wrong("give --message-size 1 or more", "%s does not take empty bodies", f.Title)
	}
	return nil
}

// MakeBodies makes the bodies of --message-size, once the plan turned out to be valid. The longest of a fill has all
// others in it: sizes of a distribution would else take as much memory as their sum.
func (p *Plan) MakeBodies() {
	var list []*Variant
	for _, g := range p.uses() {
		for i := range g.Mix {
			if g.Mix[i].Body == nil {
				list = append(list, &g.Mix[i])
			}
		}
	}
	slices.SortFunc(list, func(a, b *Variant) int { return cmp.Compare(b.BodySize, a.BodySize) })
	made := map[string][]byte{}
	for _, v := range list {
		if made[v.Fill] == nil {
			made[v.Fill] = Body(v.BodySize, v.Fill)
		}
		v.Body = made[v.Fill][:v.BodySize:v.BodySize]
	}
}
