package brokercount

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// jolokia reads the beans of a Java program over HTTP (Jolokia reference, "Jolokia Protocol"): those of Artemis or
// ActiveMQ Classic.
type jolokia struct {
	*HTTP
	path, origin string
	artemis      bool // else ActiveMQ Classic
}

type jolokiaRequest struct {
	Type      string   `json:"type"`
	Bean      string   `json:"mbean"`
	Attribute []string `json:"attribute,omitempty"`
}

type jolokiaAnswer struct {
	Status int             `json:"status"`
	Error  string          `json:"error"`
	Value  json.RawMessage `json:"value"`
}

// Names of the beans of brokers.
const (
	artemisBroker  = "org.apache.activemq.artemis:broker=*"
	activemqBroker = "org.apache.activemq:type=Broker,brokerName=*"
)

// findJolokia tries the paths of both brokers' consoles, unless the URL has one. Jolokia may want an origin that it
// knows: that of the URL, or localhost.
func (h *HTTP) findJolokia(ctx context.Context) (console, error) {
	paths := []string{h.base.EscapedPath() + "/"}
	if !strings.Contains(h.base.Path, "jolokia") {
		base := h.base.EscapedPath()
		paths = []string{base + "/console/jolokia/", base + "/api/jolokia/", base + "/jolokia/"}
	}
	var last error
	for _, path := range paths {
		for _, origin := range []string{h.base.Scheme + "://" + h.base.Host, "http://localhost"} {
			j := &jolokia{HTTP: h, path: path, origin: origin}
			answers, err := j.ask(ctx, jolokiaRequest{Type: "search", Bean: artemisBroker}, jolokiaRequest{
				Type: "search",
				Bean: activemqBroker,
			})
			if err == nil {
				return j.of(answers)
			}
			class := driver.ClassOf(err)
			if last == nil || driver.ClassOf(last) == driver.ClassNotFound {
				last = err
			}
			if class == driver.ClassConnect || class == driver.ClassTimeout {
				return nil, err
			}
			if class != driver.ClassAuth {
				break
			}
		}
	}
	return nil, last
}

// of finds out whose beans they are.
func (j *jolokia) of(answers []jolokiaAnswer) (console, error) {
	for i, artemis := range []bool{true, false} {
		var names []string
		if answers[i].Status == http.StatusOK && json.Unmarshal(answers[i].Value, &names) == nil && len(names) > 0 {
			j.artemis = artemis
			return j, nil
		}
	}
	return nil, driver.Errorf(driver.ClassOther, "", hintManagement,
		"Jolokia answers there, but has no broker of ActiveMQ")
}

// ask sends some requests at once. There are as many answers.
func (j *jolokia) ask(ctx context.Context, requests ...jolokiaRequest) ([]jolokiaAnswer, error) {
	var text json.RawMessage
	if err := j.do(ctx, http.MethodPost, j.path, nil, requests, &text, "Origin", j.origin); err != nil {
		return nil, err
	}
	var refusal jolokiaAnswer // of all requests together, such as for the origin
	if json.Unmarshal(text, &refusal) == nil {
		if refusal.Status == http.StatusNotFound {
			return nil, driver.Errorf(driver.ClassNotFound, "", "", "Jolokia does not know what was asked for")
		}
		if err := refusal.failure(); err != nil {
			return nil, err
		}
	}
	var answers []jolokiaAnswer
	if err := json.Unmarshal(text, &answers); err != nil {
		return nil, driver.Errorf(driver.ClassProtocol, "", "", "the answer is not what was asked for: %w", err)
	}
	if len(answers) != len(requests) {
		return nil, driver.Errorf(driver.ClassProtocol, "", "", "it gave %d answers to %d requests", len(answers),
			len(requests))
	}
	return answers, nil
}

func (*jolokia) lag() time.Duration { return 0 }

func (j *jolokia) inspect(ctx context.Context, destinations []driver.Destination) ([]driver.DestinationCount, error) {
	var requests []jolokiaRequest
	for _, d := range destinations {
		if j.artemis {
			requests = append(requests, artemisRequests(d)...)
		} else {
			requests = append(requests, activemqRequest(d))
		}
	}
	answers, err := j.ask(ctx, requests...)
	if err != nil {
		return nil, err
	}
	return each(destinations, func(d driver.Destination) (n driver.DestinationCount, err error) {
		if !j.artemis {
			n, err = activemqCount(d, &answers[0])
			answers = answers[1:]
			return n, err
		}
		n, err = artemisCount(d, answers[:2])
		answers = answers[2:]
		return n, err
	})
}

