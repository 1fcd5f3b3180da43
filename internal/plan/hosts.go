package plan

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// HostOrder is the order in which a connection tries the hosts of its URL.
type HostOrder string

// The orders.
const (
	InOrder  HostOrder = "order"  // as the URL lists them
	Spread   HostOrder = "spread" // connection i begins with host i mod n, the others follow in rotation
	AtRandom HostOrder = "random" // shuffled for each connection: of a failover URL
)

// Spreads reports whether connections of the group to a broker of several hosts are not all meant for the same one.
func (g *Group) Spreads(b *Broker) bool {
	return (g.Hosts == Spread || g.Hosts == AtRandom) && len(b.Hosts) > 1
}

// HostsOf returns the order in which connection number conn of one side of the group tries the n hosts of its URL, as
// [driver.Connection.Order] has it; nil is the order of the URL.
func (g *Group) HostsOf(conn, n int) []int {
	switch {
	case n < 2:
	case g.Hosts == Spread:
		return Rotation(conn, n)
	case g.Hosts == AtRandom:
		return rand.Perm(n) //nolint:gosec // nothing secret
	}
	return nil
}

// HostsAfter returns the order in which a connection that was lost at a host, by its index, tries the n hosts.
func (g *Group) HostsAfter(lost, n int) []int {
	if g.Hosts == Spread {
		return g.HostsOf(lost+1, n)
	}
	order := g.HostsOf(0, n)
	if g.Backoff.LostLast && n > 1 {
		if order == nil {
			order = Rotation(0, n)
		}
		order = append(slices.DeleteFunc(order, func(i int) bool { return i == lost }), lost)
	}
	return order
}

// Rotation returns the numbers below n, beginning with first mod n.
func Rotation(first, n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = (first + i) % n
	}
	return list
}

// Backoff are the pauses between the attempts to reach a host again at which connections were lost.
type Backoff struct {
	First, Longest time.Duration
	Multiplier     float64 // of each pause, against the one before
	// Attempts is the number of attempts that may fail, each at all hosts; 0 for any number.
	Attempts int
	// LostLast: the host of the lost connection is tried last, also where hosts are tried in order.
	LostLast bool
}

// Probing returns the pauses before lost connections of the group are opened again.
func (g *Group) Probing() Backoff {
	longest := cmp.Or(g.ReconnectDelay, 250*time.Millisecond)
	return cmp.Or(g.Backoff, Backoff{First: min(longest, 100*time.Millisecond), Longest: longest, Multiplier: 2})
}

// Next returns the pause that follows one.
func (b *Backoff) Next(pause time.Duration) time.Duration {
	return time.Duration(min(float64(pause)*b.Multiplier, float64(b.Longest)))
}
