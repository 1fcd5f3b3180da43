package scenario

import (
	"slices"
	"strings"
)

// brokers reads `brokers`, or the settings of the only one.
func (d *decoder) brokers(root *node) {
	one, many := root.get("broker"), root.get("brokers")
	if one != nil && many != nil {
		d.bad(one.pos, "put it under brokers: with a name of its own", "there are both broker and brokers")
	}
	if one != nil {
		d.broker(DefaultBroker, "broker", one.pos, one)
	}
	if many != nil {
		for _, p := range d.fields(many, "brokers", "NAME: {protocol: amqp, url: ...}") {
			d.goodName(p.key.pos, "a broker", p.key.text)
			d.broker(p.key.text, "the broker "+p.key.text, p.key.pos, p.value)
		}
	}
	if one == nil && many == nil {
		d.bad(Pos{d.file.Path, 1, 1}, "broker: {protocol: amqp, url: amqp://localhost:5672}", "the file has no broker")
	}
}

func (d *decoder) broker(name, what string, pos Pos, n *node) {
	b := Broker{Name: name, Pos: pos}
	b.Entries = d.entries(d.fields(n, what, "{protocol: amqp, url: ...}"), InBroker, "a broker")
	d.file.Brokers = append(d.file.Brokers, b)
}

// allGroups reads `groups`, and reports brokers that none of them uses.
func (d *decoder) allGroups(root *node) {
	n := root.get("groups")
	if n == nil {
		d.bad(Pos{d.file.Path, 1, 1}, "groups: {senders: {role: producer, destination: queue://TEST}}",
			"the file has no groups")
		return
	}
	used := map[string]bool{}
	pairs := d.fields(n, "groups", "NAME: {role: producer, destination: queue://TEST}")
	for _, p := range pairs {
		d.group(p, used)
	}
	for _, b := range d.file.Brokers {
		if !used[b.Name] && len(pairs) > 0 {
			d.bad(b.Pos, "remove it, or name it in a group, broker: "+b.Name, "no group uses the broker %s", b.Name)
		}
	}
}

func (d *decoder) group(p pair, used map[string]bool) {
	g := Group{Name: p.key.text, Pos: p.key.pos}
	d.goodName(p.key.pos, "a group", g.Name)
	places := inGroup
	of := "a group"
	role := p.value.get("role")
	pairs := d.fields(p.value, "the group "+g.Name, "{role: producer, destination: queue://TEST}")
	if role == nil && len(pairs) > 0 && !p.value.broken {
		d.bad(p.key.pos, "role: producer, or role: consumer", "the group %s has no role", g.Name)
	}
	if role != nil {
		text, ok := d.text(role, "role")
		switch {
		case !ok:
		case text == Producer:
			g.Role, places, of = text, InProducerGroup, "a producer group"
		case text == Consumer:
			g.Role, places, of = text, InConsumerGroup, "a consumer group"
		default:
			d.bad(role.pos, missing(text, []string{Producer, Consumer}), "%s is no role", quote(text))
		}
	}
	d.groupBroker(&g, p, used)
	one, more := p.value.get("destination"), p.value.get("destinations")
	if one != nil && more != nil {
		d.bad(more.pos, "put all into one list", "there are both destination and destinations")
	}
	for _, n := range []*node{one, more} {
		if n != nil {
			g.Destinations = append(g.Destinations, d.destinations(n)...)
		}
	}
	g.Messages, g.Turn = d.messages(g.Role, p.value)
	g.Entries = d.entries(p.value.pairs, places, of, groupShape()...)
	d.file.Groups = append(d.file.Groups, g)
}

// groupBroker finds the broker of a group.
func (d *decoder) groupBroker(g *Group, p pair, used map[string]bool) {
	known := names(d.file.Brokers, brokerName)
	n := p.value.get("broker")
	switch {
	case n != nil:
		text, ok := d.text(n, "broker")
		if !ok {
			for _, b := range known { // whichever was meant
				used[b] = true
			}
			return
		}
		if find(d.file.Brokers, text, brokerName) < 0 {
			d.bad(n.pos, missing(text, known), "there is no broker %s", quote(text))
			for _, b := range known {
				used[b] = true
			}
			return
		}
		g.Broker = text
	case len(known) == 1:
		g.Broker = known[0]
	case len(known) > 1 && p.value.kind == mapping:
		d.bad(p.key.pos, "broker: NAME; "+missing("", known), "the group %s names no broker", g.Name)
		return
	}
	used[g.Broker] = true
}

// messages reads the kinds of messages of a group, or of one in a step, and how one is chosen.
func (d *decoder) messages(role string, n *node) (all []Message, turn bool) {
	const form = "messages: [{weight: 80, message-size: 1KiB}, {weight: 20, message-size: 64KiB}]"
	for _, p := range n.pairs {
		if (p.key.text == keyMessages || p.key.text == keyChoose) && role == Consumer {
			d.bad(p.key.pos, "it belongs to a producer group", "%s is no setting of a consumer group", p.key.text)
			return nil, false
		}
	}
	list, choose := n.get(keyMessages), n.get(keyChoose)
	if choose != nil {
		text, ok := d.text(choose, keyChoose)
		words := []string{ChooseWeight, ChooseTurn}
		switch {
		case !ok:
		case !slices.Contains(words, text):
			d.bad(choose.pos, missing(text, words), "messages cannot be chosen by %s", quote(text))
		case list == nil:
			d.bad(choose.pos, form, "there are no messages to choose from")
		}
		turn = text == ChooseTurn
	}
	switch {
	case list == nil || list.broken:
		return nil, turn
	case list.null || list.kind == sequence && len(list.items) == 0:
		d.bad(list.pos, form, "messages has no value")
	case list.kind != sequence:
		d.bad(list.pos, form, "messages must be a list, not %s", list.what())
	case len(list.items) > MaxMessages:
		d.bad(list.pos, "", "there are %d messages: at most %d", len(list.items), MaxMessages)
		return nil, turn
	}
	for _, item := range list.items {
		all = append(all, d.message(item, turn))
	}
	return all, turn
}

func (d *decoder) message(n *node, turn bool) Message {
	m := Message{Pos: n.pos}
	if len(n.pairs) > 0 {
		m.Pos = n.pairs[0].key.pos
	}
	m.Entries = d.entries(d.fields(n, "a message", "- {weight: 80, message-size: 1KiB}"), InMessage, "a message")
	for _, p := range n.pairs {
		if p.key.text == keyWeight && turn {
			d.bad(p.key.pos, "remove it, or choose: "+ChooseWeight, "a weight means nothing where messages are sent in turn")
		}
	}
	return m
}

// The keys of messages.
const (
	keyMessages = "messages"
	keyChoose   = "choose"
	keyWeight   = "weight" // the setting that only messages chosen by weight have
)

func (d *decoder) destinations(n *node) (list []string) {
	for _, item := range d.oneOrMore(n, "destination") {
		text, ok := d.text(item, "destination")
		if !ok {
			continue
		}
		if k := d.keys.shape["destination"]; k != nil {
			if err := k.judge(text); err != nil {
				d.refuse(item, k, text, err)
			}
		}
		if strings.TrimSpace(text) == "" {
			d.bad(item.pos, "", "destination is empty")
		}
		list = append(list, text)
	}
	return list
}
