package plan

import (
	"fmt"
	"net/netip"
	"strings"
)

// maxLocal bounds the addresses. The list is made anew for each connection.
const maxLocal = 1 << 10

// parseLocal parses addresses of this machine: ADDRESS or FIRST-LAST, joined by commas. They are of one family.
func parseLocal(text string) (list []netip.Addr, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(part), "-")
		first, err := netip.ParseAddr(from)
		if err != nil {
			return nil, fmt.Errorf("must be addresses such as 127.0.0.2 or 127.0.0.2-127.0.0.9, not %q", part)
		}
		last := first
		if ranged {
			last, err = netip.ParseAddr(to)
			if err != nil || last.BitLen() != first.BitLen() || last.Less(first) {
				return nil, fmt.Errorf("the range %q must be FIRST-LAST", part)
			}
		}
		if len(list) > 0 && first.BitLen() != list[0].BitLen() {
			return nil, fmt.Errorf("%q is not of the family of the addresses before it", part)
		}
		for list = append(list, first); first != last && len(list) <= maxLocal; list = append(list, first) {
			first = first.Next()
		}
		if len(list) > maxLocal {
			return nil, fmt.Errorf("must be at most %d addresses", maxLocal)
		}
	}
	return list, nil
}

// CheckLocal returns the mistake of a --local-address.
func CheckLocal(text string) error {
	_, err := parseLocal(text)
	return err
}

// localAddress returns the address of the connection with that index; the zero value leaves it to the system.
func (g *Group) localAddress(index int) netip.Addr {
	if g.LocalAddress == "" {
		return netip.Addr{}
	}
	list, err := parseLocal(g.LocalAddress)
	if err != nil { // it was checked
		return netip.Addr{}
	}
	return list[index%len(list)]
}
