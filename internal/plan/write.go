package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v4"
)

// tree is a map with ordered keys. Its values are texts, numbers, booleans, lists and trees.
type tree []entry

type entry struct {
	key   string
	value any
}

// add adds a value unless it says nothing: nil, or an empty text, list or tree.
func (t *tree) add(key string, value any) {
	v := reflect.ValueOf(value)
	if value == nil || (v.Kind() == reflect.String || v.Kind() == reflect.Slice) && v.Len() == 0 {
		return
	}
	*t = append(*t, entry{key, value})
}

func (t tree) get(key string) any {
	for _, e := range t {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

func (t tree) without(key string) tree {
	return slices.DeleteFunc(slices.Clone(t), func(e entry) bool { return e.key == key })
}

// rows adds the settings of a struct that are data of a plan, without secrets.
func (t *tree) rows(of any, wanted func(*Row) bool) {
	for _, r := range Rows(of) {
		if !r.Is("secret") && !r.Is("made") && !r.Is("flag") && !r.Is("shape") && (wanted == nil || wanted(&r)) {
			t.add(r.Name, r.data())
		}
	}
}

// JSON returns the plan as data, under the names of the settings: each step with its groups in full. Outputs, labels,
// passwords, and the aborts of thresholds are not in it, so that runs that did the same have the same. All texts are as
// clean returns them.
func JSON(p *Plan, clean func(string) string) (json.RawMessage, error) {
	var t tree
	t.add("name", p.Name)
	without := []string{"embedded", "embedded-faults", "broker-count", "seed"} // the load is the same
	var allowed []string                                                       // outcomes that do not fail the run
	for _, r := range Rows(&p.Allow) {
		without = append(without, r.Name)
		if p.Verify && r.Value.Bool() {
			allowed = append(allowed, r.Name[strings.LastIndex(r.Name, "-")+1:])
		}
	}
	t.rows(p, func(r *Row) bool { return !slices.Contains(without, r.Name) })
	t.add("allow", allowed)
	t.add("thresholds", thresholds(p.Thresholds, false))
	var steps []any
	for _, s := range p.Steps {
		of := s.tree()
		of.add("thresholds", thresholds(s.Thresholds, false))
		var groups []any
		for _, g := range s.Groups {
			whole := g.tree(nil)
			whole.add("name", g.Name)
			for i, b := range g.Brokers() {
				at := b.tree(false)
				at.add("name", b.Name)
				whole.add([]string{"broker", "consumer-broker"}[i], at)
			}
			groups = append(groups, whole)
		}
		of.add("groups", groups)
		steps = append(steps, of)
	}
	t.add("steps", steps)
	var data map[string]any
	if err := node(t, clean).Decode(&data); err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	return json.Marshal(data)
}

// tree is the group without its name, with the names of its brokers. Without names it is for JSON, and tells
// contents of body files apart.
func (g *Group) tree(names map[*Broker]string) tree {
	t := tree{{"role", string(g.Role)}}
	brokers := g.Brokers()
	t.add("broker", names[brokers[0]])
	if len(brokers) > 1 {
		t.add("consumer-broker", names[brokers[1]])
	}
	var destinations []string
	for _, d := range g.Destinations {
		destinations = append(destinations, d.String())
	}
	t.add("destinations", destinations)
	t.rows(g, func(r *Row) bool {
		return r.OfRole(g.Role)
	})
	if g.Role.Consumes() {
		t.add("max-message-size", g.ConsumerBroker.LargestBody())
	}
	switch {
	case !g.Role.Produces():
		return t
	case len(g.Mix) == 1 || g.law() != "":
		t = append(t, g.Mix[0].tree(names == nil)...)
		if names == nil && g.law() != "" {
			t.add("body", tree{{"bytes", g.meanBody()}})
		}
		return t
	}
	var messages []any
	turn := !slices.ContainsFunc(g.Mix, func(v Variant) bool { return v.Weight != 1 })
	for i := range g.Mix {
		m := g.Mix[i].tree(names == nil)
		if !turn {
			m = append(tree{{"weight", g.Mix[i].Weight}}, m...)
		}
		messages = append(messages, m)
	}
	t.add("messages", messages)
	return t
}

// tree is the step without its groups and thresholds.
func (s *Step) tree() tree {
	var t tree
	t.add("name", s.Name)
	if s.Drained {
		t.add("until", "drained")
	}
	t.rows(s, nil)
	t.add("before", s.Before)
	t.add("after", s.After)
	return t
}

// tree is the broker without its name.
func (b *Broker) tree(embedded bool) tree {
	t := tree{{"protocol", b.Protocol}}
	if !embedded {
		t.add("url", RedactURL(b.URL))
	}
	t.add("management-url", RedactURL(b.Management))
	t.rows(b, func(r *Row) bool {
		return !slices.Contains([]string{"protocol", "url", "management-url", "option"}, r.Name)
	})
	t.add("options", pairs(b.Assigned))
	return t
}

// YAML returns the plan as a scenario that perfmq run carries out, without secrets: what several steps of a group have
// in common is said once. All texts are as clean returns them; comments come first.
func YAML(p *Plan, clean func(string) string, comments ...string) ([]byte, error) {
	if !p.Shard.IsZero() {
		comments = append(slices.Clip(comments),
			fmt.Sprintf("note: this was --shard %s of run %d; the plan is that of all shards", p.Shard, p.RunID))
	}
	if slices.ContainsFunc(p.Brokers(), func(b *Broker) bool {
		return b.PasswordFile == "" && (b.Password != "" || Password(b.URL) != "")
	}) {
		comments = append(slices.Clip(comments), "note: give PERFMQ_PASSWORD to run it again")
	}
	root := node(p.scenario(), func(s string) string { return strings.ReplaceAll(clean(s), "$", "$$") })
	var b strings.Builder
	for _, c := range comments {
		for line := range strings.Lines(clean(c)) {
			b.WriteString(strings.TrimRight("# "+line, " \n") + "\n")
		}
	}
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	return []byte(b.String()), nil
}

// scenario returns the plan as the data of a scenario.
func (p *Plan) scenario() tree {
	t := tree{{"version", 1}}
	t.add("name", p.Name)
	var labels tree
	for _, name := range slices.Sorted(maps.Keys(p.Labels)) {
		labels.add(name, p.Labels[name])
	}
	t.add("labels", labels)
	t.rows(p, nil)
	list, names := p.brokerNames()
	if names[list[0]] == "" {
		t.add("broker", list[0].tree(p.Embedded))
	} else {
		var brokers tree
		for _, b := range list {
			brokers.add(names[b], b.tree(p.Embedded))
		}
		t.add("brokers", brokers)
	}
	p.addGroups(&t, names)
	t.add("thresholds", thresholds(p.Thresholds, true))
	return t
}

// brokerNames returns the different brokers, and the names of all. An only broker needs no name.
func (p *Plan) brokerNames() (list []*Broker, names map[*Broker]string) {
	names = map[*Broker]string{}
	for _, b := range p.Brokers() {
		i := slices.IndexFunc(list, b.Same)
		if i < 0 {
			i, list = len(list), append(list, b)
		}
		names[b] = cmp.Or(b.Name, []string{"producers", "consumers"}[min(i, 1)]) // a client may have two without a name
	}
	if len(list) == 1 && (list[0].Name == "" || list[0].Name == OnlyBroker) {
		clear(names)
	}
	return list, names
}

// addGroups adds the groups, and the steps with their differences.
func (p *Plan) addGroups(t *tree, brokers map[*Broker]string) {
	common := map[string]tree{}
	for _, g := range p.uses() {
		of := g.tree(brokers)
		if known, ok := common[g.Name]; ok {
			of = slices.DeleteFunc(known, func(e entry) bool { return !reflect.DeepEqual(e.value, of.get(e.key)) })
		}
		common[g.Name] = of
	}
	groups := p.Groups()
	if len(groups) == 1 && groups[0].Name == "" {
		t.add("group", common[""])
	} else {
		var all tree
		for _, g := range groups {
			all.add(g.Name, common[g.Name])
		}
		t.add("groups", all)
	}
	if s := &p.Steps[0]; len(p.Steps) == 1 && s.Name == OnlyStep && s.Thresholds == nil {
		*t = append(*t, s.tree().without("name")...)
		return
	}
	var steps []any
	for _, s := range p.Steps {
		of := s.tree()
		of.add("groups", s.uses(brokers, common, len(groups)))
		of.add("thresholds", thresholds(s.Thresholds, true))
		steps = append(steps, of)
	}
	t.add("steps", steps)
}

// uses are the groups of a step, with their differences in it; nil for all groups without a difference.
func (s *Step) uses(brokers map[*Broker]string, common map[string]tree, all int) any {
	var uses tree
	var names []string
	differs := false
	for _, g := range s.Groups {
		own := slices.DeleteFunc(g.tree(brokers), func(e entry) bool { return common[g.Name].get(e.key) != nil })
		var value any // none without a difference
		if len(own) > 0 {
			value, differs = own, true
		}
		uses, names = append(uses, entry{g.Name, value}), append(names, g.Name)
	}
	switch {
	case differs:
		return uses
	case len(names) < all:
		return names
	default:
		return nil
	}
}

// node returns a value for YAML.
func node(value any, clean func(string) string) *yaml.Node {
	switch v := value.(type) {
	case tree:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, e := range v {
			n.Content = append(n.Content, node(e.key, clean), node(e.value, clean))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v {
			n.Content = append(n.Content, node(item, clean))
		}
		return n
	case []string:
		var items []any
		for _, item := range v {
			items = append(items, item)
		}
		return node(items, clean)
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: clean(v)}
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	default: // a number or a boolean
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
	}
}

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
	return append(notes, p.verifyNotes()...)
}

// verifyNotes returns remarks on a verification to which this process contributes only a part.
func (p *Plan) verifyNotes() []string {
	switch {
	case p.Split():
		return []string{"this process judges no message: perfmq merge --follow DIR... does, with the folders of all"}
	case !p.Verify || p.VerifyFile != "":
		return nil
	case p.Shard.Of > 1:
		return []string{"one shard cannot find lost messages: use --result DIR in each, and perfmq merge"}
	case p.Roles() != Client:
		return []string{"one side cannot find lost messages: use --verify-file FILE on both, and perfmq verify"}
	}
	return nil
}

func (g *Group) notes() (notes []string) {
	if law := g.law(); law != "" {
		notes = append(notes, fmt.Sprintf("%s: %d sizes from %d to %d bytes, %d on average", law, len(g.Mix),
			g.Mix[0].Size(), g.LargestBody(), g.meanBody()))
	}
	if !g.Role.Produces() && g.CommitInterval > 0 {
		notes = append(notes, "--commit-interval is for producers, --tx-size for consumers")
	}
	if g.Role.Side() == Client && g.ProducerBroker.Protocol == g.ConsumerBroker.Protocol {
		_, _, from, _ := splitUserinfo(g.ProducerBroker.URL)
		if _, _, to, _ := splitUserinfo(g.ConsumerBroker.URL); from != to {
			notes = append(notes, "producers and consumers use different URLs: the brokers must forward messages")
		}
	}
	return notes
}
