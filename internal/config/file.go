package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/threshold"
)

// Version is the version of the format, the only one so far.
const Version = "1"

// The keys of the file's own shape, and their words.
const (
	keyMessages  = "messages"
	keyChoose    = "choose"
	chooseWeight = "weight"
	chooseTurn   = "turn"
	untilDrained = "drained"
	untilCount   = "count"
	untilIdle    = "idle"
)

// maxMessages limits the messages of a group.
const maxMessages = 1024

// file is a scenario file: what it gives for which part, with positions. References name existing parts.
type file struct {
	name, description string
	labels            []label
	run, defaults     []entry
	brokers           []part
	groups            []fileGroup
	steps             []fileStep // one at least
	before, after     []string
	thresholds        []fileThreshold // over the whole run or a step
	single            bool            // its only group has no name, and its brokers belong to the sides of that
}

// part is a part of a file with its settings.
type part struct {
	name    string
	entries []entry
	pos     Pos
}

// entry is a setting that was given. Texts has one element, or, of a list, any number. Pos is that of the value.
type entry struct {
	*Setting
	texts []string
	pos   Pos
}

type label struct {
	key, text string
	pos       Pos
}

// mix are the kinds of messages of a producer group, none if its entries say all. Turn: they are sent in turn.
type mix struct {
	messages []part
	turn     bool
}

type fileGroup struct {
	part
	mix
	role                   plan.Role
	broker, consumerBroker string
	destinations           []string
}

// use is a group in a step, with what it has only there.
type use struct {
	part // of the group's name
	mix
}

type fileStep struct {
	part
	uses          []use
	until         string
	before, after []string
	thresholds    []fileThreshold
}

// fileThreshold is a threshold of a step, or of the run if that is empty.
type fileThreshold struct {
	threshold.Threshold
	step string
	pos  Pos
}

// decoder makes a file of a tree.
type decoder struct {
	*file
	source   *source
	keys     *keys
	mistakes []Mistake
	vars     map[string]*variable
	order    []*variable // as in the file

	used map[string]bool // groups of some step
}

func (d *decoder) bad(pos Pos, hint, format string, args ...any) {
	if len(d.mistakes) < maxMistakes {
		d.mistakes = append(d.mistakes, Mistake{Pos: pos, Text: fmt.Sprintf(format, args...), Hint: hint})
	}
}

func topShape() []string {
	return []string{
		"version", "name", "description", "vars", "labels", "defaults", "broker", "brokers", "group", "groups", "steps",
		"thresholds", "before", "after", keyMatrix, keySearch,
	}
}

func groupShape() []string {
	return []string{"role", "broker", "consumer-broker", "destination", "destinations", keyMessages, keyChoose}
}

func stepShape() []string {
	return []string{"name", "groups", "until", "before", "after", "thresholds"}
}

// decode reads everything but the variables, the matrix and the search.
func (d *decoder) decode(root *node) {
	for key, most := range map[string]int{"brokers": 256, "groups": 256, "steps": 1024} {
		if n := root.get(key); n != nil && len(n.pairs)+len(n.items) > most {
			d.bad(n.pos, "", "there are more than %d %s", most, key)
			return
		}
	}
	d.used = map[string]bool{}
	d.readBrokers(root)
	d.readGroups(root)
	places, shape := InRun, topShape()
	steps := root.get("steps")
	if steps == nil {
		places, shape = InRun|InStep, append(shape, "until")
	} else if n := root.get("until"); n != nil {
		d.bad(n.pos, "it belongs to a step", "until is no setting of the file")
	}
	var ofStep []entry
	for _, e := range d.entries(root.pairs, places, "the file", append(shape, "until")...) {
		if e.Places&InRun != 0 {
			d.run = append(d.run, e)
		} else {
			ofStep = append(ofStep, e)
		}
	}
	for _, p := range root.pairs {
		switch p.key.text {
		case "version":
			if text, ok := d.text(p.value, "version"); ok && text != Version {
				d.bad(p.value.pos, "version: "+Version, "version %s of the format is not known", quote(text))
			}
		case "name":
			d.name, _ = d.text(p.value, "name")
		case "description":
			d.description, _ = d.text(p.value, "description")
		case "labels":
			for _, l := range d.fields(p.value, "labels", "NAME: TEXT") {
				if text, ok := d.text(l.value, "the label "+l.key.text); ok {
					d.labels = append(d.labels, label{l.key.text, text, l.key.pos})
				}
			}
		case "defaults":
			d.defaults = d.entries(d.fields(p.value, "defaults", "SETTING: VALUE"), inDefaults, "the defaults")
		case "before":
			d.before = d.commands(p.value, "before")
		case "after":
			d.after = d.commands(p.value, "after")
		}
	}
	d.readSteps(root, steps, ofStep)
	if n := root.get("thresholds"); n != nil {
		d.thresholds = d.readThresholds(n, "")
	}
}

