package brokerside

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

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
