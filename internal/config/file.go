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
	untilDrained = "drained"
	untilCount   = "count"
)

// maxMessages limits the messages of a group.
const maxMessages = 1024

// file is a scenario file: the settings of each part, with positions. References name existing parts.
type file struct {
	name, description string
	labels            []pair
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

// entry is a setting that was given. Texts has one element, or, of a list, any number. pos is the value's position.
type entry struct {
	*Setting
	texts []string
	pos   Pos
}

// fileGroup is a group, or, in a step, the group's settings for that step.
type fileGroup struct {
	part
	role                   plan.Role
	broker, consumerBroker string
	destinations           []string
	messages               []part // kinds of messages, none if its entries say all
}

type fileStep struct {
	part
	uses          []fileGroup
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
	reader
	keys  keys
	vars  map[string]*variable
	order []*variable     // as in the file
	left  int             // bytes that values of variables may still take
	used  map[string]bool // by kind and name of brokers and groups; by kind alone if any of them may be meant
}

// tooMany refuses a list or map with more than so many entries.
func (d *decoder) tooMany(parent *node, key string, most int) bool {
	n := parent.get(key)
	if n == nil || len(n.pairs)+len(n.items) <= most {
		return false
	}
	d.tooLarge(n.pos, "the file", most, key)
	return true
}

// decode reads everything but the variables and the matrix.
func (d *decoder) decode(root *node) {
	for key, most := range map[string]int{"brokers": 256, "groups": 256, "steps": 1024} {
		if d.tooMany(root, key, most) {
			return
		}
	}
	d.readBrokers(root)
	var pairs []pair
	pairs, d.single = d.oneOrNamed(root, "group", "groups", groupForm)
	for _, p := range pairs {
		d.readGroup(p)
	}
	places, shape := InRun, []string{
		"version", "name", "description", "vars", "labels", "defaults", "broker", "brokers", "group", "groups", "steps",
		"thresholds", "before", "after", keyMatrix,
	}
	steps := root.get("steps")
	if steps == nil {
		places, shape = InRun|InStep, append(shape, "until")
	}
	var ofStep []entry
	for _, e := range d.entries(root.pairs, places, "the file", shape...) {
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
				if _, ok := d.text(l.value, "the label "+l.key.text); ok {
					d.labels = append(d.labels, l)
				}
			}
		case "defaults":
			d.defaults = d.entries(d.fields(p.value, "defaults", "SETTING: VALUE"), inDefaults, "the defaults")
		}
	}
	d.before, d.after = d.commands(root, "before"), d.commands(root, "after")
	d.readSteps(root, steps, ofStep)
	for _, b := range d.brokers {
		d.mustBeUsed("group", "broker ", b, len(d.groups))
	}
	for _, g := range d.groups {
		d.mustBeUsed("step", "group ", g.part, len(d.steps))
	}
	if n := root.get("thresholds"); n != nil {
		d.thresholds = d.readThresholds(n, "")
	}
}

// use notes that a broker or group is used: any of them, if a variable or a mistake hides the name.
func (d *decoder) use(kind, name string, n *node, ok bool) {
	if !ok || len(n.uses) > 0 {
		name = ""
	}
	d.used[kind+name] = true
}

// mustBeUsed reports a broker or group that nothing uses, most likely by mistake.
func (d *decoder) mustBeUsed(by, kind string, p part, users int) {
	if users > 0 && !d.used[kind+p.name] && !d.used[kind] {
		d.bad(p.pos, "remove it", "no %s uses the %s%s", by, kind, p.name)
	}
}

// must reports a value of another form than the one wanted.
func (d *decoder) must(n *node, what, wanted, hint string) {
	if !n.broken {
		d.bad(n.pos, hint, "%s must be %s, not %s", what, wanted, n.what())
	}
}

// fields returns the pairs of a map. The parameter what names the map, and form is how to write it.
func (d *decoder) fields(n *node, what, form string) []pair {
	if len(n.pairs) == 0 {
		d.must(n, what, "a map", form)
	}
	return n.pairs
}

