package plan

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Bodies are the same in every run and release: results of two releases are about the same messages.
func TestFills(t *testing.T) {
	for _, c := range []struct {
		fill string
		size int
		sum  string // the first bytes of SHA-256
	}{
		{Random, 1024, "24bb8e9cd088573a"},
		{Random, 100_000, "544d59ee4a73ead6"},
		{Compressible, 1024, "595aaeffa2f8ba47"},
		{Compressible, 100_000, "cba3bbaf6bbe74e7"},
		{Zeros, 100_000, "9192c25b734fcbad"},
	} {
		body := Body(c.size, c.fill)
		require.Len(t, body, c.size)
		sum := sha256.Sum256(body)
		require.Equal(t, c.sum, hex.EncodeToString(sum[:8]), "%s %d", c.fill, c.size)
	}
	for _, fill := range []string{Random, Compressible, Zeros} {
		long := Body(1000, fill)
		for size := range 300 {
			require.Equal(t, long[:size], Body(size, fill), "%s %d", fill, size)
		}
	}
	for _, c := range []struct {
		fill        string
		size        int
		least, most float64
	}{
		{Random, 1 << 20, 0.74, 0.77},
		{Random, 1 << 10, 0.75, 0.83},
		{Compressible, 1 << 20, 0.49, 0.53},
		{Compressible, 16 << 10, 0.49, 0.54},
		{Compressible, 1 << 10, 0.49, 0.63},
		{Zeros, 1 << 20, 0, 0.01},
	} {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(Body(c.size, c.fill))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		ratio := float64(b.Len()) / float64(c.size)
		require.GreaterOrEqual(t, ratio, c.least, "%s %d", c.fill, c.size)
		require.LessOrEqual(t, ratio, c.most, "%s %d", c.fill, c.size)
	}
}

// mixOf returns variants of sizes with weights.
func mixOf(pairs ...int) (list []Variant) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, Variant{Weight: pairs[i], BodySize: pairs[i+1], Variant: driver.Variant{Priority: -1}})
	}
	return list
}

// TestJSONOfBodies: the plan tells two contents of a body file apart, also of the same length, without the contents.
func TestJSONOfBodies(t *testing.T) {
	unchanged := func(s string) string { return s }
	seen := map[string]bool{}
	var scenario []byte
	for _, content := range []string{"body a", "body b", "body ab"} {
		p := valid()
		p.Mix = []Variant{{Weight: 1, File: "body.txt", Variant: driver.Variant{Body: []byte(content)}}}
		data, err := JSON(p.Plan, unchanged)
		require.NoError(t, err)
		require.NotContains(t, string(data), content)
		seen[string(data)] = true
		text, err := YAML(p.Plan, unchanged)
		require.NoError(t, err)
		if scenario == nil {
			scenario = text
		}
		require.Equal(t, string(scenario), string(text))
	}
	require.Len(t, seen, 3)
}

// A plan with random arrivals gets a seed, all shards the same, which does not make it another plan.
func TestDrawSeed(t *testing.T) {
	p := valid()
	p.DrawSeed()
	require.Zero(t, p.Seed)
	unchanged := func(s string) string { return s }
	p.Poisson = true
	before := musttest.Get(JSON(p.Plan, unchanged))(t)
	p.DrawSeed()
	require.NotZero(t, p.Seed)
	require.Equal(t, string(before), string(musttest.Get(JSON(p.Plan, unchanged))(t)))
	p.Poisson, p.Mix[0].Law, p.Seed = false, Lognormal, 0
	p.DrawSeed()
	require.NotZero(t, p.Seed)
	p.Seed, p.RunID, p.Shard = 0, 77, Shard{Number: 2, Of: 3}
	p.DrawSeed()
	require.EqualValues(t, 77, p.Seed)
}

