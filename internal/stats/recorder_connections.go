package stats

import (
	"errors"
	"syscall"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// ConnectionRecorder counts and times the connections of a group that opens them as its load, and their few messages.
// The connections share it: each of them records little. The phase of a connection is the one in which it was due. It
// is safe for concurrent use.
type ConnectionRecorder struct {
	failures
	group string
}

// NewConnectionRecorder returns an empty recorder of a group.
func NewConnectionRecorder(group string) *ConnectionRecorder {
	return &ConnectionRecorder{group: group}
}

// with calls f with the ledger of a phase.
func (r *ConnectionRecorder) with(phase Phase, f func(*ledger)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.part[phase])
}

// Timed counts a connection or message, with its latency.
func (r *ConnectionRecorder) Timed(phase Phase, counter result.Counter, kind result.Kind, took time.Duration) {
	r.with(phase, func(p *ledger) {
		p.n[counter]++
		p.record(kind, max(0, took))
	})
}

// NotOpened counts a connection that did not become usable.
func (r *ConnectionRecorder) NotOpened(phase Phase, why error) {
	counter, class := result.OpenRefused, driver.ClassOf(why)
	switch {
	case Unmade(why), class == driver.ClassUnsupported: // the latter for a --local-address of another machine
		counter = result.OpenUnmade
	case class == driver.ClassTimeout:
		counter = result.OpenTimedOut
	}
	r.failed(phase, counter, class, why)
}

// KindOf returns the latency of a stage.
func KindOf(s driver.Stage) result.Kind {
	return [...]result.Kind{result.Connect, result.TLS, result.Login, result.Attach, result.Close}[s]
}

// Received counts a message that a connection received, with the time since it was sent.
func (r *ConnectionRecorder) Received(phase Phase, d *driver.Delivery, transfer time.Duration) {
	r.with(phase, func(p *ledger) {
		p.n[result.Received]++
		p.n[result.ReceivedBytes] += uint64(len(d.Body))
		if d.Redelivered {
			p.n[result.Redelivered]++
		}
		switch {
		case !d.HasTime:
			p.n[result.Unstamped]++
		case transfer < -stampAhead:
			p.n[result.NegativeTransfers]++
		default:
			p.record(result.Transfer, max(0, transfer))
		}
	})
}

// Unmade reports whether perfmq's machine lacked a port, a file or memory for a connection.
func Unmade(why error) bool {
	for _, lack := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.EADDRINUSE, syscall.ENOBUFS, syscall.ENOMEM,
	} {
		if errors.Is(why, lack) {
			return true
		}
	}
	return false
}

// Lost counts a connection that the broker or the network has ended.
func (r *ConnectionRecorder) Lost(phase Phase, why error) {
	r.failed(phase, result.ConnectionsLost, driver.ClassOf(why), why)
}

func (r *ConnectionRecorder) failed(phase Phase, counter result.Counter, class driver.Class, why error) {
	r.with(phase, func(p *ledger) {
		p.n[counter]++
		r.fail(p, driver.NumStates, class, why)
	})
}

// Ended counts the end of a message that a connection sent, of that many bytes, and its answer's latency.
func (r *ConnectionRecorder) Ended(phase Phase, o *driver.Outcome, bytes int, took time.Duration) {
	r.with(phase, func(p *ledger) {
		p.n[counterOf[o.State]]++
		if o.State == driver.Accepted {
			p.n[result.CompletedBytes] += uint64(bytes) //nolint:gosec // not negative
			p.record(result.Ack, took)
			return
		}
		r.fail(p, o.State, o.Class, o.Err)
	})
}
