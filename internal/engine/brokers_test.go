package engine_test

import (
	"context"
	"testing"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// named is a driver of a broker with a name.
type named struct {
	driver.Driver
	product, version string
}

func (n named) Broker() (product, version string) { return n.product, n.version }

// naming lets the drivers of a factory tell that name; nameless ones tell nothing.
func naming(f driver.Factory, product, version string) driver.Factory {
	open := f.Open
	f.Open = func(ctx context.Context, o driver.OpenOptions) (driver.Driver, error) {
		d, err := open(ctx, o)
		if product == "" {
			return struct{ driver.Driver }{d}, err
		}
		return named{d, product, version}, err
	}
	return f
}

func TestBrokers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		edit func(*flat)
		want []result.Broker
	}{
		{"one", nil, []result.Broker{{Protocol: "mem", Product: "A", Version: "1"}}},
		{"none that says so", func(p *flat) {
			p.Producer.Factory = naming(p.Producer.Factory, "", "")
			p.Consumer.Factory = p.Producer.Factory
		}, nil},
		{"one of each side", func(p *flat) {
			p.Consumer.Factory, p.Consumer.URL = naming(p.Consumer.Factory, "B", "2"), "mem://other"
		}, []result.Broker{{Protocol: "mem", Product: "A", Version: "1", Side: "producers"}, {Protocol: "mem", Product: "B", Version: "2", Side: "consumers"}}},
		{
			"of a scenario", func(p *flat) { p.Producer.Name, p.Consumer.Name = "left", "left" },
			[]result.Broker{{Name: "left", Protocol: "mem", Product: "A", Version: "1"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, _ := run(t, newPlan(naming(broker(t, nil).Factory(), "A", "1"), func(p *flat) {
				p.Count = 10
			}, test.edit), nil)
			require.True(t, s.Outcome.Success, "%q", s.Problems())
			require.Equal(t, test.want, s.Brokers)
		})
	}
}
