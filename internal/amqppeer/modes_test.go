//go:build unix

package amqppeer

import (
	"fmt"
	"testing"

	"github.com/perfmq/perfmq/pkg/driver"
)

// mixed are attach frames without settle modes, which means mixed and first (AMQP 1.0, Transport, section 2.7.3): those
// of Qpid Proton's example broker and of rhea.
func mixed() [][]byte { return [][]byte{null(), null()} }

// deliver sends n messages when a link that is to receive gives its first credit, and takes acceptances.
func deliver(n int, settled bool, took chan<- uint32) func(*conn, *frame) bool {
	sent := false
	return func(k *conn, f *frame) bool {
		switch {
		case f.code == opFlow && !isNull(f.fields[4]) && !sent: // senders have no reason for one
			sent = true
			for i := range n {
				k.transfer(f.channel, numberOf(f.fields[4]), uint32(i), settled, data("m")) //nolint:gosec // small
			}
			return true
		case f.code == opDisposition && truth(f.fields[0]):
			last := f.fields[2]
			if isNull(last) {
				last = f.fields[1]
			}
			for id := numberOf(f.fields[1]); id <= numberOf(last); id++ {
				took <- id
			}
		}
		return false
	}
}

// TestNoSettleModes: a peer whose attach names no settle modes agrees to the requested modes.
func TestNoSettleModes(t *testing.T) {
	for name, settled := range map[string]bool{"no settle modes": false, "no settle modes, settled": true} {
		run(t, name, func(t *testing.T) error {
			option := "settle=at-least-once"
			if settled {
				option = "settle=at-most-once"
			}
			p, took := newPeer(t), make(chan uint32, 100)
			p.modes = mixed()
			wasSettled := make(chan bool, 1000)
			receiving := deliver(3, settled, took)
			p.on = func(k *conn, f *frame) bool {
				if f.code == opTransfer {
					wasSettled <- truth(f.fields[4])
				}
				return receiving(k, f)
			}
			d := open(t, p.start(), option)
			s, err := trySending(t, d, driver.ProducerSpec{Destination: queue("q"), MaxPending: 3, Variants: plain("x")})
			if err != nil {
				return err
			}
			if err := s.accepted(3); err != nil {
				return err
			}
			for range 3 {
				if got := <-wasSettled; got != settled {
					return fmt.Errorf("a message was sent settled: %t", got)
				}
			}
			if _, err := receive(t, d, queue("q"), 3); err != nil {
				return err
			}
			for i := range uint32(3) {
				if settled {
					break
				}
				if id := <-took; id != i {
					return fmt.Errorf("message %d was accepted instead of %d", id, i)
				}
			}
			return nil
		})
	}
}
