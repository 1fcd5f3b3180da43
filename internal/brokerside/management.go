package brokerside

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// maxAnswer is the largest answer of a management, in bytes.
	maxAnswer = 4 << 20
	// rabbitLag is the age of RabbitMQ's counters at most: channels report theirs each 5 s (collect_statistics_interval),
	// and the plugin looks at them at the same interval.
	rabbitLag = 11 * time.Second

	hintManagement = "give the URL of Jolokia (http://HOST:8161) or RabbitMQ's management (http://HOST:15672)"
)

// Management is where a broker is managed over HTTP.
type Management struct {
	// URL is http or https, with or without user and password, and with or without a path: "http://localhost:8161",
	// "http://localhost:8161/console/jolokia", "http://localhost:15672". ?vhost=NAME names RabbitMQ's virtual host;
	// default "/".
	URL string
	// User and Password are used for a URL without a login.
	User, Password string
	TLS            driver.TLS
}

// inspect asks a kind of management for counters.
type inspect func(context.Context, []driver.Destination) ([]driver.DestinationCount, error)

// Inspector asks a broker for its counters over HTTP. It detects the broker itself: Artemis or ActiveMQ Classic by
// Jolokia, RabbitMQ by its management plugin. It is a [driver.Inspector], safe for concurrent use.
type Inspector struct {
	client *client
	vhost  string

	mu      sync.Mutex                  // held while the broker is asked
	inspect inspect                     // nil until the broker is known
	asked   map[driver.Destination]bool // queues of RabbitMQ
	lags    atomic.Bool
}

// Open returns an inspector. It does not connect yet.
func (m *Management) Open() (*Inspector, error) {
	client, err := newClient(m.URL, m.User, m.Password, m.TLS, maxAnswer)
	if err != nil {
		return nil, err
	}
	vhost := cmp.Or(client.url.Query().Get("vhost"), "/")
	client.url.RawQuery, client.url.Path = "", strings.TrimRight(client.url.Path, "/")
	return &Inspector{client: client, vhost: vhost, asked: map[driver.Destination]bool{}}, nil
}

// Lag returns the age that counters may have.
func (h *Inspector) Lag() time.Duration {
	if h.lags.Load() {
		return rabbitLag
	}
	return 0
}

// Close closes the connections.
func (h *Inspector) Close() { h.client.close() }

// Inspect implements [driver.Inspector].
func (h *Inspector) Inspect(ctx context.Context, list []driver.Destination) ([]driver.DestinationCount, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var counts []driver.DestinationCount
	err := h.detect(ctx)
	if err == nil {
		counts, err = h.inspect(ctx, list)
	}
	if err != nil {
		return nil, fmt.Errorf("ask the broker's management at %s: %w", h.client.name(), err)
	}
	return counts, nil
}

// detect determines which management answers.
func (h *Inspector) detect(ctx context.Context) (err error) {
	if h.inspect == nil {
		h.inspect, err = try(ctx, h.findRabbitMQ, h.findJolokia)
	}
	if otherPage(err) {
		err = driver.Errorf(driver.ClassNotFound, "", hintManagement,
			"neither Jolokia nor RabbitMQ's management answers there")
	}
	return err
}

// try finds the first management that answers as one of list expects. Its error is a refused login, or else any other
// refusal, or else another page.
func try(ctx context.Context, list ...func(context.Context) (inspect, error)) (_ inspect, why error) {
	for _, find := range list {
		found, err := find(ctx)
		switch class := driver.ClassOf(err); {
		case err == nil, class == driver.ClassConnect, class == driver.ClassConnectionLost,
			class == driver.ClassTimeout:
			return found, err
		case why == nil, class == driver.ClassAuth, otherPage(why) && !otherPage(err):
			why = err
		}
	}
	return nil, why
}

// otherPage reports whether a server answered with another page, or with no page.
func otherPage(err error) bool {
	class := driver.ClassOf(err)
	return err != nil && (class == driver.ClassNotFound || class == driver.ClassProtocol)
}