// fields returns the pairs of a map. The parameter what names the map, and form is how to write it.
func (d *decoder) fields(n *node, what, form string) []pair {
	switch {
	case n.broken:
	case n.null:
		d.bad(n.pos, form, "%s has no value", what)
	case n.kind != mapping:
		d.bad(n.pos, form, "%s must be a map, not %s", what, n.what())
	case len(n.pairs) == 0:
		d.bad(n.pos, form, "%s is empty", what)
	}
	return n.pairs
}

// text returns one value.
func (d *decoder) text(n *node, what string) (text string, ok bool) {
	switch {
	case n.broken:
	case n.null:
		hint := "give one, or remove the key"
		if n.raw != "" {
			hint = fmt.Sprintf("put %s into quotes if it is meant as a text", n.raw)
		}
		d.bad(n.pos, hint, "%s has no value", what)
	case n.kind != scalar:
		d.bad(n.pos, "", "%s must be one value, not %s", what, n.what())
	default:
		return n.text, true
	}
	return "", false
}

// word returns one of a few words; empty if there is no such key.
func (d *decoder) word(n *node, key, format string, words ...string) string {
	value := n.get(key)
	if value == nil {
		return ""
	}
	text, ok := d.text(value, key)
	if ok && !slices.Contains(words, text) {
		d.bad(value.pos, missing(text, words), format, quote(text))
	}
	return text
}

// oneOrMore returns the elements of a list, or the only value.
func (d *decoder) oneOrMore(n *node, what string) []*node {
	if n.kind != sequence {
		return []*node{n}
	}
	if len(n.items) == 0 {
		d.bad(n.pos, "give one, or remove the key", "%s has no value", what)
	}
	return n.items
}

// commands reads shell commands.
func (d *decoder) commands(n *node, what string) (list []string) {
	for _, item := range d.oneOrMore(n, what) {
		text, ok := d.text(item, what)
		if ok && strings.TrimSpace(text) == "" {
			d.bad(item.pos, "", "%s is an empty command", what)
		} else if ok {
			list = append(list, text)
		}
	}
	return list
}

var plainName = regexp.MustCompile(`^[a-z0-9_.-]{1,64}$`)

// goodName reports a name that cannot be used in metrics and thresholds.
func (d *decoder) goodName(pos Pos, what, name string) {
	if plainName.MatchString(name) {
		return
	}
	d.bad(pos, "use a-z, 0-9, -, _ and ., at most 64 of them", "%s cannot be the name of %s", quote(name), what)
}

// quote puts a text of a file into quotes. Control characters and secrets are dealt with when a mistake is finished.
func quote(text string) string { return `"` + text + `"` }

// entries reads settings of some places. Of names these, shape are the keys there that are no settings.
func (d *decoder) entries(pairs []pair, places Scope, of string, shape ...string) (list []entry) {
	given := map[string]*node{}
	for _, p := range pairs {
		if slices.Contains(shape, p.key.text) {
			continue
		}
		s := d.keys.find(p.key.text, places)
		if s == nil {
			d.unknown(p.key, places, of, shape...)
			continue
		}
		if before := given[s.Name]; before != nil {
			d.bad(p.key.pos, fmt.Sprintf("%s is in line %d", before.text, before.pos.Line), "%s is %s, which is given already",
				p.key.text, before.text)
			continue
		}
		given[s.Name] = p.key
		if e, ok := d.entry(p.value, s); ok {
			list = append(list, e)
		}
	}
	return list
}

// unknown reports a key that has no place where it stands.
func (d *decoder) unknown(key *node, places Scope, of string, shape ...string) {
	if len(d.mistakes) >= maxMistakes {
		return
	}
	name := key.text
	if s := d.keys.byName[name]; s != nil {
		hint := "it belongs to " + s.Places.String()
		switch {
		case s.Places == InRun:
			hint = "it belongs to the top of the file"
		case of == "the file":
			hint += ", or under defaults:"
		}
		d.bad(key.pos, hint, "%s is no setting of %s", name, of)
		return
	}
	hint := ""
	if n := d.keys.nearest(name, places, shape); n != "" {
		hint = "did you mean " + n + "?"
	} else if len(shape) > 0 && places == 0 {
		hint = "known are " + strings.Join(shape, ", ")
	}
	d.bad(key.pos, hint, "unknown setting %s of %s", quote(name), of)
}

