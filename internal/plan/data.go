package plan

import (
	"encoding/json"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// JSON returns the plan as data, with all defaults, under the names of the settings; durations, rates and destinations
// are the texts that the settings take. Names of output files, labels and passwords are not in it, so that runs that
// did the same have the same. All texts, which are the user's, are as clean returns them.
func JSON(p *Plan, clean func(string) string) (json.RawMessage, error) {
	d := dataOf(p)
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	return json.Marshal(cleaned(value, clean))
}

// cleaned returns a value of JSON with all texts cleaned, those of keys too.
func cleaned(value any, clean func(string) string) any {
	switch v := value.(type) {
	case string:
		return clean(v)
	case []any:
		for i := range v {
			v[i] = cleaned(v[i], clean)
		}
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, of := range v {
			m[clean(key)] = cleaned(of, clean)
		}
		return m
	}
	return value
}

type planData struct {
	Name          string     `json:"name,omitempty"`
	Threads       int        `json:"threads,omitempty"`
	DrainTimeout  string     `json:"drain-timeout"`
	Stall         string     `json:"stall-threshold,omitempty"`
	WaitForBroker string     `json:"wait-for-broker,omitempty"`
	Verify        bool       `json:"verify"`
	Allow         []string   `json:"allow,omitempty"`
	FailOnForeign bool       `json:"fail-on-foreign,omitempty"`
	Thresholds    []string   `json:"thresholds,omitempty"`
	Steps         []stepData `json:"steps"`
}

type stepData struct {
	Name       string      `json:"name"`
	Duration   string      `json:"duration,omitempty"`
	Warmup     string      `json:"warmup,omitempty"`
	Until      string      `json:"until,omitempty"`
	IdleTime   string      `json:"idle-time,omitempty"`
	Marks      []uint64    `json:"marks,omitempty"`
	Before     []string    `json:"before,omitempty"`
	After      []string    `json:"after,omitempty"`
	Thresholds []string    `json:"thresholds,omitempty"`
	Groups     []groupData `json:"groups"`
}

type groupData struct {
	Name                string            `json:"name,omitempty"`
	Role                Role              `json:"role"`
	Broker              *endpointData     `json:"broker,omitempty"`
	ConsumerBroker      *endpointData     `json:"consumer-broker,omitempty"` // of a client with two
	Destinations        []string          `json:"destinations"`
	ClientID            string            `json:"clientID,omitempty"`
	Hosts               HostOrder         `json:"hosts,omitempty"`
	Reconnect           bool              `json:"reconnect,omitempty"`
	ReconnectTimeout    string            `json:"reconnect-timeout,omitempty"`
	ReconnectDelay      string            `json:"reconnect-delay,omitempty"`
	Producers           int               `json:"producers,omitempty"`
	Connections         int               `json:"shared-connections,omitempty"`
	MaxPending          int               `json:"max-pending,omitempty"`
	SendTimeout         string            `json:"send-timeout,omitempty"`
	InDoubt             string            `json:"in-doubt,omitempty"` // resend, or missing
	Rate                string            `json:"rate,omitempty"`
	Count               uint64            `json:"message-count,omitempty"`
	Body                string            `json:"body,omitempty"`
	Messages            []messageData     `json:"messages,omitempty"`     // instead of body and the like
	MessageType         MessageType       `json:"message-type,omitempty"` // of bytes without it
	Persistent          bool              `json:"persistent,omitempty"`
	TTL                 string            `json:"ttl,omitempty"`
	DeliveryDelay       string            `json:"delivery-delay,omitempty"`
	Priority            *int              `json:"priority,omitempty"`
	Group               string            `json:"group,omitempty"`
	Properties          map[string]string `json:"property,omitempty"`
	CommitInterval      int               `json:"commit-interval,omitempty"`
	Consumers           int               `json:"consumers,omitempty"`
	ConsumerConnections int               `json:"consumer-connections,omitempty"`
	Shared              int               `json:"shared,omitempty"`
	Durable             bool              `json:"durable,omitempty"`
	KeepSubscription    bool              `json:"keep-subscription,omitempty"`
	Selector            string            `json:"selector,omitempty"`
	Credit              int               `json:"credit,omitempty"`
	TransactionSize     int               `json:"tx-size,omitempty"`
	ConsumerWork        string            `json:"consumer-work,omitempty"`
	ConsumerRate        string            `json:"consumer-rate,omitempty"`
	ConsumerFail        string            `json:"consumer-fail,omitempty"`
	ConsumerFailAs      string            `json:"consumer-fail-as,omitempty"`
	MaxMessageSize      int               `json:"max-message-size,omitempty"`
}

type messageData struct {
	Weight     int               `json:"weight"`
	Body       string            `json:"body"`
	Type       MessageType       `json:"message-type,omitempty"`
	Priority   *int              `json:"priority,omitempty"`
	Group      string            `json:"group,omitempty"`
	Properties map[string]string `json:"property,omitempty"`
}

type endpointData struct {
	Name           string            `json:"name,omitempty"`
	Site           string            `json:"site,omitempty"`
	Protocol       string            `json:"protocol"`
	Client         string            `json:"client"`
	URL            string            `json:"url"`
	User           string            `json:"user,omitempty"`
	TLS            string            `json:"tls,omitempty"`
	ConnectTimeout string            `json:"connect-timeout"`
	Options        map[string]string `json:"options,omitempty"`
	Management     string            `json:"management-url,omitempty"`
}

func dataOf(p *Plan) planData {
	d := planData{
		Name: p.Name, Threads: p.Threads, DrainTimeout: p.DrainTimeout.String(), Stall: duration(p.StallThreshold),
		WaitForBroker: duration(p.WaitForBroker), Verify: p.Verify,
		FailOnForeign: p.FailOnForeign,
	}
	for _, a := range []struct {
		allowed bool
		what    string
	}{
		{p.Allow.Lost, "lost"},
		{p.Allow.Duplicates, "duplicates"},
		{p.Allow.Damaged, "damaged"},
		{p.Allow.Disorder, "disorder"},
	} {
		if p.Verify && a.allowed {
			d.Allow = append(d.Allow, a.what)
		}
	}
	for i := range p.Thresholds {
		d.Thresholds = append(d.Thresholds, p.Thresholds[i].String())
	}
	for i := range p.Steps {
		d.Steps = append(d.Steps, stepOf(&p.Steps[i]))
	}
	return d
}

func stepOf(s *Step) stepData {
	d := stepData{
		Name: s.Name, Duration: duration(s.Duration), Warmup: duration(s.Warmup), Before: s.Before,
		After: s.After, Marks: s.Marks,
	}
	switch {
	case s.Drained:
		d.Until = "drained"
	case s.Idle > 0:
		d.Until, d.IdleTime = "idle", s.Idle.String()
	}
	for i := range s.Thresholds {
		d.Thresholds = append(d.Thresholds, s.Thresholds[i].String())
	}
	for _, g := range s.Groups {
		d.Groups = append(d.Groups, groupOf(g))
	}
	return d
}

func groupOf(g *Group) groupData {
	d := groupData{
		Name: g.Name, Role: g.Role, ClientID: g.ClientID, Count: g.Count, Reconnect: g.Reconnect,
		ReconnectTimeout: duration(g.ReconnectTimeout), ReconnectDelay: duration(g.ReconnectDelay),
	}
	if g.Hosts != InOrder {
		d.Hosts = g.Hosts
	}
	for _, dest := range g.Destinations {
		d.Destinations = append(d.Destinations, dest.String())
	}
	endpoints := g.Brokers()
	d.Broker = endpointOf(endpoints[0])
	if len(endpoints) > 1 {
		d.ConsumerBroker = endpointOf(endpoints[1])
	}
	if g.Role.Produces() {
		g.producing(&d)
	}
	if g.Role.Consumes() {
		d.Consumers, d.ConsumerConnections, d.Shared = g.Consumers, g.ConsumerConnections, g.Shared
		d.Durable, d.KeepSubscription, d.Selector, d.Credit = g.Durable, g.KeepSubscription, g.Selector, g.Credit
		d.TransactionSize, d.MaxMessageSize = g.TransactionSize, g.ConsumerBroker.LargestBody()
		if !g.ConsumerWork.IsZero() {
			d.ConsumerWork = g.ConsumerWork.String()
		}
		if !g.ConsumerRate.IsZero() {
			d.ConsumerRate = g.ConsumerRate.String()
		}
		if !g.ConsumerFail.IsZero() {
			d.ConsumerFail, d.ConsumerFailAs = g.ConsumerFail.String(), g.Failing.String()
		}
	}
	return d
}

func (g *Group) producing(d *groupData) {
	d.Producers, d.MaxPending, d.Rate = g.Producers, g.Pending(), g.Rate.String()
	if g.Resend {
		d.InDoubt = "resend"
	}
	if g.SharedConnections {
		d.Connections = g.ProducerConnections
	}
	d.DeliveryDelay, d.SendTimeout = duration(g.Delay), duration(g.SendTimeout)
	d.Persistent, d.TTL, d.CommitInterval = g.Persistent, duration(g.TTL), g.CommitInterval
	if len(g.Mix) == 1 {
		m := messageOf(&g.Mix[0])
		d.Body, d.MessageType, d.Priority, d.Group, d.Properties = m.Body, m.Type, m.Priority, m.Group, m.Properties
		return
	}
	for i := range g.Mix {
		d.Messages = append(d.Messages, messageOf(&g.Mix[i]))
	}
}

func messageOf(v *Variant) messageData {
	d := messageData{Weight: v.Weight, Body: v.BodySource, Group: v.Group}
	if v.Text {
		d.Type = Text
	}
	if v.Priority >= 0 {
		d.Priority = &v.Priority
	}
	for _, p := range v.Properties {
		if d.Properties == nil {
			d.Properties = map[string]string{}
		}
		d.Properties[p.Key] = p.Value
	}
	return d
}

func endpointOf(e *Broker) *endpointData {
	d := &endpointData{
		Name: e.Name, Site: e.Site, Protocol: e.Protocol, Client: e.Client, URL: e.Shown(),
		User:           e.User,
		ConnectTimeout: e.ConnectTimeout.Round(time.Nanosecond).String(), Management: RedactURL(e.Management),
	}
	if e.TLS != (driver.TLS{}) {
		d.TLS = describeTLS(e.TLS)
	}
	for _, o := range driver.Describe(e.Options) {
		if d.Options == nil {
			d.Options = map[string]string{}
		}
		d.Options[o.Name] = o.Default
	}
	return d
}
