package plan

import (
	"fmt"
	"slices"
	"time"
)

// Notes returns remarks for the user on a plan that is valid nevertheless, one sentence each.
func (p *Plan) Notes() []string {
	var notes []string
	for i := range p.Steps {
		for _, g := range p.Steps[i].Groups {
			list := g.notes()
			if g.Reconnect && g.ReconnectTimeout == 0 && p.Steps[i].Duration == 0 && g.Count > 0 {
				list = append(list, "--reconnect waits without limit: see --reconnect-timeout")
			}
			if p.Verify && !p.Allow.Disorder &&
				slices.ContainsFunc(g.Mix, func(v Variant) bool { return v.Priority != g.Mix[0].Priority }) {
				list = append(list, "higher priorities overtake others, which counts as out of order")
			}
			for _, note := range list {
				if g.Name != "" {
					note = "group " + g.Name + ": " + note
				}
				if !slices.Contains(notes, note) {
					notes = append(notes, note)
				}
			}
		}
	}
	if !p.StartAt.IsZero() {
		notes = append(notes, "the load begins at "+p.StartAt.UTC().Format(time.RFC3339Nano))
	}
	if p.Shard.Of > 1 && p.Verify && p.VerifyFile == "" {
		notes = append(notes, "one shard cannot find lost messages: use --result DIR in each, and perfmq merge")
	} else if p.Verify && p.VerifyFile == "" && p.Roles() != Client {
		notes = append(notes, "one side cannot find lost messages: use --verify-file FILE on both, and perfmq verify")
	}
	return notes
}

func (g *Group) notes() (notes []string) {
	if law := g.law(); law != "" {
		notes = append(notes, fmt.Sprintf("%s: %d sizes from %d to %d bytes, %d on average", law, len(g.Mix),
			g.Mix[0].Size(), g.LargestBody(), g.meanBody()))
	}
	if !g.Role.Produces() && g.CommitInterval > 0 {
		notes = append(notes, "--commit-interval is for producers, --tx-size for consumers")
	}
	if g.Role == Client && g.ProducerBroker.Protocol == g.ConsumerBroker.Protocol {
		_, _, from, _ := splitUserinfo(g.ProducerBroker.URL)
		if _, _, to, _ := splitUserinfo(g.ConsumerBroker.URL); from != to {
			notes = append(notes, "producers and consumers use different URLs: the brokers must forward messages")
		}
	}
	if g.Hosts == AtRandom && g.Role == Client && g.Spreads(g.ProducerBroker) {
		notes = append(notes, "connections choose hosts at random: the brokers must forward messages")
	}
	return notes
}