// entry reads the value of a setting.
func (d *decoder) entry(n *node, s *Setting) (entry, bool) {
	e := entry{Setting: s, pos: n.pos}
	ok := true
	check := func(item *node, text string) {
		ok = d.judge(item, s, text) && ok
		e.texts = append(e.texts, text)
	}
	switch {
	case n.kind == mapping && s.Pairs:
		for _, p := range d.fields(n, s.Name, "KEY: VALUE") {
			text, good := d.text(p.value, s.Name+" "+p.key.text)
			if strings.Contains(p.key.text, "=") {
				d.bad(p.key.pos, "", "%s: a key cannot hold =", s.Name)
				good = false
			}
			if ok = ok && good; good {
				check(p.value, p.key.text+"="+text)
			}
		}
	case n.kind == sequence && (s.List || s.join() != ""):
		var texts []string
		for _, item := range d.oneOrMore(n, s.Name) {
			text, good := d.text(item, s.Name)
			if ok = ok && good; !good {
				continue
			}
			if s.join() == "" {
				check(item, text)
			} else {
				texts = append(texts, text)
			}
		}
		if ok && len(texts) > 0 {
			check(n, strings.Join(texts, s.join()))
		}
	default:
		text, good := d.text(n, s.Name)
		if !good {
			return e, false
		}
		check(n, text)
	}
	return e, ok && len(e.texts) > 0
}

// judge reports a value that a setting cannot have.
func (d *decoder) judge(n *node, s *Setting, text string) bool {
	err := s.Check(text)
	if len(text) > maxText {
		err = fmt.Errorf("is longer than %d bytes", maxText)
	}
	if err == nil {
		return true
	}
	hint, written := "", ""
	if !s.Secret {
		hint = nearest.Hint(text, s.Words, "%s", "")
		if n.kind == scalar && len(n.uses) > 0 {
			written = fmt.Sprintf("; with its variables it is %s", quote(text))
		}
	}
	d.bad(n.pos, hint, "%s: %v%s", s.Name, err, written)
	return false
}

// readBrokers reads `brokers`, or the settings of the only one.
func (d *decoder) readBrokers(root *node) {
	one, many := root.get("broker"), root.get("brokers")
	add := func(name, what string, pos Pos, n *node) {
		fields := d.fields(n, what, "{protocol: amqp, url: ...}")
		d.brokers = append(d.brokers, part{name, d.entries(fields, InBroker, "a broker"), pos})
	}
	if one != nil && many != nil {
		d.bad(one.pos, "put it under brokers: with a name of its own", "there are both broker and brokers")
	}
	if one != nil {
		add(plan.OnlyBroker, "broker", one.pos, one)
	}
	if many != nil {
		for _, p := range d.fields(many, "brokers", "NAME: {protocol: amqp, url: ...}") {
			d.goodName(p.key.pos, "a broker", p.key.text)
			add(p.key.text, "the broker "+p.key.text, p.key.pos, p.value)
		}
	}
	if one == nil && many == nil {
		d.bad(d.source.pos(1, 1), "broker: {protocol: amqp, url: amqp://localhost:5672}", "the file has no broker")
	}
}

// readGroups reads `groups`, or the only one, and reports brokers that none of them uses.
func (d *decoder) readGroups(root *node) {
	one, many := root.get("group"), root.get("groups")
	var pairs []pair
	switch {
	case one != nil && many != nil:
		d.bad(one.pos, "put it under groups: with a name of its own", "there are both group and groups")
	case one != nil:
		d.single = true
		pairs = []pair{{&node{pos: one.pos}, one}}
	case many != nil:
		pairs = d.fields(many, "groups", "NAME: {role: producer, destination: queue://TEST}")
	default:
		d.bad(d.source.pos(1, 1), "groups: {senders: {role: producer, destination: queue://TEST}}", "the file has no groups")
	}
	used := map[string]bool{}
	for _, p := range pairs {
		d.readGroup(p, used)
	}
	for _, b := range d.brokers {
		if !used[b.name] && len(pairs) > 0 {
			d.bad(b.pos, "remove it, or name it in a group, broker: "+b.name, "no group uses the broker %s", b.name)
		}
	}
}