// list returns the elements of a list.
func (d *decoder) list(n *node, what, form string) []*node {
	if len(n.items) == 0 {
		d.must(n, what, "a list", form)
	}
	return n.items
}

// text returns one value.
func (d *decoder) text(n *node, what string) (text string, ok bool) {
	if n.kind != scalar || n.null || n.broken {
		hint := ""
		if n.null && n.raw != "" {
			hint = fmt.Sprintf("put %s into quotes", n.raw)
		}
		d.must(n, what, "one value", hint)
		return "", false
	}
	return n.text, true
}

// word returns one of a few words; empty if there is no such key.
func (d *decoder) word(n *node, key string, words ...string) string {
	value := n.get(key)
	if value == nil {
		return ""
	}
	text, ok := d.text(value, key)
	if ok && !slices.Contains(words, text) {
		d.bad(value.pos, nearest.Hint(text, words, "%s", ""), "%s: must be one of %s", key, strings.Join(words, ", "))
	}
	return text
}

// noSuch reports an unknown name.
func (d *decoder) noSuch(n *node, what, name string, known []string) {
	d.bad(n.pos, missing(name, known), "there is no %s %s", what, quote(name))
}

// oneOrMore returns the elements of a list, or the only value.
func (d *decoder) oneOrMore(n *node, what string) []*node {
	if n.kind == sequence {
		return d.list(n, what, "remove the key")
	}
	return []*node{n}
}

// commands reads the shell commands of a key, if it is there.
func (d *decoder) commands(n *node, key string) (list []string) {
	value := n.get(key)
	if value == nil {
		return nil
	}
	for _, item := range d.oneOrMore(value, key) {
		text, ok := d.text(item, key)
		if ok && strings.TrimSpace(text) == "" {
			d.bad(item.pos, "", "%s is an empty command", key)
		} else if ok {
			list = append(list, text)
		}
	}
	return list
}

// oneOrNamed returns the parts of a kind by their names, or the only one, without a name.
func (d *decoder) oneOrNamed(root *node, key, keys, form string) (pairs []pair, single bool) {
	one, many := root.get(key), root.get(keys)
	switch {
	case one != nil && many != nil:
		d.exclude(one.pos, key, keys)
	case one != nil:
		return []pair{{&node{pos: one.pos}, one}}, true
	case many == nil:
		d.lacks(d.top(), keys+": {NAME: "+form+"}", "the file", keys)
		return nil, false
	}
	pairs = d.fields(many, keys, "NAME: "+form)
	for _, p := range pairs {
		d.goodName(p.key.pos, keys, p.key.text)
	}
	return pairs, false
}

var plainName = regexp.MustCompile(`^[a-z0-9_.-]{1,64}$`)

// goodName reports a name that cannot be used in metrics and thresholds.
func (d *decoder) goodName(pos Pos, of, name string) {
	if !plainName.MatchString(name) {
		d.badName(pos, "use up to 64 of a-z, 0-9, -, _ and .", of, name)
	}
}

// badName reports a name with characters that it cannot have.
func (d *decoder) badName(pos Pos, hint, of, name string) {
	d.bad(pos, hint, "%s cannot be a name of %s", quote(name), of)
}

// quote puts a text of a file into quotes. Control characters and secrets are hidden by [reader.bad].
func quote(text string) string { return `"` + text + `"` }

