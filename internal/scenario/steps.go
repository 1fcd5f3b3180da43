package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
)

// steps reads `steps`, or makes the only one, with the settings given.
func (d *decoder) steps(root *node, entries []Entry) {
	n := root.get("steps")
	if n == nil {
		s := Step{Name: DefaultStep, Entries: entries, Until: d.until(root), Pos: root.pos}
		s.Uses = d.allUses()
		d.file.Steps = []Step{s}
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
		s := d.step(item, i)
		if before, twice := taken[s.Name]; twice {
			d.bad(s.Pos, fmt.Sprintf("the first is in line %d", before.Line), "there are two steps %s", s.Name)
		} else {
			taken[s.Name] = s.Pos
		}
		d.file.Steps = append(d.file.Steps, s)
	}
	for _, g := range d.file.Groups {
		if !d.groups[g.Name] && n.kind == sequence && len(n.items) > 0 {
			d.bad(g.Pos, "remove it, or name it in a step", "no step uses the group %s", g.Name)
		}
	}
	for i, item := range n.items {
		if t := item.get("thresholds"); t != nil {
			d.file.Steps[i].Thresholds = d.thresholds(t, d.file.Steps[i].Name)
		}
	}
}

func (d *decoder) step(n *node, i int) Step {
	s := Step{Name: fmt.Sprintf("step-%d", i+1), Pos: n.pos}
	if len(n.pairs) > 0 {
		s.Pos = n.pairs[0].key.pos
	}
	pairs := d.fields(n, "a step", "name: allout")
	if name := n.get("name"); name != nil {
		if text, ok := d.text(name, "name"); ok {
			s.Name, s.Pos = text, name.pos
			d.goodName(name.pos, "a step", text)
			if strings.Contains(text, ".group.") {
				d.bad(name.pos, "such as "+strings.ReplaceAll(text, ".group.", "-group-"),
					"%s cannot be the name of a step: STEP.group.NAME is a group of a step", quote(text))
			}
		}
	}
	if groups := n.get("groups"); groups != nil && groups.null {
		d.text(groups, "groups")
		s.Uses = d.allUses()
	} else if groups != nil {
		s.Uses = d.uses(groups)
	} else {
		s.Uses = d.allUses()
	}
	s.Until = d.until(n)
	if c := n.get("before"); c != nil {
		s.Before = d.commands(c, "before")
	}
	if c := n.get("after"); c != nil {
		s.After = d.commands(c, "after")
	}
	s.Entries = d.entries(pairs, InStep, "a step", stepShape()...)
	return s
}

func (d *decoder) until(n *node) string {
	until := n.get("until")
	if until == nil {
		return ""
	}
	text, ok := d.text(until, "until")
	if known := untils(); ok && !slices.Contains(known, text) {
		d.bad(until.pos, missing(text, known), "a step cannot last until %s", quote(text))
	}
	return text
}

// untils are the values of `until`.
func untils() []string { return []string{UntilDrained, UntilCount, UntilIdle} }

// allUses is of a step that names no groups.
func (d *decoder) allUses() (list []Use) {
	for _, g := range d.file.Groups {
		d.groups[g.Name] = true
		list = append(list, Use{Group: g.Name, Pos: g.Pos})
	}
	return list
}

// uses reads the groups of a step: a list of names, or a map from names to settings.
func (d *decoder) uses(n *node) (list []Use) {
	if n.kind == mapping {
		if len(n.pairs) == 0 {
			d.bad(n.pos, "name one, or remove the key for all groups", "the step has no groups")
		}
		for _, p := range n.pairs {
			i := d.use(p.key)
			if i < 0 {
				continue
			}
			u := Use{Group: p.key.text, Pos: p.key.pos}
			if empty := p.value.kind == mapping && len(p.value.pairs) == 0; !empty && !p.value.null {
				u.Entries = d.overrides(p.value, &d.file.Groups[i])
				u.Messages, u.Turn = d.messages(d.file.Groups[i].Role, p.value)
			}
			list = append(list, u)
		}
		return list
	}
	if n.kind == sequence && len(n.items) == 0 {
		d.bad(n.pos, "name one, or remove the key for all groups", "the step has no groups")
		return nil
	}
	taken := map[string]bool{}
	for _, item := range d.oneOrMore(n, "groups") {
		text, ok := d.text(item, "the name of a group")
		switch {
		case !ok || d.use(item) < 0:
		case taken[text]:
			d.bad(item.pos, "", "the group %s is named twice", text)
		default:
			taken[text] = true
			list = append(list, Use{Group: text, Pos: item.pos})
		}
	}
	return list
}

// use returns the index of the group that a step names, -1 if there is none.
func (d *decoder) use(name *node) int {
	i := find(d.file.Groups, name.text, groupName)
	if i < 0 {
		known := names(d.file.Groups, groupName)
		d.bad(name.pos, missing(name.text, known), "there is no group %s", quote(name.text))
		for _, g := range known { // whichever was meant
			d.groups[g] = true
		}
		return -1
	}
	d.groups[name.text] = true
	return i
}

// overrides reads the settings that a group has for one step only.
func (d *decoder) overrides(n *node, g *Group) []Entry {
	places, of := inGroup, "a group"
	switch g.Role {
	case Producer:
		places, of = InProducerGroup, "a producer group"
	case Consumer:
		places, of = InConsumerGroup, "a consumer group"
	}
	pairs := d.fields(n, "the group "+g.Name, "SETTING: VALUE")
	for _, key := range groupShape() {
		if i := n.get(key); i != nil && key != keyMessages && key != keyChoose {
			d.bad(i.pos, "make a group of its own", "a step cannot change the %s of a group", key)
		}
	}
	return d.entries(pairs, places, of, groupShape()...)
}

