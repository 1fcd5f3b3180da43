package result

import (
	"bytes"
	"encoding/json"
)

// Kind is a kind of latency.
type Kind int

// The kinds of latencies, in the order of latencies.hdr.
const (
	Delay Kind = iota
	Ack
	Response
	Transfer
	B2C
	S2C
	Commit
	Lateness
	Connect
	TLS
	Login
	Attach
	Open
	Close
	RoundTrip
	Service
	NumKinds int = iota
)

// KindInfo is what outputs say of a kind of latency.
type KindInfo struct {
	Kind Kind
	Role Role
	// Always: each run of the role measures it, so that outputs have it without values, and that of each group.
	Always bool
	// Stage: it is of the openings and closings of workers, not of messages, and belongs to no phase. Intervals without
	// a value, and tables of the latencies of messages, leave it out.
	Stage bool
	// LeftOut counts its values below zero, which are in no distribution; 0 for none.
	LeftOut Counter
	// Name is the name in the JSON of a result, in thresholds and comparisons; Tag that in HDR logs; Label that in the
	// JSON and on the console of `artemis perf`, which has the first three kinds only.
	Name, Tag, Label string
	Artemis          bool
	// Metric is the histogram's name for Prometheus without "perfmq_". Help is also in the schema of results.
	Metric, Help string
}

// Kinds returns all kinds of latencies in the order of latencies.hdr. A new kind is a row here, and the place where it
// is recorded.
func Kinds() []KindInfo { return kinds }

// KindNames returns the names of the kinds, in their order.
func KindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

//nolint:gochecknoglobals // a table that never changes
var kinds = []KindInfo{
	{
		Delay, ProducerRole | Rated, true, false, 0, "delay", "delay-send", "delay send time", true,
		"send_delay_seconds", "From the intended to the actual send.",
	},
	{
		Ack, ProducerRole, true, false, 0, "ack", "send", "send time", true, "send_ack_seconds",
		"From the actual send to the broker's answer.",
	},
	{
		Response, ProducerRole | Rated, true, false, 0, "response", "response", "response time", false,
		"response_seconds", "From the intended send to the broker's answer (only with a rate).",
	},
	{
		Transfer, ConsumerRole, true, false, NegativeTransfers, "transfer", "transfer", "transfer time", true,
		"transfer_seconds", "From the actual send to the delivery to a consumer.",
	},
	{
		B2C, ConsumerRole, false, false, NegativeAges, "b2c", "b2c", "b2c time", false, "born_to_consumer_seconds",
		"From the creation of the message, as the protocol reports it, to its delivery.",
	},
	{
		S2C, ConsumerRole, false, false, NegativeAges, "s2c", "s2c", "s2c time", false, "stored_to_consumer_seconds",
		"From the storing of the message, as the broker reports it, to its delivery.",
	},
	{
		Commit, Transacted, false, false, 0, "commit", "commit", "commit time", false, "commit_seconds",
		"From the request to commit a transaction to its confirmation.",
	},
	{
		Lateness, ConsumerRole | Delaying, false, false, Early, "lateness", "lateness", "lateness", false,
		"lateness_seconds", "From the end of the delivery delay to the delivery; without earlier deliveries.",
	},
	stage(Connect, "connect", "Of a TCP connection, with the resolution of the host's name."),
	stage(TLS, "tls", "Of a TLS handshake."),
	stage(Login, "login", "From the connected, or encrypted, socket to the broker's acceptance."),
	stage(Attach, "attach", "Of the link, the subscription, or the route to the destination."),
	stage(Open, "open", "From the moment at which a connection was due, or its opening began, until it was usable."),
	stage(Close, "close", "From the beginning of closing until the broker confirmed it."),
	{
		RoundTrip, ProducerRole | Requesting, true, false, 0, "round-trip", "round-trip", "round trip", false,
		"round_trip_seconds", "From the intended send of a request to its reply.",
	},
	{
		Service, ConsumerRole | Responding, true, false, 0, "service", "service", "service time", false,
		"service_seconds", "From the delivery of a request to the sending of its reply.",
	},
}

func stage(kind Kind, name, help string) KindInfo {
	return KindInfo{
		Kind: kind, Stage: true, Name: name, Tag: name, Label: name + " time", Metric: name + "_seconds", Help: help,
	}
}

// Latencies are distributions of latencies. A latency that the run does not measure is missing.
type Latencies [NumKinds]*Latency

// MarshalJSON writes an object with a key for each latency.
func (l Latencies) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, k := range kinds {
		if l[k.Kind] == nil {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + k.Name + `":`)
		text, err := json.Marshal(l[k.Kind])
		if err != nil {
			return nil, err
		}
		b.Write(text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads such an object. Unknown keys are ignored.
func (l *Latencies) UnmarshalJSON(text []byte) error {
	var read map[string]*Latency
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	for _, k := range kinds {
		l[k.Kind] = read[k.Name]
	}
	return nil
}

// Get returns the latency of that name; nil if it was not measured or there is no such name.
func (l *Latencies) Get(name string) *Latency {
	for _, k := range kinds {
		if k.Name == name {
			return l[k.Kind]
		}
	}
	return nil
}