// do sends a request and decodes the answer, which is JSON.
func (h *Inspector) do(ctx context.Context, method, path string, body []byte, out any, headers ...string) error {
	text, err := h.client.fetch(ctx, method, h.client.url.Scheme+"://"+h.client.url.Host+path, body,
		append(headers, "Content-Type", "application/json")...)
	if err != nil {
		return err
	}
	return decode(text, out)
}

// decode decodes an answer, which is JSON.
func decode(text []byte, out any) error {
	if err := json.Unmarshal(text, out); err != nil {
		return driver.Errorf(driver.ClassProtocol, "", "", "the answer is not what was asked for: %w", err)
	}
	return nil
}

// path returns a path below the URL's.
func (h *Inspector) path(parts ...string) string {
	path := h.client.url.EscapedPath()
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// each asks for destinations one by one.
func each(
	destinations []driver.Destination, ask func(driver.Destination) (driver.DestinationCount, error),
) ([]driver.DestinationCount, error) {
	list := make([]driver.DestinationCount, 0, len(destinations))
	for _, d := range destinations {
		n, err := ask(d)
		if driver.ClassOf(err) == driver.ClassNotFound {
			n, err = driver.NoDestination(), nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// findRabbitMQ looks for RabbitMQ's management plugin (its HTTP API: /api/overview and /api/queues/VHOST/NAME).
func (h *Inspector) findRabbitMQ(ctx context.Context) (inspect, error) {
	var overview struct {
		Version string `json:"rabbitmq_version"`
	}
	if err := h.do(ctx, http.MethodGet, h.path("api", "overview"), nil, &overview); err != nil {
		return nil, err
	}
	if overview.Version == "" {
		return nil, driver.Errorf(driver.ClassNotFound, "", "", "another server")
	}
	h.lags.Store(true)
	return func(ctx context.Context, list []driver.Destination) ([]driver.DestinationCount, error) {
		return each(list, func(d driver.Destination) (driver.DestinationCount, error) { return h.askRabbitMQ(ctx, d) })
	}, nil
}

// askRabbitMQ asks for a queue: a topic exchange counts all topics together. A queue without counted messages has no
// statistics, nor has one that gets them over AMQP 1.0 in RabbitMQ 4, which does not count those by queue. At the first
// question this is 0; later the counts are unknown.
func (h *Inspector) askRabbitMQ(ctx context.Context, d driver.Destination) (n driver.DestinationCount, err error) {
	name := strings.TrimPrefix(d.Name, "/amq/queue/")
	name = strings.TrimPrefix(name, "/queues/")
	if d.Kind == driver.Topic || strings.HasPrefix(name, "/") {
		return n, nil
	}
	var q struct {
		Messages  uint64 `json:"messages"`
		Consumers uint64 `json:"consumers"`
		Stats     *struct {
			Publish      uint64 `json:"publish"`
			Ack          uint64 `json:"ack"`
			DeliverNoAck uint64 `json:"deliver_no_ack"`
			GetNoAck     uint64 `json:"get_no_ack"`
		} `json:"message_stats"`
	}
	first := !h.asked[d]
	h.asked[d] = true
	if err = h.do(ctx, http.MethodGet, h.path("api", "queues", h.vhost, name), nil, &q); err != nil {
		return n, err
	}
	n.Depth, n.Consumers = driver.Counted(q.Messages), driver.Counted(q.Consumers)
	switch s := q.Stats; {
	case s != nil:
		n.Added, n.Acknowledged = driver.Counted(s.Publish), driver.Counted(s.Ack+s.DeliverNoAck+s.GetNoAck)
	case first:
		n.Added, n.Acknowledged = driver.Counted(0), driver.Counted(0)
	}
	return n, nil
}

// Names of the beans of brokers.
const (
	artemisBroker  = "org.apache.activemq.artemis:broker=*"
	activemqBroker = "org.apache.activemq:type=Broker,brokerName=*"
)

// jolokia reads the beans of a Java program over HTTP (Jolokia reference, "Jolokia Protocol").
type jolokia struct {
	*Inspector
	path, origin string
}

// jolokiaRequest reads attributes of beans, or searches beans.
type jolokiaRequest struct {
	Type      string   `json:"type"` // read or search
	Bean      string   `json:"mbean"`
	Attribute []string `json:"attribute,omitempty"`
}

type jolokiaAnswer struct {
	Status int             `json:"status"`
	Error  string          `json:"error"`
	Value  json.RawMessage `json:"value"`
}

// findJolokia tries the paths of both brokers' consoles, unless the URL has one. Jolokia may demand a known origin: the
// URL's, or localhost.
func (h *Inspector) findJolokia(ctx context.Context) (inspect, error) {
	base := h.client.url.EscapedPath()
	paths := []string{base + "/"}
	if !strings.Contains(h.client.url.Path, "jolokia") {
		paths = []string{base + "/console/jolokia/", base + "/api/jolokia/", base + "/jolokia/"}
	}
	var tries []func(context.Context) (inspect, error)
	for _, path := range paths {
		for _, origin := range []string{h.client.url.Scheme + "://" + h.client.url.Host, "http://localhost"} {
			tries = append(tries, (&jolokia{h, path, origin}).detect)
		}
	}
	return try(ctx, tries...)
}

// detect determines the broker from its beans.
func (j *jolokia) detect(ctx context.Context) (inspect, error) {
	for _, p := range []struct {
		bean     string
		requests func(driver.Destination) []jolokiaRequest
		count    func(driver.Destination, []jolokiaAnswer) (driver.DestinationCount, error)
	}{
		{artemisBroker, artemisRequests, artemisCount},
		{activemqBroker, classicRequest, classicCount},
	} {
		found, err := j.ask(ctx, []jolokiaRequest{{Type: "search", Bean: p.bean}})
		if err != nil {
			return nil, err
		}
		var names []string
		if found[0].Status == http.StatusOK && json.Unmarshal(found[0].Value, &names) == nil && len(names) > 0 {
			return func(ctx context.Context, list []driver.Destination) ([]driver.DestinationCount, error) {
				var requests []jolokiaRequest
				for _, d := range list {
					requests = append(requests, p.requests(d)...)
				}
				answers, err := j.ask(ctx, requests)
				if err != nil {
					return nil, err
				}
				return each(list, func(d driver.Destination) (driver.DestinationCount, error) {
					own := answers[:len(p.requests(d))]
					answers = answers[len(own):]
					return p.count(d, own)
				})
			}, nil
		}
	}
	return nil, driver.Errorf(driver.ClassOther, "", hintManagement, "Jolokia answers there, but has no ActiveMQ broker")
}

// ask sends requests together and returns their answers in the same order.
func (j *jolokia) ask(ctx context.Context, requests []jolokiaRequest) (answers []jolokiaAnswer, err error) {
	body, err := json.Marshal(requests)
	if err != nil {
		return nil, err
	}
	var text json.RawMessage
	if err := j.do(ctx, http.MethodPost, j.path, body, &text, "Origin", j.origin); err != nil {
		return nil, err
	}
	var refusal jolokiaAnswer // of all requests together, such as for the origin
	if json.Unmarshal(text, &refusal) == nil {
		if err := refusal.failure(); err != nil {
			return nil, err
		}
	}
	if err := decode(text, &answers); err != nil {
		return nil, err
	}
	if len(answers) != len(requests) {
		return nil, driver.Errorf(driver.ClassProtocol, "", "", "it gave %d answers to %d requests", len(answers),
			len(requests))
	}
	return answers, nil
}

// artemisRequests ask for the queues of an address, and for the address: the subscriptions of a topic take their
// counters with them.
func artemisRequests(d driver.Destination) []jolokiaRequest {
	address, queue, qualified := strings.Cut(d.Name, "::")
	bean := artemisBroker + ",component=addresses,address=" + QuoteBean(address)
	routing, name := `"anycast"`, "*"
	if d.Kind == driver.Topic {
		routing = `"multicast"`
	}
	if qualified {
		routing, name = "*", QuoteBean(queue)
	}
	return []jolokiaRequest{{
		Type: "read", Bean: bean + ",subcomponent=queues,routing-type=" + routing + ",queue=" + name,
		Attribute: []string{"MessageCount", "MessagesAdded", "MessagesAcknowledged", "ConsumerCount"},
	}, {Type: "read", Bean: bean, Attribute: []string{"RoutedMessageCount", "UnRoutedMessageCount"}}}
}

func artemisCount(d driver.Destination, answers []jolokiaAnswer) (driver.DestinationCount, error) {
	n, err := answers[0].count("MessageCount", "MessagesAdded", "MessagesAcknowledged", "ConsumerCount")
	if d.Kind != driver.Topic || strings.Contains(d.Name, "::") || err != nil {
		return n, err
	}
	sums, err := answers[1].sum("RoutedMessageCount", "UnRoutedMessageCount")
	if err == nil {
		n.Added, n.Acknowledged = sums[0].Plus(sums[1]), driver.Count{}
	}
	return n, err
}

func classicRequest(d driver.Destination) []jolokiaRequest {
	kind := "Queue"
	if d.Kind == driver.Topic {
		kind = "Topic"
	}
	// As the broker names destinations (JMXSupport.encodeObjectNamePart).
	name := strings.NewReplacer(":", "_", ",", "_", "'", "_", `"`, "_", "?", "&qe;", "=", "&amp;", "*", "&ast;").
		Replace(d.Name)
	return []jolokiaRequest{{
		Type: "read", Bean: activemqBroker + ",destinationType=" + kind + ",destinationName=" + name,
		Attribute: []string{"QueueSize", "EnqueueCount", "DequeueCount", "ConsumerCount"},
	}}
}

func classicCount(d driver.Destination, answers []jolokiaAnswer) (driver.DestinationCount, error) {
	n, err := answers[0].count("QueueSize", "EnqueueCount", "DequeueCount", "ConsumerCount")
	if d.Kind == driver.Topic { // these are of subscriptions, which take them with them
		n.Depth, n.Acknowledged = driver.Count{}, driver.Count{}
	}
	return n, err
}

// count returns the counters of all beans that were found, by the names of their attributes.
func (a *jolokiaAnswer) count(depth, added, acknowledged, consumers string) (driver.DestinationCount, error) {
	s, err := a.sum(depth, added, acknowledged, consumers)
	return driver.DestinationCount{Depth: s[0], Added: s[1], Acknowledged: s[2], Consumers: s[3]}, err
}

// sum adds up attributes over the beans that were found.
func (a *jolokiaAnswer) sum(names ...string) ([]driver.Count, error) {
	sums := make([]driver.Count, len(names))
	for i := range sums {
		sums[i].Known = true
	}
	if a.Status == http.StatusNotFound {
		return sums, nil
	}
	if err := a.failure(); err != nil {
		return sums, err
	}
	var beans map[string]map[string]json.RawMessage
	if err := decode(a.Value, &beans); err != nil {
		return sums, err
	}
	for _, attributes := range beans {
		for i, name := range names {
			var n uint64
			err := json.Unmarshal(attributes[name], &n)
			sums[i] = sums[i].Plus(driver.Count{N: n, Known: err == nil})
		}
	}
	return sums, nil
}

// failure returns the error of an answer.
func (a *jolokiaAnswer) failure() error {
	if a.Status == http.StatusOK {
		return nil
	}
	return driver.Errorf(statusClass(a.Status), "", "", "Jolokia answers %d: %.200s", a.Status, a.Error)
}

// QuoteBean quotes a value in a name of a bean (ObjectName.quote).
func QuoteBean(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `*`, `\*`, `?`, `\?`, "\n", `\n`).Replace(text) + `"`
}