func TestValidateMix(t *testing.T) {
	for name, c := range map[string]struct {
		edit       func(*flat)
		text, hint string
	}{
		"good":    {func(p *flat) { p.Mix = mixOf(80, 1024, 15, 65536, 5, 0) }, "", ""},
		"cycle":   {func(p *flat) { p.Mix = mixOf(1, 1, 1_000_000, 1) }, "there are 1000001 messages by their weights, more than 1000000", "give rounder weights"},
		"longest": {func(p *flat) { p.Mix = mixOf(1, 1, 999_999, 1) }, "", ""},
		"many": {func(p *flat) {
			p.Mix = make([]Variant, 1025)
			for i := range p.Mix {
				p.Mix[i] = Variant{Weight: 1}
			}
		}, "there are 1025 messages, more than 1024", ""},
		"large": {func(p *flat) { p.Mix = mixOf(1, 1<<29, 1, 1<<29+1) }, "there are 1073741825 bytes of bodies, more than 1073741824", ""},
		"property": {
			func(p *flat) {
				p.Mix = mixOf(1, 1, 1, 1)
				p.Mix[1].Properties = []driver.Property{{Key: driver.IDProperty}}
			},
			"--property " + driver.IDProperty + "=... is taken: perfmq sets it on each message", "choose another key",
		},
		"capability": {
			func(p *flat) {
				p.Mix = mixOf(1, 1, 1, 1)
				p.Mix[1].Group = "g"
				p.Producer.Factory.Capabilities.Queue.Group = false
			}, "--group: Able 2.0 does not support that", "leave --group out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := valid()
			c.edit(p)
			err := p.Validate()
			if c.text == "" {
				require.NoError(t, err)
				return
			}
			requireMistake(t, err, c.text, c.hint)
		})
	}
}

func TestBytesOfMix(t *testing.T) {
	g := &Group{Role: Producer, Mix: mixOf(80, 1000, 20, 5)}
	require.EqualValues(t, 80*1000+20*5, g.Bytes(100))
	require.EqualValues(t, 1000+5, g.Bytes(1))
	require.Zero(t, g.Bytes(0))
	require.Positive(t, g.Bytes(math.MaxInt64/2000))
	require.EqualValues(t, 300, (&Group{Role: Producer, Mix: mixOf(1, 3)}).Bytes(100))
	require.Equal(t, 1000, g.LargestBody())
	g.Role = Consumer
	require.Zero(t, g.LargestBody())
}

// The bodies of all groups and steps are made, and those of one fill share their memory.
func TestMakeBodies(t *testing.T) {
	file := []byte("file")
	a := &Group{Role: Producer, Mix: []Variant{{Weight: 1, BodySize: 100}, {Weight: 1, BodySize: 100, Fill: Zeros}, {Weight: 1, Variant: driver.Variant{Body: file}}, {Weight: 1, Variant: driver.Variant{Body: []byte{}}}}}
	b := &Group{Role: Producer, Mix: mixOf(1, 100, 1, 250, 1, 0)}
	c := &Group{Role: Consumer}
	p := &Plan{Steps: []Step{{Groups: []*Group{a, c}}, {Groups: []*Group{b}}}}
	p.MakeBodies()
	require.Equal(t, Body(100, Random), b.Mix[0].Body)
	require.Same(t, &b.Mix[0].Body[0], &a.Mix[0].Body[0])
	require.Equal(t, Body(250, Random), b.Mix[1].Body)
	require.Same(t, &b.Mix[1].Body[0], &a.Mix[0].Body[0])
	require.NotNil(t, b.Mix[2].Body)
	require.Empty(t, b.Mix[2].Body)
	require.Equal(t, make([]byte, 100), a.Mix[1].Body)
	require.Equal(t, file, a.Mix[2].Body)
	require.Empty(t, a.Mix[3].Body)
	specs := (&Group{
		Role: Producer, ProducerBroker: &Broker{}, Producers: 1, Destinations: []driver.Destination{{Name: "A"}}, Mix: a.Mix,
	}).ProducerSpecs("")
	require.Len(t, specs[0].Variants, 4)
	require.Equal(t, file, specs[0].Variants[2].Body)
}