func (d *decoder) readGroup(p pair, used map[string]bool) {
	g := fileGroup{part: part{name: p.key.text, pos: p.key.pos}}
	what := "the group " + g.name
	if !d.single {
		d.goodName(p.key.pos, "a group", g.name)
	}
	pairs := d.fields(p.value, what, "{role: producer, destination: queue://TEST}")
	if p.value.get("role") == nil && len(pairs) > 0 && !p.value.broken {
		d.bad(p.key.pos, "role: producer, or role: consumer", "%s has no role", what)
	}
	roles := []string{string(plan.Producer), string(plan.Consumer)}
	if d.single { // both sides of a group would have its name
		roles = append(roles, string(plan.Client))
	}
	if role := d.word(p.value, "role", "%s is no role", roles...); slices.Contains(roles, role) {
		g.role = plan.Role(role)
	}
	g.broker = d.brokerOf(p, "broker", used)
	if p.value.get("consumer-broker") != nil {
		g.consumerBroker = d.brokerOf(p, "consumer-broker", used)
	}
	one, more := p.value.get("destination"), p.value.get("destinations")
	if one != nil && more != nil {
		d.bad(more.pos, "put all into one list", "there are both destination and destinations")
	}
	for _, n := range []*node{one, more} {
		if n != nil {
			g.destinations = append(g.destinations, d.readDestinations(n)...)
		}
	}
	if g.role != plan.Consumer {
		g.mix = d.readMix(p.value)
	}
	g.entries = d.entriesOfGroup(p.value.pairs, g.role)
	d.groups = append(d.groups, g)
}

// entriesOfGroup reads the settings of a group, or of its use in a step.
func (d *decoder) entriesOfGroup(pairs []pair, role plan.Role) []entry {
	places, of := placesOfRole(role)
	shape := groupShape()
	if role == plan.Consumer {
		shape = slices.DeleteFunc(shape, func(key string) bool { return key == keyMessages || key == keyChoose })
	}
	return d.entries(pairs, places, of, shape...)
}

// placesOfRole returns which settings a group has.
func placesOfRole(role plan.Role) (Scope, string) {
	switch role {
	case plan.Producer:
		return InProducerGroup, "a producer group"
	case plan.Consumer:
		return InConsumerGroup, "a consumer group"
	default:
		return inGroup, "a group"
	}
}

// brokerOf finds the broker that a key of a group names.
func (d *decoder) brokerOf(p pair, key string, used map[string]bool) (name string) {
	known := names(d.brokers)
	n := p.value.get(key)
	switch {
	case n != nil:
		text, ok := d.text(n, key)
		if ok && !slices.Contains(known, text) {
			d.bad(n.pos, missing(text, known), "there is no broker %s", quote(text))
			ok = false
		}
		if !ok {
			for _, b := range known { // whichever was meant
				used[b] = true
			}
			return ""
		}
		name = text
	case len(known) == 1:
		name = known[0]
	case len(known) > 1 && p.value.kind == mapping:
		d.bad(p.key.pos, "broker: NAME; "+missing("", known), "the group %s names no broker", p.key.text)
	}
	used[name] = true
	return name
}

// names returns the names of parts.
func names(list []part) (texts []string) {
	for i := range list {
		texts = append(texts, list[i].name)
	}
	return texts
}

// readMix reads the kinds of messages of a group, or of one in a step, and how one is chosen.
func (d *decoder) readMix(n *node) (m mix) {
	const form = "messages: [{weight: 80, message-size: 1KiB}, {weight: 20, message-size: 64KiB}]"
	list := n.get(keyMessages)
	m.turn = d.word(n, keyChoose, "messages cannot be chosen by %s", chooseWeight, chooseTurn) == chooseTurn
	if choose := n.get(keyChoose); choose != nil && list == nil {
		d.bad(choose.pos, form, "there are no messages to choose from")
	}
	switch {
	case list == nil || list.broken:
		return m
	case list.null || list.kind == sequence && len(list.items) == 0:
		d.bad(list.pos, form, "messages has no value")
	case list.kind != sequence:
		d.bad(list.pos, form, "messages must be a list, not %s", list.what())
	case len(list.items) > maxMessages:
		d.bad(list.pos, "", "there are %d messages: at most %d", len(list.items), maxMessages)
		return m
	}
	for _, item := range list.items {
		one := part{pos: item.pos}
		if len(item.pairs) > 0 {
			one.pos = item.pairs[0].key.pos
		}
		one.entries = d.entries(d.fields(item, "a message", "- {weight: 80, message-size: 1KiB}"), InMessage, "a message")
		for _, p := range item.pairs {
			if p.key.text == "weight" && m.turn {
				d.bad(p.key.pos, "remove it, or choose: "+chooseWeight, "a weight means nothing where messages are sent in turn")
			}
		}
		m.messages = append(m.messages, one)
	}
	return m
}

