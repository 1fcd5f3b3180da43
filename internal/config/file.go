package config

import (
	"fmt"
	"maps"
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
	part        // the run
	description string
	labels      []pair
	defaults    []entry
	brokers     []*part
	groups      []*part
	steps       []*part           // one at least
	placed      map[[2]string]Pos // of thresholds, by step and text
	single      bool              // its only group has no name, and its brokers belong to the sides of that
}

// part is a part of a file: the run, a broker, a group, its use in a step with the settings there, a kind of messages,
// or a step.
type part struct {
	name    string
	entries []entry
	pos     Pos

	// Of a group. It has no messages if its entries say all.
	role                   plan.Role
	broker, consumerBroker string
	destinations           []string
	messages               []*part

	// Of a step, and some of the run.
	uses          []*part
	until         string
	before, after []string
	thresholds    []threshold.Threshold
}

// entry is a setting that was given. Texts has one element, or, of a list, any number. pos is the value's position.
type entry struct {
	*Setting
	texts []string
	pos   Pos
}

// decoder makes a file of a tree.
type decoder struct {
	*file
	reader
	keys   keys
	schema object // for the keys that are no settings
	vars   map[string]*variable
	order  []*variable     // as in the file
	left   int             // bytes that values of variables may still take
	used   map[string]bool // by kind and name of brokers and groups; by kind alone if any of them may be meant
}

// tooMany refuses a list or map with more than so many entries.
func (d *decoder) tooMany(parent *node, key string, most int) bool {
	n := parent.get(key)
	if len(n.pairs)+len(n.items) <= most {
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
		d.groups = append(d.groups, d.readGroup(p))
	}
	places, shape := InRun|InStep, maps.Clone(properties(d.schema))
	if !root.get("steps").absent {
		places = InRun
		delete(shape, "until")
	}
	d.entries = d.readEntries(root.pairs, places, "the file", shape)
	version := root.get("version")
	if text, ok := d.text(version, "version"); ok && text != Version {
		d.bad(version.pos, "version: "+Version, "version %s of the format is not known", quote(text))
	}
	d.name, d.description = d.optional(root, "name", "name"), d.optional(root, "description", "description")
	for _, l := range d.fields(root.get("labels"), "labels", "NAME: TEXT") {
		if _, ok := d.text(l.value, "the label "+l.key.text); ok {
			d.labels = append(d.labels, l)
		}
	}
	defaults := d.fields(root.get("defaults"), "defaults", "SETTING: VALUE")
	d.defaults = d.readEntries(defaults, inDefaults, "the defaults", nil)
	d.before, d.after = d.commands(root, "before"), d.commands(root, "after")
	d.readSteps(root)
	for _, b := range d.brokers {
		d.mustBeUsed("group", "broker ", b, len(d.groups))
	}
	for _, g := range d.groups {
		d.mustBeUsed("step", "group ", g, len(d.steps))
	}
	d.readThresholds(root, &d.part)
}

// use notes that a broker or group is used: any of them, if a variable or a mistake hides the name.
func (d *decoder) use(kind, name string, n *node, ok bool) {
	if !ok || len(n.uses) > 0 {
		name = ""
	}
	d.used[kind+name] = true
}