// artemisRequests ask for the queues of an address, and for the address.
func artemisRequests(d driver.Destination) []jolokiaRequest {
	address, queue, qualified := strings.Cut(d.Name, "::")
	at := artemisBroker + ",component=addresses,address=" + quoted(address)
	routing, name := `"anycast"`, "*"
	if d.Kind == driver.Topic {
		routing = `"multicast"`
	}
	if qualified {
		routing, name = "*", quoted(queue)
	}
	return []jolokiaRequest{
		{
			Type: "read", Bean: at + ",subcomponent=queues,routing-type=" + routing + ",queue=" + name,
			Attribute: []string{"MessageCount", "MessagesAdded", "MessagesAcknowledged", "ConsumerCount"},
		},
		{Type: "read", Bean: at, Attribute: []string{"RoutedMessageCount", "UnRoutedMessageCount"}},
	}
}

func artemisCount(d driver.Destination, answers []jolokiaAnswer) (n driver.DestinationCount, err error) {
	n = driver.NoDestination()
	err = answers[0].read(func(attribute func(string) driver.Count) {
		n.Depth = n.Depth.Plus(attribute("MessageCount"))
		n.Added = n.Added.Plus(attribute("MessagesAdded"))
		n.Acknowledged = n.Acknowledged.Plus(attribute("MessagesAcknowledged"))
		n.Consumers = n.Consumers.Plus(attribute("ConsumerCount"))
	})
	if d.Kind != driver.Topic || strings.Contains(d.Name, "::") || err != nil {
		return n, err
	}
	n.Added, n.Acknowledged = driver.Counted(0), driver.Count{} // subscriptions take their counters with them
	err = answers[1].read(func(attribute func(string) driver.Count) {
		n.Added = n.Added.Plus(attribute("RoutedMessageCount")).Plus(attribute("UnRoutedMessageCount"))
	})
	return n, err
}

func activemqRequest(d driver.Destination) jolokiaRequest {
	kind := "Queue"
	if d.Kind == driver.Topic {
		kind = "Topic"
	}
	// As the broker names them (JMXSupport.encodeObjectNamePart).
	name := strings.NewReplacer(":", "_", ",", "_", "'", "_", `"`, "_", "?", "&qe;", "=", "&amp;", "*",
		"&ast;").Replace(d.Name)
	return jolokiaRequest{
		Type: "read", Bean: activemqBroker + ",destinationType=" + kind + ",destinationName=" + name,
		Attribute: []string{"QueueSize", "EnqueueCount", "DequeueCount", "ConsumerCount"},
	}
}

func activemqCount(d driver.Destination, answer *jolokiaAnswer) (n driver.DestinationCount, err error) {
	n = driver.NoDestination()
	err = answer.read(func(attribute func(string) driver.Count) {
		n = driver.DestinationCount{
			Depth: attribute("QueueSize"), Added: attribute("EnqueueCount"), Acknowledged: attribute("DequeueCount"),
			Consumers: attribute("ConsumerCount"),
		}
	})
	if d.Kind == driver.Topic { // these are of subscriptions, which take them with them
		n.Depth, n.Acknowledged = driver.Count{}, driver.Count{}
	}
	return n, err
}

// read calls f for each bean that was found, with its attributes.
func (a *jolokiaAnswer) read(f func(attribute func(string) driver.Count)) error {
	if a.Status == http.StatusNotFound {
		return nil
	}
	if err := a.failure(); err != nil {
		return err
	}
	var beans map[string]map[string]json.RawMessage
	if err := json.Unmarshal(a.Value, &beans); err != nil {
		return driver.Errorf(driver.ClassProtocol, "", "", "the answer is not what was asked for: %w", err)
	}
	for _, attributes := range beans {
		f(func(name string) driver.Count {
			var n uint64
			err := json.Unmarshal(attributes[name], &n)
			return driver.Count{N: n, Known: err == nil}
		})
	}
	return nil
}

// failure returns an error if Jolokia tells one.
func (a *jolokiaAnswer) failure() error {
	const longest = 200
	words := a.Error[:min(longest, len(a.Error))]
	switch a.Status {
	case http.StatusOK:
		return nil
	case http.StatusForbidden, http.StatusUnauthorized:
		return driver.Errorf(driver.ClassAuth, "", "", "Jolokia says: %s", words)
	default:
		return driver.Errorf(driver.ClassOther, "", "", "Jolokia says %d: %s", a.Status, words)
	}
}

// quoted quotes a value in a name of a bean (ObjectName.quote).
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `*`, `\*`, `?`, `\?`, "\n", `\n`).Replace(text) + `"`
}
