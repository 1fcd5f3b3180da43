package result

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

// mergeBrokerHosts adds the figures of hosts, by their names.
func mergeBrokerHosts(to, from []BrokerHost) []BrokerHost {
	for _, h := range from {
		o := named(&to, h.Name, func(o *BrokerHost) *string { return &o.Name })
		o.Connections += h.Connections
		o.Producers, o.Consumers = o.Producers+h.Producers, o.Consumers+h.Consumers
		o.Sent, o.Completed = o.Sent+h.Sent, o.Completed+h.Completed
		o.Unconfirmed, o.Received = o.Unconfirmed+h.Unconfirmed, o.Received+h.Received
	}
	return to
}
