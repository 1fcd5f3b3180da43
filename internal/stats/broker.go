package stats

// Broker is the identity that a broker of the run reported.
type Broker struct {
	Name     string // in the scenario; empty for a command line
	Side     string // "producers" or "consumers" if these have brokers of their own, else empty
	Protocol string // over which it was reported
	Product  string
	Version  string // empty if the broker did not report it
}