func (d *decoder) readDestinations(n *node) (list []string) {
	for _, item := range d.oneOrMore(n, "destination") {
		text, ok := d.text(item, "destination")
		if !ok {
			continue
		}
		if err := checkDestination(text); err != nil {
			var m *plan.Mistake
			hint := ""
			if errors.As(err, &m) {
				hint = m.Hint
			}
			d.bad(item.pos, hint, "destination: %v", err)
		}
		list = append(list, text)
	}
	return list
}

// readSteps reads `steps`, or makes the only one, with the settings given.
func (d *decoder) readSteps(root, n *node, entries []entry) {
	if n == nil {
		d.steps = []fileStep{{
			part: part{plan.OnlyStep, entries, root.pos}, until: d.until(root), uses: d.allUses(),
		}}
		return
	}
	const form = "- name: allout"
	switch {
	case n.broken:
		return
	case n.null || n.kind == sequence && len(n.items) == 0:
		d.bad(n.pos, form, "steps has no value")
	case n.kind != sequence:
		d.bad(n.pos, form, "steps must be a list, not %s", n.what())
	}
	taken := map[string]Pos{}
	for i, item := range n.items {
		s := d.readStep(item, i)
		if before, twice := taken[s.name]; twice {
			d.bad(s.pos, fmt.Sprintf("the first is in line %d", before.Line), "there are two steps %s", s.name)
		} else {
			taken[s.name] = s.pos
		}
		d.steps = append(d.steps, s)
	}
	for _, g := range d.groups {
		if !d.used[g.name] && n.kind == sequence && len(n.items) > 0 {
			d.bad(g.pos, "remove it, or name it in a step", "no step uses the group %s", g.name)
		}
	}
	for i, item := range n.items {
		if t := item.get("thresholds"); t != nil {
			d.steps[i].thresholds = d.readThresholds(t, d.steps[i].name)
		}
	}
}

func (d *decoder) readStep(n *node, i int) fileStep {
	s := fileStep{part: part{name: fmt.Sprintf("step-%d", i+1), pos: n.pos}}
	if len(n.pairs) > 0 {
		s.pos = n.pairs[0].key.pos
	}
	pairs := d.fields(n, "a step", "name: allout")
	if name := n.get("name"); name != nil {
		if text, ok := d.text(name, "name"); ok {
			s.name, s.pos = text, name.pos
			d.goodName(name.pos, "a step", text)
			if strings.Contains(text, ".group.") {
				d.bad(name.pos, "", "%s cannot be the name of a step: STEP.group.NAME is a group of a step", quote(text))
			}
		}
	}
	groups := n.get("groups")
	if groups != nil && groups.null {
		d.text(groups, "groups")
	}
	if groups == nil || groups.null {
		s.uses = d.allUses()
	} else {
		s.uses = d.readUses(groups)
	}
	s.until = d.until(n)
	if c := n.get("before"); c != nil {
		s.before = d.commands(c, "before")
	}
	if c := n.get("after"); c != nil {
		s.after = d.commands(c, "after")
	}
	s.entries = d.entries(pairs, InStep, "a step", stepShape()...)
	return s
}

func (d *decoder) until(n *node) string {
	return d.word(n, "until", "a step cannot last until %s", untilDrained, untilCount, untilIdle)
}

// allUses is of a step that names no groups.
func (d *decoder) allUses() (list []use) {
	for _, g := range d.groups {
		d.used[g.name] = true
		list = append(list, use{part: part{name: g.name, pos: g.pos}})
	}
	return list
}

