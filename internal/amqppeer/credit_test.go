//go:build unix

package amqppeer

import (
	"fmt"
	"testing"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

func queue(name string) driver.Destination { return driver.Destination{Name: name} }

// reaches waits until n transfers have come, and for a moment for more.
func (p *peer) reaches(n int64) error {
	for deadline := time.Now().Add(patience); p.transfers.Load() < n && time.Now().Before(deadline); {
		<-time.After(time.Millisecond)
	}
	<-time.After(quiet)
	if got := p.transfers.Load(); got != n {
		return fmt.Errorf("%d messages came, with credit for %d", got, n)
	}
	return nil
}

// TestCreditIsTakenBack replays Broker-J, whose flow control gives credit for 20,000 messages and, when the queue has
// 500, withdraws it while more are under way: flow(delivery-count = messages that came, link-credit = 0, drain).
func TestCreditIsTakenBack(t *testing.T) {
	run(t, "credit is taken back", func(t *testing.T) error {
		const limit, slots = 50, 100
		p := newPeer(t)
		p.credit = 20_000
		links := make(chan *conn, 1)
		p.on = func(k *conn, f *frame) bool {
			switch {
			case f.code == opTransfer && p.transfers.Load() == limit-1:
				k.handle(f)
				k.flow(f.channel, numberOf(f.fields[0]), limit, 0, true)
				return true
			case f.code == opFlow && truth(f.fields[8]): // the answer: nothing follows it
				links <- k
			}
			return false
		}
		sending(t, open(t, p.start()), queue("q"), slots)
		link := <-links
		// Messages under way may come: as many as had been accepted, and all slots.
		const most = limit + slots
		n := p.transfers.Load()
		if n > most {
			return fmt.Errorf("%d messages were sent, most of them without credit", n)
		}
		if err := p.reaches(n); err != nil {
			return err
		}
		link.flow(0, 0, uint32(n), 3, false) //nolint:gosec // small
		return p.reaches(n + 3)
	})
}

// TestCreditIsDrained: a sender that is asked to use its credit up, and has nothing to send, says that there is none
// left (AMQP 1.0, Transport, section 2.6.7).
func TestCreditIsDrained(t *testing.T) {
	run(t, "credit is drained", func(t *testing.T) error {
		p := newPeer(t)
		p.credit, p.auto = 10, false
		drained := make(chan *frame, 10)
		p.on = func(k *conn, f *frame) bool {
			switch {
			case f.code == opTransfer && p.transfers.Load() == 2: // the third and last
				k.handle(f)
				k.flow(f.channel, numberOf(f.fields[0]), 3, 7, true)
				return true
			case f.code == opFlow && !isNull(f.fields[4]) && truth(f.fields[8]):
				drained <- f
			}
			return false
		}
		sending(t, open(t, p.start()), queue("q"), 3)
		select {
		case f := <-drained:
			if count, credit := numberOf(f.fields[5]), numberOf(f.fields[6]); count != 10 || credit != 0 {
				return fmt.Errorf("drained to delivery-count %d and link-credit %d instead of 10 and 0", count, credit)
			}
			return nil
		case <-time.After(patience):
			return fmt.Errorf("nothing was said of the credit that was to be drained")
		}
	})
}
