package brokercount

import (
	"context"
	"net/url"
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

func (p perfmq) inspect(ctx context.Context, destinations []driver.Destination) ([]driver.DestinationCount, error) {
	var stats struct {
		Destinations []store.DestinationStats `json:"destinations"`
	}
	if err := p.get(ctx, p.path, url.Values{"limit": {"10000"}}, &stats); err != nil {
		return nil, err
	}
	return each(destinations, func(d driver.Destination) (driver.DestinationCount, error) {
		for i := range stats.Destinations {
			if stats.Destinations[i].Address == d.String() {
				return stats.Destinations[i].Counts(), nil
			}
		}
		return driver.NoDestination(), nil
	})
}
