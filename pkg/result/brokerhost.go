package result

import "slices"

// BrokerHost holds the figures of one host of the brokers' URLs for the time that workers were connected to it, warm-up
// included.
type BrokerHost struct {
	// Name is the host and its port, as the URL names them.
	Name string `json:"name"`
	// Connections is the number of connections that were open to it at some time; a shared connection counts once.
	Connections int `json:"connections"`
	// Producers and Consumers are the workers that were connected to it; a worker that moved counts at each host.
	Producers int `json:"producers"`
	Consumers int `json:"consumers"`
	// Sent are the messages that were sent to it.
	Sent uint64 `json:"sent"`
	// Completed is the number of sent messages that it accepted.
	Completed uint64 `json:"completed"`
	// Unconfirmed is the number of sent messages that ended without an answer.
	Unconfirmed uint64 `json:"unconfirmed,omitempty"`
	// Received are the messages that consumers received from it.
	Received uint64 `json:"received"`
}

// BrokerHostSpread tells how evenly the messages are spread over the hosts.
type BrokerHostSpread struct {
	// Role is "producers", for messages completed, or "consumers", for messages received.
	Role string `json:"role"`
	// Hosts is the number of hosts.
	Hosts int `json:"hosts"`
	// Minimum, Median and Maximum are messages of one host.
	Minimum uint64 `json:"minimum"`
	Median  uint64 `json:"median"`
	Maximum uint64 `json:"maximum"`
}

// SpreadOverHosts returns how evenly messages are spread over hosts, for each role that has workers at a host.
func SpreadOverHosts(hosts []BrokerHost) (list []BrokerHostSpread) {
	for _, role := range []struct {
		name    string
		workers func(*BrokerHost) int
		count   func(*BrokerHost) uint64
	}{
		{"producers", func(h *BrokerHost) int { return h.Producers }, func(h *BrokerHost) uint64 { return h.Completed }},
		{"consumers", func(h *BrokerHost) int { return h.Consumers }, func(h *BrokerHost) uint64 { return h.Received }},
	} {
		workers := 0
		var n []uint64
		for i := range hosts {
			workers += role.workers(&hosts[i])
			n = append(n, role.count(&hosts[i]))
		}
		if workers == 0 {
			continue
		}
		slices.Sort(n)
		s := BrokerHostSpread{Role: role.name, Hosts: len(n), Minimum: n[0], Median: n[len(n)/2], Maximum: n[len(n)-1]}
		if len(n)%2 == 0 {
			below := n[len(n)/2-1]
			s.Median = below + (s.Median-below)/2
		}
		list = append(list, s)
	}
	return list
}

// mergeBrokerHosts adds the figures of hosts, by their names.
func mergeBrokerHosts(to, from []BrokerHost) []BrokerHost {
	for _, h := range from {
		i := slices.IndexFunc(to, func(o BrokerHost) bool { return o.Name == h.Name })
		if i < 0 {
			to = append(to, h)
			continue
		}
		o := &to[i]
		o.Connections += h.Connections
		o.Producers, o.Consumers = o.Producers+h.Producers, o.Consumers+h.Consumers
		o.Sent, o.Completed = o.Sent+h.Sent, o.Completed+h.Completed
		o.Unconfirmed, o.Received = o.Unconfirmed+h.Unconfirmed, o.Received+h.Received
	}
	return to
}
