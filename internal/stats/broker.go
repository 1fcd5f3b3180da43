package stats

// Broker is what a broker of the run said of itself.
type Broker struct {
	Name     string // in the scenario; empty for a command line
	Side     string // "producers" or "consumers" if these have brokers of their own, else empty
	Protocol string // over which it was told
	Product  string
	Version  string // empty if the broker did not tell it
}
