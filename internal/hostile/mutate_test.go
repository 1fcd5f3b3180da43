//go:build unix

package hostile

import (
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"time"

	"github.com/perfmq/perfmq/internal/tcpproxy"
)

// mutation is something that is done to the bytes of a connection.
type mutation uint8

const (
	flipBit mutation = iota
	setByte
	setNumber
	setDigit
	insert
	remove
	repeat
	swap
	wait
	trickle
	truncate
	freeze
	reset
)

// mutator passes on the bytes of one connection in one direction, and mutates them now and then. Its generator alone
// determines the mutations and their positions in the stream.
type mutator struct {
	rng   *rand.Rand
	mean  float64 // bytes from one mutation to the next
	kinds []mutation
	stop  <-chan struct{}
	out   io.Writer
	left  int // bytes until the next mutation
}

// pass moves bytes until one side ends, or a mutation ends it.
func (m *mutator) pass(to io.Writer, from io.Reader) {
	m.out = to
	m.schedule()
	buf := make([]byte, 1+m.rng.IntN(16<<10))
	for {
		n, err := from.Read(buf)
		if !m.chunk(buf[:n]) || err != nil {
			return
		}
	}
}

// schedule chooses the distance to the next mutation.
func (m *mutator) schedule() { m.left = int(min(m.rng.ExpFloat64()*m.mean, math.MaxInt32)) }

// chunk passes on a piece; it returns false at the end.
func (m *mutator) chunk(b []byte) bool {
	for len(b) > 0 {
		if len(m.kinds) == 0 || m.left >= len(b) {
			m.left -= len(b)
			return m.write(b)
		}
		if !m.write(b[:m.left]) {
			return false
		}
		var ok bool
		if b, ok = m.mutate(b[m.left:]); !ok {
			return false
		}
		m.schedule()
	}
	return true
}

func (m *mutator) write(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	_, err := m.out.Write(b)
	return err == nil
}

// mutate applies a mutation to the beginning of b, and returns the remaining bytes; false at the end of the stream.
func (m *mutator) mutate(b []byte) (rest []byte, ok bool) {
	piece := b[:1+m.rng.IntN(min(len(b), 200))]
	rest = b[len(piece):]
	switch m.kinds[m.rng.IntN(len(m.kinds))] {
	case flipBit:
		b[0] ^= 1 << m.rng.IntN(8)
		return b, true
	case setByte:
		b[0] = m.one([]byte{0, 1, 0x7f, 0x80, 0xff, '\n', '\r', ':', '\\', ' ', '9', '"', '{', '[', 0x1b, 0xd0})
		return b, true
	case setNumber:
		n := []uint32{0, 1, 3, 7, 8, 511, 1 << 16, 1<<16 + 1, 1 << 24, 1<<31 - 1, 1 << 31, 1<<32 - 1}[m.rng.IntN(12)]
		if len(b) >= 4 {
			binary.BigEndian.PutUint32(b, n)
		}
		return b, true
	case setDigit:
		for i := range piece {
			if piece[i] >= '0' && piece[i] <= '9' {
				piece[i] = byte('0' + m.rng.IntN(10))
				more := []byte("99999999999999999999"[:m.rng.IntN(20)])
				return rest, m.write(piece[:i+1]) && m.write(more) && m.write(piece[i+1:])
			}
		}
		return b, true
	case insert:
		garbage := make([]byte, 1+m.rng.IntN(16))
		for i := range garbage {
			garbage[i] = byte(m.rng.Uint32())
		}
		return b, m.write(garbage)
	case remove:
		return rest, true
	case repeat:
		for range 1 + m.rng.IntN(3) {
			if !m.write(piece) {
				return nil, false
			}
		}
		return b, true
	case swap:
		half := len(piece) / 2
		return rest, m.write(piece[half:]) && m.write(piece[:half])
	case wait:
		select {
		case <-time.After(time.Duration(1+m.rng.IntN(30)) * time.Millisecond):
			return b, true
		case <-m.stop:
			return nil, false
		}
	case trickle:
		for i := range piece {
			if !m.write(piece[i : i+1]) {
				return nil, false
			}
		}
		return rest, true
	case freeze:
		<-m.stop
		return nil, false
	case reset:
		if tcp, is := m.out.(*net.TCPConn); is {
			_ = tcp.SetLinger(0)
		}
		return nil, false
	default: // truncate
		return nil, false
	}
}

func (m *mutator) one(list []byte) byte { return list[m.rng.IntN(len(list))] }

// kindsOf returns the mutations for one direction: with or without changes of bytes, delays, and ends of the stream.
func kindsOf(changes, delays, ends bool) (list []mutation) {
	if changes {
		list = append(list, flipBit, setByte, setNumber, setDigit, insert, remove, repeat, swap)
	}
	if delays {
		list = append(list, wait, trickle)
	}
	if ends {
		list = append(list, truncate, freeze, reset)
	}
	return list
}

// mutants returns a proxy's stream. Each way of each connection has a generator of its own, so that their order does
// not matter.
func (s *session) mutants(stop <-chan struct{}) tcpproxy.Stream {
	return func(number int, d tcpproxy.Direction, to io.Writer, from io.Reader) {
		way := s.up
		if d == tcpproxy.Down {
			way = s.down
		}
		m := mutator{
			rng:  rand.New(rand.NewPCG(s.Seed^s.Case<<32, uint64(number)<<1|uint64(d))), //nolint:gosec // repeatable, not secret
			mean: s.mean, kinds: way, stop: stop,
		}
		m.pass(to, from)
	}
}