var (
	ofStep = regexp.MustCompile(`^\s*([^\s:<>=!]+)\s*:\s*(.*)$`)
	ofRate = regexp.MustCompile(`%\s*of\s+([^\s,;)]+)`)
)

// thresholds reads the demands on a step, or, if step is empty, on the run.
func (d *decoder) thresholds(n *node, step string) (list []Threshold) {
	if n.kind == mapping {
		d.bad(n.pos, "- lost == 0", "thresholds must be a list, not a map")
		return nil
	}
	for _, item := range d.oneOrMore(n, "thresholds") {
		t := Threshold{Pos: item.pos}
		text := item
		if item.kind == mapping {
			var ok bool
			if text, t.Abort, ok = d.thresholdMap(item); !ok {
				continue
			}
		}
		demand, ok := d.text(text, "a threshold")
		if !ok {
			continue
		}
		t.Pos, t.Step, t.Text = text.pos, step, strings.TrimSpace(demand)
		if m := ofStep.FindStringSubmatch(demand); m != nil {
			t.Text = m[2]
			if step != "" && m[1] != step {
				d.bad(text.pos, "put it under thresholds: at the top", "a threshold of the step %s cannot be about %s", step,
					quote(m[1]))
			} else if find(d.file.Steps, m[1], stepName) < 0 {
				d.bad(text.pos, missing(m[1], names(d.file.Steps, stepName)), "there is no step %s", quote(m[1]))
			}
			t.Step = m[1]
		}
		if k := d.keys.shape["threshold"]; k != nil {
			if err := k.judge(t.Text); err != nil {
				d.refuse(text, k, t.Text, err)
			}
		}
		list = append(list, t)
	}
	return list
}

// thresholdMap reads {threshold: TEXT, abort: true}.
func (d *decoder) thresholdMap(n *node) (text *node, abort, ok bool) {
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
			if len(n.pairs) == 1 && p.value.kind == scalar { // - STEP: METRIC OPERATOR VALUE
				d.bad(p.key.pos, fmt.Sprintf(`put it into quotes: "%s: %s"`, p.key.text, p.value.text),
					"a threshold of a step is one text")
				return nil, false, false
			}
			d.unknown(p.key, 0, "a threshold", "threshold", "abort")
		}
	}
	if text == nil {
		d.bad(n.pos, `{threshold: "lost == 0", abort: true}`, "a threshold has no text")
		return nil, false, false
	}
	return text, abort, true
}

// relatives checks that rates such as "80% of allout.completed.avg" name steps before those they are for.
func (d *decoder) relatives() {
	index := map[string]int{}
	for i := range d.file.Steps {
		index[d.file.Steps[i].Name] = i
	}
	groups := map[string]*Group{}
	for i := range d.file.Groups {
		groups[d.file.Groups[i].Name] = &d.file.Groups[i]
	}
	checked := map[Pos]bool{} // the first step that an entry is for is enough
	for i := range d.file.Steps {
		s := &d.file.Steps[i]
		for _, u := range s.Uses {
			given := map[string]bool{}
			for _, entries := range [][]Entry{u.Entries, s.Entries, groups[u.Group].Entries, d.file.Defaults, d.file.Settings} {
				for _, e := range entries {
					if given[e.Key] || !slices.ContainsFunc(d.keys.byName[e.Key], func(k *Key) bool { return k.Relative }) {
						continue
					}
					given[e.Key] = true
					if !checked[e.Pos] {
						checked[e.Pos] = true
						d.relative(e, i, index)
					}
				}
			}
		}
	}
}

// relative checks an entry that is for a step, and perhaps for later ones.
func (d *decoder) relative(e Entry, step int, index map[string]int) {
	known := names(d.file.Steps[:step], stepName)
	hint := "the first step cannot have a relative " + e.Key
	if step > 0 {
		hint = "steps before it are " + strings.Join(known, ", ")
	}
	for _, m := range ofRate.FindAllStringSubmatch(strings.Join(e.Texts, " "), maxRelative) {
		if m[1] == "target" {
			continue
		}
		named, ok := -1, false
		for end := min(len(m[1])-1, maxName); end > 0 && !ok; end-- { // a name may hold dots: the longest that fits is meant
			if m[1][end] == '.' {
				named, ok = index[m[1][:end]]
			}
		}
		switch {
		case !ok:
			name, metric := m[1], ""
			for range 2 { // a metric has two parts
				if dot := strings.LastIndexByte(name, '.'); dot > 0 {
					name, metric = name[:dot], name[dot:]+metric
				}
			}
			if n := nearest.Nearest(name, known); n != "" {
				if metric == "" {
					metric = ".completed.avg"
				}
				hint = "did you mean " + n + metric + "?"
			}
			d.bad(e.Pos, hint, "%s: %s names no step", e.Key, quote(m[1]))
		case named >= step:
			d.bad(e.Pos, hint, "%s of the step %s cannot be relative to %s, which does not run before it",
				e.Key, d.file.Steps[step].Name, d.file.Steps[named].Name)
		}
	}
}

// maxRelative limits how many rates of one entry are looked at.
const maxRelative = 64