// readUses reads the groups of a step: a list of names, or a map from names to settings.
func (d *decoder) readUses(n *node) (list []use) {
	if n.kind != scalar && len(n.pairs)+len(n.items) == 0 {
		d.bad(n.pos, "name one, or remove the key for all groups", "the step has no groups")
		return nil
	}
	if n.kind == mapping {
		for _, p := range n.pairs {
			g := d.use(p.key)
			if g == nil {
				continue
			}
			u := use{part: part{name: g.name, pos: p.key.pos}}
			if empty := p.value.kind == mapping && len(p.value.pairs) == 0; !empty && !p.value.null {
				u.entries = d.overrides(p.value, g)
				if g.role != plan.Consumer {
					u.mix = d.readMix(p.value)
				}
			}
			list = append(list, u)
		}
		return list
	}
	taken := map[string]bool{}
	for _, item := range d.oneOrMore(n, "groups") {
		text, ok := d.text(item, "the name of a group")
		switch {
		case !ok || d.use(item) == nil:
		case taken[text]:
			d.bad(item.pos, "", "the group %s is named twice", text)
		default:
			taken[text] = true
			list = append(list, use{part: part{name: text, pos: item.pos}})
		}
	}
	return list
}

// groupOf returns the group of a name; nil if there is none.
func (f *file) groupOf(name string) *fileGroup {
	i := slices.IndexFunc(f.groups, func(g fileGroup) bool { return g.name == name })
	if i < 0 {
		return nil
	}
	return &f.groups[i]
}

func (f *file) groupNames() (list []string) {
	for i := range f.groups {
		list = append(list, f.groups[i].name)
	}
	return list
}

func (f *file) stepNames() (list []string) {
	for i := range f.steps {
		list = append(list, f.steps[i].name)
	}
	return list
}

// use returns the group that a step names; nil if there is none.
func (d *decoder) use(name *node) *fileGroup {
	g := d.groupOf(name.text)
	if g != nil {
		d.used[g.name] = true
		return g
	}
	known := d.groupNames()
	d.bad(name.pos, missing(name.text, known), "there is no group %s", quote(name.text))
	for _, g := range known { // whichever was meant
		d.used[g] = true
	}
	return nil
}

// overrides reads the settings that a group has for one step only.
func (d *decoder) overrides(n *node, g *fileGroup) []entry {
	pairs := d.fields(n, "the group "+g.name, "SETTING: VALUE")
	for _, key := range groupShape() {
		if i := n.get(key); i != nil && key != keyMessages && key != keyChoose {
			d.bad(i.pos, "make a group of its own", "a step cannot change the %s of a group", key)
		}
	}
	return d.entriesOfGroup(pairs, g.role)
}

var ofStep = regexp.MustCompile(`^\s*([^\s:<>=!]+)\s*:\s*(.*)$`)

// readThresholds reads the thresholds of a step, or, if step is empty, of the run.
func (d *decoder) readThresholds(n *node, step string) (list []fileThreshold) {
	if n.kind == mapping {
		d.bad(n.pos, "- lost == 0", "thresholds must be a list, not a map")
		return nil
	}
	for _, item := range d.oneOrMore(n, "thresholds") {
		t := fileThreshold{step: step}
		text, abort := item, false
		if item.kind == mapping {
			if text, abort = d.thresholdMap(item); text == nil {
				continue
			}
		}
		demand, ok := d.text(text, "a threshold")
		if !ok {
			continue
		}
		demand = strings.TrimSpace(demand)
		if m := ofStep.FindStringSubmatch(demand); m != nil {
			if known := d.stepNames(); step != "" && m[1] != step {
				d.bad(text.pos, "put it under thresholds: at the top", "a threshold of the step %s cannot be about %s", step,
					quote(m[1]))
			} else if !slices.Contains(known, m[1]) {
				d.bad(text.pos, missing(m[1], known), "there is no step %s", quote(m[1]))
			}
			t.step, demand = m[1], m[2]
		}
		if !d.judge(text, d.keys.shape["threshold"], demand) {
			continue
		}
		t.Threshold, _ = ParseThreshold(demand)
		t.Abort, t.pos = abort, text.pos
		list = append(list, t)
	}
	return list
}

// thresholdMap reads {threshold: TEXT, abort: true}; text is nil after a mistake.
func (d *decoder) thresholdMap(n *node) (text *node, abort bool) {
	for _, p := range n.pairs {
		switch p.key.text {
		case "threshold":
			text = p.value
		case "abort":
			word, ok := d.text(p.value, "abort")
			if ok && word != "true" && word != "false" {
				d.bad(p.value.pos, "", "abort: must be true or false")
			}
			abort = word == "true"
		default:
			d.unknown(p.key, 0, "a threshold", "threshold", "abort")
		}
	}
	if text == nil {
		d.bad(n.pos, `"STEP: lost == 0", or {threshold: "lost == 0", abort: true}`, "a threshold has no text")
	}
	return text, abort
}
