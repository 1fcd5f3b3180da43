package brokercount

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/pkg/driver"
)

// perfmq is the control of a perfmq broker.
type perfmq struct {
	*HTTP
	path string
}

// findPerfmq takes the address as the broker prints it, with the path of its counts, too.
func (h *HTTP) findPerfmq(ctx context.Context) (console, error) {
	p := perfmq{h, strings.TrimSuffix(h.base.EscapedPath(), "/stats") + "/stats"}
	var stats struct {
		Destinations *[]store.DestinationStats `json:"destinations"`
	}
	if err := h.get(ctx, p.path, url.Values{"limit": {"0"}}, &stats); err != nil {
		return nil, err
	}
	if stats.Destinations == nil {
		return nil, driver.Errorf(driver.ClassNotFound, "", "", "this is no perfmq broker")
	}
	return p, nil
}

func (perfmq) lag() time.Duration { return 0 }

// mostDestinations is how many destinations are asked for: those in the order of their names.
const mostDestinations = 10_000

func (p perfmq) inspect(ctx context.Context, destinations []driver.Destination) ([]driver.DestinationCount, error) {
	var stats struct {
		Destinations []store.DestinationStats `json:"destinations"`
	}
	limit := url.Values{"limit": {strconv.Itoa(mostDestinations)}}
	if err := p.get(ctx, p.path, limit, &stats); err != nil {
		return nil, err
	}
	return each(destinations, func(d driver.Destination) (driver.DestinationCount, error) {
		address := d.String()
		if p.logs {
			address = store.Address{Kind: store.KindTopic, Name: d.Name}.String()
		}
		for i := range stats.Destinations {
			if stats.Destinations[i].Address == address {
				n := stats.Destinations[i].Counts()
				if p.logs { // the other counts are of subscriptions over other protocols
					n = driver.DestinationCount{Added: n.Added}
				}
				return n, nil
			}
		}
		if len(stats.Destinations) == mostDestinations { // it may be among the others
			return driver.DestinationCount{}, nil
		}
		n := driver.NoDestination()
		if p.logs {
			n = driver.DestinationCount{Added: n.Added}
		}
		return n, nil
	})
}