// mustBeUsed reports a broker or group that nothing uses, most likely by mistake.
func (d *decoder) mustBeUsed(by, kind string, p *part, users int) {
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

// optional returns the value of a key; empty if there is no such key.
func (d *decoder) optional(n *node, key, what string) string {
	text, _ := d.text(n.get(key), what)
	return text
}

// word returns one of a few words; empty if there is no such key, or another word.
func (d *decoder) word(n *node, key string, words ...string) string {
	value := n.get(key)
	text, ok := d.text(value, key)
	if !ok || slices.Contains(words, text) {
		return text
	}
	d.bad(value.pos, nearest.Hint(text, words, "%s", ""), "%s: must be one of %s", key, strings.Join(words, ", "))
	return ""
}

// noSuch reports an unknown name.
func (d *decoder) noSuch(n *node, what, name string, known []string) {
	d.bad(n.pos, missing(name, known), "there is no %s %s", what, quote(name))
}

// oneOrMore returns the elements of a list, or the only value.
func (d *decoder) oneOrMore(n *node, what string) []*node {
	switch {
	case n.absent:
		return nil
	case n.kind == sequence:
		return d.list(n, what, "remove the key")
	default:
		return []*node{n}
	}
}

// commands reads the shell commands of a key, if it is there.
func (d *decoder) commands(n *node, key string) (list []string) {
	for _, item := range d.oneOrMore(n.get(key), key) {
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
	case !one.absent && !many.absent:
		m := plan.Excludes(key, keys)
		d.bad(one.pos, m.Hint, "%s", m.Text)
	case !one.absent:
		return []pair{{&node{pos: one.pos}, one}}, true
	case many.absent:
		d.lacks(d.top(), keys+": {NAME: "+form+"}", "the file", keys)
		return nil, false
	}
	pairs = d.fields(many, keys, "NAME: "+form)
	for _, p := range pairs {
		d.goodName(plainName, p.key.pos, keys, p.key.text)
	}
	return pairs, false
}

// plainName is of names that metrics and thresholds contain.
var plainName = regexp.MustCompile(`^[a-z0-9_.-]{1,64}$`)

// goodName reports a name with characters that it cannot have.
func (d *decoder) goodName(form *regexp.Regexp, pos Pos, of, name string) bool {
	good := form.MatchString(name)
	if !good {
		letters := "letters"
		if form == plainName {
			letters = "a-z"
		}
		d.bad(pos, "use up to 64 of "+letters+", 0-9, -, _ and .", "%s cannot be a name of %s", quote(name), of)
	}
	return good
}

// quote puts a text of a file into quotes. Control characters and secrets are hidden by [reader.bad].
func quote(text string) string { return `"` + text + `"` }

// readEntries reads settings of some places. Of names these; shape has the keys there that are no settings.
func (d *decoder) readEntries(pairs []pair, places Scope, of string, shape object) (list []entry) {
	given := map[string]*node{}
	for _, p := range pairs {
		if shape[p.key.text] != nil {
			continue
		}
		if len(d.mistakes) > maxMistakes {
			break
		}
		s := d.keys.find(p.key.text, places)
		if s == nil {
			d.unknown(p.key, places, of, shape)
			continue
		}
		if before := given[s.Name]; before != nil {
			d.twice(p.key, before.pos)
			continue
		}
		given[s.Name] = p.key
		if e, ok := d.readEntry(p.value, s); ok {
			list = append(list, e)
		}
	}
	return list
}

// unknown reports a key that has no place where it stands.
func (d *decoder) unknown(key *node, places Scope, of string, shape object) {
	if s := d.keys[key.text]; s != nil {
		hint := "it belongs to " + s.Places.String()
		if s.Places&inDefaults != 0 {
			hint += ", or under defaults:"
		}
		d.bad(key.pos, hint, "%s is no setting of %s", key.text, of)
		return
	}
	known := slices.Sorted(maps.Keys(shape))
	hint := ""
	if n := d.keys.nearest(key.text, places, known); n != "" {
		hint = "did you mean " + n + "?"
	} else if len(shape) > 0 && places == 0 {
		hint = "known are " + strings.Join(known, ", ")
	}
	d.bad(key.pos, hint, "unknown setting %s of %s", quote(key.text), of)
}

// readEntry reads the value of a setting.
func (d *decoder) readEntry(n *node, s *Setting) (entry, bool) {
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
	case n.kind == mapping && s.Is("pairs"):
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
	if !s.Is("secret") {
		hint = nearest.Hint(text, s.Words(), "%s", "")
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
		d.brokers = append(d.brokers, &part{
			name: name, entries: d.readEntries(fields, InBroker, "a broker", nil), pos: p.key.pos,
		})
	}
}

// groupForm is an example of a group.
const groupForm = "{role: producer, destination: queue://TEST}"

func (d *decoder) readGroup(p pair) *part {
	g := &part{name: p.key.text, pos: p.key.pos}
	what := strings.TrimSpace("the group " + g.name)
	if pairs := d.fields(p.value, what, groupForm); p.value.get("role").absent && len(pairs) > 0 {
		d.lacks(p.key.pos, "role: producer", what, "role")
	}
	var roles []string
	for _, role := range Roles() {
		if d.single || role.Side() != plan.Client { // both sides of a group would have its name
			roles = append(roles, string(role))
		}
	}
	g.role = plan.Role(d.word(p.value, "role", roles...))
	g.broker = d.brokerOf(p, "broker")
	if !p.value.get("consumer-broker").absent {
		g.consumerBroker = d.brokerOf(p, "consumer-broker")
	}
	for _, key := range []string{"destination", "destinations"} {
		g.destinations = append(g.destinations, d.readDestinations(p.value.get(key))...)
	}
	d.readSettings(g, p.value, g.role, "group")
	return g
}

// readSettings reads the settings and messages of a group, or of its use in a step: an override.
func (d *decoder) readSettings(g *part, n *node, role plan.Role, as string) {
	shape := properties(d.schema, "$defs", as)
	if role.Side() == plan.Consumer || role == plan.Connections {
		shape = maps.Clone(shape)
		delete(shape, keyMessages)
	} else {
		g.messages = d.readMessages(n)
	}
	places, of := placesOfRole(role)
	g.entries = d.readEntries(n.pairs, places, of, shape)
}

// placesOfRole returns which settings a group has.
func placesOfRole(role plan.Role) (Scope, string) {
	switch role.Side() {
	case plan.Producer:
		return InProducerGroup, "a producer group"
	case plan.Consumer:
		return InConsumerGroup, "a consumer group"
	case plan.Connections:
		return InConnections, "a connections group"
	default:
		return inClient, "a group"
	}
}

// brokerOf finds the broker that a key of a group names.
func (d *decoder) brokerOf(p pair, key string) string {
	known := names(d.brokers)
	n := p.value.get(key)
	switch {
	case !n.absent:
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

// names returns the names of parts.
func names(list []*part) (texts []string) {
	for _, p := range list {
		texts = append(texts, p.name)
	}
	return texts
}

// named returns the part of a name, or nil.
func named(list []*part, name string) *part {
	i := slices.IndexFunc(list, func(p *part) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return list[i]
}

// readMessages reads the kinds of messages of a group, or of one in a step.
func (d *decoder) readMessages(n *node) (kinds []*part) {
	const form = "- {weight: 80, message-size: 1KiB}"
	items := d.list(n.get(keyMessages), keyMessages, form)
	if d.tooMany(n, keyMessages, maxMessages) {
		return nil
	}
	for _, item := range items {
		fields := d.fields(item, "a message", form)
		kinds = append(kinds, &part{entries: d.readEntries(fields, InMessage, "a message", nil), pos: item.pos})
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
			d.bad(item.pos, mistakeOf(err).Hint, "destination: %v", err)
		}
		list = append(list, text)
	}
	return list
}

// readSteps reads `steps`, or makes the only one, with the settings of the file.
func (d *decoder) readSteps(root *node) {
	n := root.get("steps")
	if n.absent {
		d.steps = []*part{{
			name: plan.OnlyStep, entries: d.entries, pos: root.pos, until: d.until(root), uses: d.allUses(),
		}}
		return
	}
	for i, item := range d.list(n, "steps", "- name: allout") {
		s := d.readStep(item, i)
		if named(d.steps, s.name) != nil {
			d.twice(&node{text: s.name, pos: s.pos}, s.pos)
		}
		d.steps = append(d.steps, s)
	}
}

func (d *decoder) readStep(n *node, i int) *part {
	s := &part{name: fmt.Sprintf("step-%d", i+1), pos: n.pos}
	pairs := d.fields(n, "a step", "name: allout")
	name := n.get("name")
	if text, ok := d.text(name, "name"); ok {
		s.name, s.pos = text, name.pos
		d.goodName(plainName, name.pos, "steps", text)
	}
	if groups := n.get("groups"); groups.absent {
		s.uses = d.allUses()
	} else {
		s.uses = d.readUses(groups)
	}
	s.until, s.before, s.after = d.until(n), d.commands(n, "before"), d.commands(n, "after")
	s.entries = d.readEntries(pairs, InStep, "a step", properties(d.schema, "$defs", "step"))
	d.readThresholds(n, s)
	return s
}

func (d *decoder) until(n *node) string {
	return d.word(n, "until", untilDrained, untilCount)
}

// allUses is of a step that names no groups.
func (d *decoder) allUses() (list []*part) {
	d.use("group ", "", nil, false)
	for _, g := range d.groups {
		list = append(list, &part{name: g.name, pos: g.pos})
	}
	return list
}

// readUses reads the groups of a step: a list of names, or a map from names to settings.
func (d *decoder) readUses(n *node) (list []*part) {
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
		g := named(d.groups, name)
		d.use("group ", name, p.key, g != nil)
		switch {
		case g == nil:
			d.noSuch(p.key, "group", name, names(d.groups))
			continue
		case named(list, name) != nil:
			d.twice(p.key, p.key.pos)
			continue
		}
		u := &part{name: name, pos: p.key.pos}
		if empty := p.value.kind == mapping && len(p.value.pairs) == 0; !empty && !p.value.null {
			d.fields(p.value, "the group "+name, "SETTING: VALUE")
			d.readSettings(u, p.value, g.role, "override")
		}
		list = append(list, u)
	}
	return list
}

var ofStep = regexp.MustCompile(`^\s*([^\s:<>=!]+)\s*:\s*(.*)$`)

// readThresholds reads the thresholds of a step, or of the run, which may have those of steps.
func (d *decoder) readThresholds(parent *node, own *part) {
	n, run := parent.get("thresholds"), own == &d.part
	if n.kind == mapping {
		d.must(n, "thresholds", "a list", "- lost == 0")
		return
	}
	for _, item := range d.oneOrMore(n, "thresholds") {
		text, abort := item, false
		if item.kind == mapping {
			text, abort = d.thresholdMap(item)
		}
		demand, ok := d.text(text, "a threshold")
		if !ok {
			continue
		}
		of, step := own, own.name
		if run {
			step = ""
		}
		if m := ofStep.FindStringSubmatch(strings.TrimSpace(demand)); m != nil {
			switch other := named(d.steps, m[1]); {
			case !run && m[1] != step:
				d.bad(text.pos, "", "a threshold of the step %s is about %s", step, quote(m[1]))
			case run && other == nil:
				d.noSuch(text, "step", m[1], names(d.steps))
			case run:
				of, step = other, m[1]
			}
			demand = m[2]
		}
		t, err := ParseThreshold(strings.TrimSpace(demand))
		if err != nil {
			d.bad(text.pos, "", "threshold: %v", err)
			continue
		}
		t.Abort = abort
		of.thresholds = append(of.thresholds, t)
		d.placed[[2]string{step, t.String()}] = text.pos
	}
}

// thresholdMap reads {threshold: TEXT, abort: true}.
func (d *decoder) thresholdMap(n *node) (text *node, abort bool) {
	for _, p := range n.pairs {
		if shape := (object{"abort": true, "threshold": true}); shape[p.key.text] == nil {
			d.unknown(p.key, 0, "a threshold", shape)
		}
	}
	if text = n.get("threshold"); text.absent {
		d.lacks(n.pos, `"STEP: lost == 0", or {threshold: "lost == 0", abort: true}`, "a threshold", "text")
	}
	return text, d.word(n, "abort", "true", "false") == "true"
}
