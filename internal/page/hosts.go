package page

import "fmt"

// hostTable has the figures of each host of the brokers.
func hostTable(r *Run) Table {
	t := Table{
		Title: "Hosts of the broker",
		Head: []string{
			"host", "connections", "producers", "sent", "completed", "unconfirmed", "consumers", "received",
		},
	}
	list := r.Result.BrokerHosts
	for i := range list[:min(len(list), maxListed)] {
		h := &list[i]
		t.Rows = append(t.Rows, []string{
			h.Name, fmt.Sprint(h.Connections), fmt.Sprint(h.Producers), count(h.Sent), count(h.Completed), count(h.Unconfirmed),
			fmt.Sprint(h.Consumers), count(h.Received),
		})
	}
	t.Note = "A worker that moved to another host counts at each, its messages at the host to which it was connected."
	if len(list) > maxListed {
		t.Note += fmt.Sprintf(" The first %d of %d.", maxListed, len(list))
	}
	return t
}