// entries reads settings of some places. Of names these, shape are the keys there that are no settings.
func (d *decoder) entries(pairs []pair, places Scope, of string, shape ...string) (list []entry) {
	given := map[string]*node{}
	for _, p := range pairs {
		if slices.Contains(shape, p.key.text) {
			continue
		}
		if len(d.mistakes) > maxMistakes {
			break
		}
		s := d.keys.find(p.key.text, places)
		if s == nil {
			d.unknown(p.key, places, of, shape...)
			continue
		}
		if before := given[s.Name]; before != nil {
			d.twice(p.key, before.pos)
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
	if s := d.keys[key.text]; s != nil {
		hint := "it belongs to " + s.Places.String()
		if s.Places&inDefaults != 0 {
			hint += ", or under defaults:"
		}
		d.bad(key.pos, hint, "%s is no setting of %s", key.text, of)
		return
	}
	hint := ""
	if n := d.keys.nearest(key.text, places, shape); n != "" {
		hint = "did you mean " + n + "?"
	} else if len(shape) > 0 && places == 0 {
		hint = "known are " + strings.Join(shape, ", ")
	}
	d.bad(key.pos, hint, "unknown setting %s of %s", quote(key.text), of)
}

// entry reads the value of a setting.
func (d *decoder) entry(n *node, s *Setting) (entry, bool) {
	e := entry{Setting: s, pos: n.pos}
	ok := true
	add := func(item *node, prefix string) {
		text, good := d.text(item, s.Name)
		if good && s.join() == "" {
			good = d.judge(item, s, prefix+text)
		}
		e.texts, ok = append(e.texts, prefix+text), ok && good
	}
	switch {
	case n.kind == mapping && s.Pairs:
		for _, p := range d.fields(n, s.Name, "KEY: VALUE") {
			if strings.Contains(p.key.text, "=") {
				d.bad(p.key.pos, "", "%s: a key cannot hold =", s.Name)
			}
			add(p.value, p.key.text+"=")
		}
	case n.kind == sequence && (s.List || s.join() != ""):
		for _, item := range d.oneOrMore(n, s.Name) {
			add(item, "")
		}
	default:
		add(n, "")
	}
	if s.join() != "" && ok && len(e.texts) > 0 {
		e.texts = []string{strings.Join(e.texts, s.join())}
		ok = d.judge(n, s, e.texts[0])
	}
	return e, ok && len(e.texts) > 0
}

// maxWritten is the length of a value up to which a mistake shows it.
const maxWritten = 200

// judge reports a value that a setting cannot have.
func (d *decoder) judge(n *node, s *Setting, text string) bool {
	err := s.Check(text)
	if err == nil {
		return true
	}
	hint, written := "", ""
	if !s.Secret {
		hint = nearest.Hint(text, s.Words, "%s", "")
		if len(n.uses) > 0 && len(text) <= maxWritten {
			written = fmt.Sprintf("; with its variables it is %s", quote(text))
		}
	}
	d.bad(n.pos, hint, "%s: %v%s", s.Name, err, written)
	return false
}

// readBrokers reads `brokers`, or the settings of the only one.
func (d *decoder) readBrokers(root *node) {
	const form = "{protocol: amqp, url: amqp://localhost:5672}"
	pairs, single := d.oneOrNamed(root, "broker", "brokers", form)
	for _, p := range pairs {
		name, what := p.key.text, "the broker "+p.key.text
		if single {
			name, what = plan.OnlyBroker, "broker"
		}
		fields := d.fields(p.value, what, form)
		d.brokers = append(d.brokers, part{name, d.entries(fields, InBroker, "a broker"), p.key.pos})
	}
}

// groupForm is an example of a group.
const groupForm = "{role: producer, destination: queue://TEST}"

func (d *decoder) readGroup(p pair) {
	g := fileGroup{part: part{name: p.key.text, pos: p.key.pos}}
	what := strings.TrimSpace("the group " + g.name)
	pairs := d.fields(p.value, what, groupForm)
	if p.value.get("role") == nil && len(pairs) > 0 {
		d.lacks(p.key.pos, "role: producer", what, "role")
	}
	roles := []string{string(plan.Producer), string(plan.Consumer)}
	if d.single { // both sides of a group would have its name
		roles = append(roles, string(plan.Client))
	}
	if role := d.word(p.value, "role", roles...); slices.Contains(roles, role) {
		g.role = plan.Role(role)
	}
	g.broker = d.brokerOf(p, "broker")
	if p.value.get("consumer-broker") != nil {
		g.consumerBroker = d.brokerOf(p, "consumer-broker")
	}
	for _, key := range []string{"destination", "destinations"} {
		if n := p.value.get(key); n != nil {
			g.destinations = append(g.destinations, d.readDestinations(n)...)
		}
	}
	if g.role != plan.Consumer {
		g.messages = d.readMessages(p.value)
	}
	g.entries = d.entriesOfGroup(pairs, g.role, "role", "broker", "consumer-broker", "destination",
		"destinations")
	d.groups = append(d.groups, g)
}

// entriesOfGroup reads the settings of a group, or of its use in a step.
func (d *decoder) entriesOfGroup(pairs []pair, role plan.Role, shape ...string) []entry {
	if role != plan.Consumer {
		shape = append(shape, keyMessages)
	}
	places, of := placesOfRole(role)
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
func (d *decoder) brokerOf(p pair, key string) string {
	known := names(d.brokers)
	n := p.value.get(key)
	switch {
	case n != nil:
		text, ok := d.text(n, key)
		exists := slices.Contains(known, text)
		if ok && !exists {
			d.noSuch(n, key, text, known)
		}
		d.use("broker ", text, n, exists)
		return text
	case len(known) == 1:
		d.use("broker ", known[0], p.key, true)
		return known[0]
	case len(known) > 1:
		d.use("broker ", "", p.key, true)
		d.lacks(p.key.pos, "broker: NAME; "+missing("", known), "the group "+p.key.text, "broker")
	}
	return ""
}

func (p part) title() string { return p.name }

// names returns the names of parts.
func names[T interface{ title() string }](list []T) (texts []string) {
	for _, p := range list {
		texts = append(texts, p.title())
	}
	return texts
}

// readMessages reads the kinds of messages of a group, or of one in a step.
func (d *decoder) readMessages(n *node) (kinds []part) {
	const form = "messages: [{weight: 80, message-size: 1KiB}, {weight: 20, message-size: 64KiB}]"
	list := n.get(keyMessages)
	if list == nil {
		return nil
	}
	items := d.list(list, keyMessages, form)
	if d.tooMany(n, keyMessages, maxMessages) {
		return nil
	}
	for _, item := range items {
		one := part{pos: item.pos}
		one.entries = d.entries(d.fields(item, "a message", "- {weight: 80, message-size: 1KiB}"), InMessage, "a message")
		kinds = append(kinds, one)
	}
	return kinds
}

func (d *decoder) readDestinations(n *node) (list []string) {
	for _, item := range d.oneOrMore(n, "destination") {
		text, ok := d.text(item, "destination")
		if !ok {
			continue
		}
		if _, err := plan.Destinations([]string{text}, 1); err != nil {
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
	items := d.list(n, "steps", "- name: allout")
	for i, item := range items {
		s := d.readStep(item, i)
		if slices.Contains(names(d.steps), s.name) {
			d.twice(&node{text: s.name, pos: s.pos}, s.pos)
		}
		d.steps = append(d.steps, s)
	}
	for i, item := range items {
		if t := item.get("thresholds"); t != nil {
			d.steps[i].thresholds = d.readThresholds(t, d.steps[i].name)
		}
	}
}

func (d *decoder) readStep(n *node, i int) fileStep {
	s := fileStep{part: part{name: fmt.Sprintf("step-%d", i+1), pos: n.pos}}
	pairs := d.fields(n, "a step", "name: allout")
	if name := n.get("name"); name != nil {
		if text, ok := d.text(name, "name"); ok {
			s.name, s.pos = text, name.pos
			d.goodName(name.pos, "steps", text)
		}
	}
	if groups := n.get("groups"); groups != nil {
		s.uses = d.readUses(groups)
	} else {
		s.uses = d.allUses()
	}
	s.until, s.before, s.after = d.until(n), d.commands(n, "before"), d.commands(n, "after")
	s.entries = d.entries(pairs, InStep, "a step", "name", "groups", "until", "before", "after", "thresholds")
	return s
}

func (d *decoder) until(n *node) string {
	return d.word(n, "until", untilDrained, untilCount)
}

// allUses is of a step that names no groups.
func (d *decoder) allUses() (list []fileGroup) {
	d.use("group ", "", nil, false)
	for _, g := range d.groups {
		list = append(list, fileGroup{part: part{name: g.name, pos: g.pos}})
	}
	return list
}

// readUses reads the groups of a step: a list of names, or a map from names to settings.
func (d *decoder) readUses(n *node) (list []fileGroup) {
	pairs := n.pairs
	if n.kind != mapping {
		for _, item := range d.oneOrMore(n, "groups") {
			if _, ok := d.text(item, "the name of a group"); ok {
				pairs = append(pairs, pair{item, &node{kind: scalar, null: true}})
			} else {
				d.use("group ", "", item, false)
			}
		}
	} else if len(pairs) == 0 {
		d.must(n, "groups", "a list or a map", "remove the key for all groups")
	}
	for _, p := range pairs {
		name := p.key.text
		g := d.groupOf(name)
		d.use("group ", name, p.key, g != nil)
		switch {
		case g == nil:
			d.noSuch(p.key, "group", name, names(d.groups))
			continue
		case slices.ContainsFunc(list, func(u fileGroup) bool { return u.name == name }):
			d.twice(p.key, p.key.pos)
			continue
		}
		u := fileGroup{part: part{name: name, pos: p.key.pos}}
		if empty := p.value.kind == mapping && len(p.value.pairs) == 0; !empty && !p.value.null {
			u.entries = d.entriesOfGroup(d.fields(p.value, "the group "+name, "SETTING: VALUE"), g.role)
			if g.role != plan.Consumer {
				u.messages = d.readMessages(p.value)
			}
		}
		list = append(list, u)
	}
	return list
}

// groupOf returns the group of a name, or nil.
func (f *file) groupOf(name string) *fileGroup {
	i := slices.IndexFunc(f.groups, func(g fileGroup) bool { return g.name == name })
	if i < 0 {
		return nil
	}
	return &f.groups[i]
}

var ofStep = regexp.MustCompile(`^\s*([^\s:<>=!]+)\s*:\s*(.*)$`)

// readThresholds reads the thresholds of a step, or, if step is empty, of the run.
func (d *decoder) readThresholds(n *node, step string) (list []fileThreshold) {
	if n.kind == mapping {
		d.must(n, "thresholds", "a list", "- lost == 0")
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
			if known := names(d.steps); step != "" && m[1] != step {
				d.bad(text.pos, "", "a threshold of the step %s is about %s", step, quote(m[1]))
			} else if !slices.Contains(known, m[1]) {
				d.noSuch(text, "step", m[1], known)
			}
			t.step, demand = m[1], m[2]
		}
		var err error
		if t.Threshold, err = ParseThreshold(demand); err != nil {
			d.bad(text.pos, "", "threshold: %v", err)
			continue
		}
		t.Abort, t.pos = abort, text.pos
		list = append(list, t)
	}
	return list
}

// thresholdMap reads {threshold: TEXT, abort: true}; text is nil after a mistake.
func (d *decoder) thresholdMap(n *node) (text *node, abort bool) {
	for _, p := range n.pairs {
		if p.key.text != "threshold" && p.key.text != "abort" {
			d.unknown(p.key, 0, "a threshold", "threshold", "abort")
		}
	}
	if text = n.get("threshold"); text == nil {
		d.lacks(n.pos, `"STEP: lost == 0", or {threshold: "lost == 0", abort: true}`, "a threshold", "text")
	}
	return text, d.word(n, "abort", "true", "false") == "true"
}
