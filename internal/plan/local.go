package plan

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
)

// maxLocal bounds the addresses of [LocalAddresses].
const maxLocal = 1 << 16

// span is a range of addresses.
type span struct {
	first netip.Addr
	n     int
}

// parseLocal parses addresses of this machine: ADDRESS or FIRST-LAST, joined by commas. They are of one family.
func parseLocal(text string) (list []span, total int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(part), "-")
		s := span{n: 1}
		if s.first, err = netip.ParseAddr(from); err != nil {
			return nil, 0, fmt.Errorf("must be addresses such as 127.0.0.2 or 127.0.0.2-127.0.0.9, not %q", part)
		}
		if ranged {
			last, err := netip.ParseAddr(to)
			if err != nil || last.BitLen() != s.first.BitLen() || last.Less(s.first) {
				return nil, 0, fmt.Errorf("the range %q must be FIRST-LAST", part)
			}
			for a := s.first; a != last && s.n <= maxLocal; a = a.Next() {
				s.n++
			}
		}
		if s.first.BitLen() != append(list, s)[0].first.BitLen() {
			return nil, 0, fmt.Errorf("%q is not of the family of the addresses before it", part)
		}
		list, total = append(list, s), total+s.n
		if total > maxLocal {
			return nil, 0, fmt.Errorf("must be at most %d addresses", maxLocal)
		}
	}
	return list, total, nil
}

// CheckLocal returns the mistake of a --local-address.
func CheckLocal(text string) error {
	_, _, err := parseLocal(text)
	return err
}

// localAddress returns the address of the connection with that index; the zero value leaves it to the system.
func (g *Group) localAddress(index int) netip.Addr {
	if g.LocalAddress == "" {
		return netip.Addr{}
	}
	list, total, err := parseLocal(g.LocalAddress)
	if err != nil { // it was checked
		return netip.Addr{}
	}
	at := index % total
	for _, s := range list {
		if at >= s.n {
			at -= s.n
			continue
		}
		b := s.first.AsSlice()
		for i := len(b) - 1; at > 0 && i >= 0; i-- {
			at += int(b[i])
			b[i] = byte(at & math.MaxUint8)
			at >>= 8
		}
		a, _ := netip.AddrFromSlice(b)
		return a.WithZone(s.first.Zone())
	}
	return netip.Addr{}
}
