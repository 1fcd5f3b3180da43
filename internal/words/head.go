package words

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/pkg/result"
)

// planned is a group of a plan as far as [Head] describes it, under the names of [result.Head.Plan].
type planned struct {
	Role, Rate                   string
	Broker                       plannedBroker
	ConsumerBroker               plannedBroker `json:"consumer-broker"`
	Destinations                 []string
	Skew                         string `json:"destination-skew"`
	Producers, Consumers, Shared int
	Count                        uint64 `json:"message-count"`
	Size                         any    `json:"message-size"` // a number, or a distribution with the mean Body.Bytes
	Body                         struct{ Bytes int64 }
	Messages                     []any
	Persistent                   bool
	Commit                       int `json:"commit-interval"`
}

type plannedBroker struct{ Name, Protocol, URL string }

// Head describes a run in up to five texts: its brokers, its load, its length, its start and the version of perfmq.
// Unknown facts are missing. Texts of the broker and the user in it are not escaped.
func Head(r *result.Result) []string {
	var plan struct {
		Steps []struct {
			Duration string
			Groups   []planned
		}
	}
	_ = json.Unmarshal(r.Plan, &plan) // a plan may lack any of the fields
	var brokers, loads []string
	var limit time.Duration
	limited := true
	for _, s := range plan.Steps {
		d, err := time.ParseDuration(s.Duration)
		limit, limited = limit+d, limited && err == nil
		for _, g := range s.Groups {
			brokers = append(brokers, g.Broker.describe(r, "producers"), g.ConsumerBroker.describe(r, "consumers"))
			loads = append(loads, g.load(len(plan.Steps) == 1))
		}
	}
	load := strings.Join(different(loads...), "")
	if n := len(different(loads...)); n > 1 {
		load = Plural(n, "group")
	}
	if n := len(plan.Steps); n > 1 {
		load = Plural(n, "step") + ", " + load
	}
	took, start, version := "", "", ""
	us := r.End - r.Start
	if limited && limit > 0 {
		us = min(us, limit.Microseconds()) // without the drain
	}
	if us > 0 {
		took = length(float64(us))
	}
	if r.Start > 0 {
		start = time.UnixMicro(r.Start).UTC().Format("2 Jan 2006 15:04 UTC")
	}
	if r.Versions.Perfmq != "" {
		version = "perfmq " + r.Versions.Perfmq
	}
	return different(First(different(brokers...), 2, " and "), load, took, start, version)
}

// different returns the texts that are not empty, each once.
func different(list ...string) (texts []string) {
	for _, text := range list {
		if text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// describe returns the product as the broker reported it, the protocol, and the hosts.
func (b *plannedBroker) describe(r *result.Result, side string) string {
	product := ""
	for _, known := range r.Brokers {
		if known.Name == b.Name && known.Protocol == b.Protocol && (known.Side == "" || known.Side == side) {
			product = cmp.Or(map[string]string{"apache-activemq-artemis": "Artemis"}[known.Product], known.Product)
			product += strings.TrimRight(" "+known.Version, " ")
		}
	}
	titles := map[string]string{"amqp": "AMQP", "stomp": "STOMP", "rocketmq": "RocketMQ"}
	protocol := cmp.Or(titles[b.Protocol], b.Protocol)
	if strings.HasPrefix(product, protocol) {
		protocol = ""
	}
	_, host, _ := strings.Cut(b.URL, "://")
	host, _, _ = strings.Cut(host[strings.LastIndex(host, "@")+1:], "/")
	host, _, _ = strings.Cut(host, "?")
	return strings.Join(different(product, protocol, host), ", ")
}

// load describes the messages and the workers of a group, perhaps with its rate and number of messages.
func (g *planned) load(rated bool) string {
	sends, receives := g.Role != "consumer", g.Role != "producer"
	n, rate, size := max(1, len(g.Destinations)), g.Rate, g.Body.Bytes
	if number, ok := g.Size.(float64); ok {
		size = int64(number)
	}
	if rate != "" && strings.Trim(rate, "0123456789.") == "" {
		rate += " msg/s"
	}
	bytes := strings.NewReplacer("KiB", " KiB", "MiB", " MiB", "GiB", " GiB").Replace(quantity.FormatBytes(size))
	if law, ok := g.Size.(string); ok {
		bytes = law + ", " + bytes + " on average"
	}
	var parts []string
	for _, part := range []struct {
		said bool
		text string
	}{
		{sends && rated, cmp.Or(rate, "as fast as possible")},
		{rated && g.Count > 0, fmt.Sprintf("%d messages", g.Count)},
		{sends && size > 0, bytes},
		{sends && len(g.Messages) > 0, Plural(len(g.Messages), "kind") + " of messages"},
		{sends && g.Persistent, "persistent"},
		{g.Commit > 0, fmt.Sprintf("transactions of %d", g.Commit)},
		{sends && g.Producers > 0, Plural(n*g.Producers, "producer")},
		{receives && g.Consumers > 0, Plural(n*g.Consumers*max(1, g.Shared), "consumer")},
		{n > 1, strings.TrimSpace(Plural(n, "destination") + " " + g.Skew)},
	} {
		if part.said {
			parts = append(parts, part.text)
		}
	}
	return strings.Join(parts, ", ")
}
