package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/perfmq/perfmq/pkg/driver"
)

// tree is a map with ordered keys. Its values are texts, numbers, booleans, lists ([]any) and trees.
type tree []entry

type entry struct {
	key   string
	value any
}

// add adds a value unless it is nil.
func (t *tree) add(key string, value any) {
	if value != nil {
		*t = append(*t, entry{key, value})
	}
}

func (t tree) get(key string) any {
	for _, e := range t {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

func (t tree) orNil() any {
	if t == nil {
		return nil
	}
	return t
}

// rows adds the settings of a struct that are data of a plan, without secrets.
func (t *tree) rows(of any, wanted func(*Row) bool) {
	for _, r := range Rows(of) {
		if !r.Is("secret") && !r.Is("flag") && !r.Is("shape") && (wanted == nil || wanted(&r)) {
			t.add(r.Name, r.data())
		}
	}
}

func texts(list []string) any {
	if len(list) == 0 {
		return nil
	}
	all := make([]any, len(list))
	for i := range list {
		all[i] = list[i]
	}
	return all
}

// JSON returns the plan as data, with all defaults, under the names of the settings: each step with its groups in full.
// Names of output files, labels and passwords are not in it, so that runs that did the same have the same. All texts,
// which are the user's, are as clean returns them.
func JSON(p *Plan, clean func(string) string) (json.RawMessage, error) {
	var t tree
	t.add("name", text(p.Name))
	without := []string{ // what does not change the load; allow says which outcomes do not fail the run
		"embedded", "embedded-faults", "broker-count", "allow-lost", "allow-duplicates", "allow-damaged", "fail-on-disorder",
	}
	t.rows(p, func(r *Row) bool { return !slices.Contains(without, r.Name) })
	if !p.Verify {
		t.add("verify", false)
	}
	t.add("allow", texts(p.allowed()))
	t.add("thresholds", plain(thresholds(p.Thresholds)))
	var steps []any
	for i := range p.Steps {
		s := &p.Steps[i]
		of := s.tree()
		of.add("thresholds", plain(thresholds(s.Thresholds)))
		var groups []any
		for _, g := range s.Groups {
			groups = append(groups, g.whole())
		}
		of.add("groups", groups)
		steps = append(steps, of)
	}
	t.add("steps", steps)
	return json.Marshal(asMap(t, clean))
}

// allowed names the outcomes of the verification that do not make the run a failure.
func (p *Plan) allowed() (list []string) {
	for _, a := range []struct {
		allowed bool
		what    string
	}{
		{p.Allow.Lost, "lost"},
		{p.Allow.Duplicates, "duplicates"},
		{p.Allow.Damaged, "damaged"},
		{p.Allow.Disorder, "disorder"},
	} {
		if p.Verify && a.allowed {
			list = append(list, a.what)
		}
	}
	return list
}

// plain returns thresholds without their aborts, which do not change the measurement.
func plain(list any) any {
	all, _ := list.([]any)
	for i := range all {
		if t, ok := all[i].(tree); ok {
			all[i] = t.get("threshold")
		}
	}
	return list
}

// asMap returns a value for JSON, with all texts and keys cleaned.
func asMap(value any, clean func(string) string) any {
	switch v := value.(type) {
	case string:
		return clean(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = asMap(v[i], clean)
		}
		return list
	case tree:
		m := make(map[string]any, len(v))
		for _, e := range v {
			m[clean(e.key)] = asMap(e.value, clean)
		}
		return m
	}
	return value
}

// whole is the group with its brokers and messages, for [JSON].
func (g *Group) whole() tree {
	var t tree
	t.add("name", text(g.Name))
	t.add("role", string(g.Role))
	brokers := g.Brokers()
	t.add("broker", brokers[0].tree(true))
	if len(brokers) > 1 {
		t.add("consumer-broker", brokers[1].tree(true))
	}
	t = append(t, g.tree()...)
	if len(g.Mix) == 1 && g.Role.Produces() {
		t.add("body", g.Mix[0].BodySource())
		t.rows(&g.Mix[0].Variant, nil)
		return t
	}
	var messages []any
	for i := range g.Mix {
		m := tree{{"weight", g.Mix[i].Weight}, {"body", g.Mix[i].BodySource()}}
		m.rows(&g.Mix[i].Variant, nil)
		messages = append(messages, m)
	}
	if g.Role.Produces() {
		t.add("messages", messages)
	}
	return t
}

// tree is the group without name, role, brokers and messages.
func (g *Group) tree() tree {
	var t tree
	var names []string
	for _, d := range g.Destinations {
		names = append(names, d.String())
	}
	t.add("destinations", texts(names))
	t.rows(g, func(r *Row) bool {
		switch r.Tag.Get("roles") {
		case "producer":
			return g.Role.Produces()
		case "consumer":
			return g.Role.Consumes()
		default:
			return true
		}
	})
	if g.Role.Consumes() {
		t.add("max-message-size", g.ConsumerBroker.LargestBody())
	}
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
	t.add("before", texts(s.Before))
	t.add("after", texts(s.After))
	return t
}

// tree is the broker, with all options of its protocol or with the given ones.
func (b *Broker) tree(all bool) tree {
	t := tree{{"protocol", b.Protocol}}
	if all {
		t.add("name", text(b.Name))
		t.add("client", text(b.Client))
	}
	t.add("url", text(b.Shown()))
	t.add("management-url", text(RedactURL(b.Management)))
	given := map[string]bool{"protocol": true, "url": true, "management-url": true, "client": all, "option": true}
	t.rows(b, func(r *Row) bool { return !given[r.Name] })
	if !all {
		options := Row{Value: reflect.ValueOf(b.Assigned)}
		t.add("options", options.data())
		return t
	}
	var options tree
	for _, o := range driver.Describe(b.Options) {
		options.add(o.Name, o.Default)
	}
	t.add("options", options.orNil())
	return t
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
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
	w := writer{plan: p, brokers: map[*Broker]string{}}
	root := node(w.file(), func(s string) string { return strings.ReplaceAll(clean(s), "$", "$$") })
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

// writer makes the tree of a scenario.
type writer struct {
	plan    *Plan
	brokers map[*Broker]string // names
}

func (w *writer) file() tree {
	p := w.plan
	t := tree{{"version", 1}}
	t.add("name", text(p.Name))
	labels := Row{Value: reflect.ValueOf(p.Labels)}
	t.add("labels", labels.data())
	t.rows(p, nil)
	w.addBrokers(&t)
	w.addGroups(&t)
	t.add("thresholds", thresholds(p.Thresholds))
	return t
}

// addBrokers adds the brokers: the only one without a name.
func (w *writer) addBrokers(t *tree) {
	var list []*Broker
	for _, b := range w.plan.Brokers() {
		i := 0
		for i < len(list) && !list[i].Same(b) {
			i++
		}
		if i == len(list) {
			list = append(list, b)
		}
		w.brokers[b] = list[i].Name
	}
	named := func(b *Broker) tree {
		of := b.tree(false)
		if w.plan.Embedded {
			of = withoutKey(of, "url")
		}
		return of
	}
	if len(list) == 1 && (list[0].Name == "" || list[0].Name == OnlyBroker) {
		t.add("broker", named(list[0]))
		return
	}
	var brokers tree
	for i, b := range list {
		name := b.Name
		if name == "" { // of a client with two
			name = []string{"producers", "consumers"}[min(i, 1)]
			for other := range w.brokers {
				if other.Same(b) {
					w.brokers[other] = name
				}
			}
		}
		brokers.add(name, named(b))
	}
	t.add("brokers", brokers)
}

func withoutKey(t tree, key string) (rest tree) {
	for _, e := range t {
		if e.key != key {
			rest = append(rest, e)
		}
	}
	return rest
}

// addGroups adds the groups, and the steps with their differences.
func (w *writer) addGroups(t *tree) {
	p := w.plan
	common := map[string]tree{}
	for i := range p.Steps {
		for _, g := range p.Steps[i].Groups {
			of := w.group(g)
			if known, ok := common[g.Name]; ok {
				of = intersection(known, of)
			}
			common[g.Name] = of
		}
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
		*t = append(*t, withoutKey(s.tree(), "name")...)
		return
	}
	var steps []any
	for i := range p.Steps {
		s := &p.Steps[i]
		of := s.tree()
		of.add("groups", w.uses(s, common, groups))
		of.add("thresholds", thresholds(s.Thresholds))
		steps = append(steps, of)
	}
	t.add("steps", steps)
}

// uses are the groups of a step, with their differences in it; nil for all groups without a difference.
func (w *writer) uses(s *Step, common map[string]tree, all []*Group) any {
	var uses tree
	var names []string
	differs := false
	for _, g := range s.Groups {
		var own tree
		for _, e := range w.group(g) {
			if common[g.Name].get(e.key) == nil {
				own = append(own, e)
			}
		}
		differs = differs || own != nil
		uses, names = append(uses, entry{g.Name, own.orNil()}), append(names, g.Name)
	}
	switch {
	case differs:
		return uses
	case len(names) < len(all):
		return texts(names)
	default:
		return nil
	}
}

// group is a group of the scenario.
func (w *writer) group(g *Group) tree {
	t := tree{{"role", string(g.Role)}}
	brokers := g.Brokers()
	t.add("broker", text(w.nameOf(brokers[0])))
	if len(brokers) > 1 {
		t.add("consumer-broker", text(w.nameOf(brokers[1])))
	}
	t = append(t, g.tree()...)
	if brokers[0].Given != "" { // a failover URL has other defaults
		t = withoutKey(t, "reconnect")
		t.add("reconnect", g.Reconnect)
		if g.Hosts == InOrder {
			t.add("hosts", string(InOrder))
		}
	}
	if !g.Role.Produces() {
		return t
	}
	if len(g.Mix) == 1 {
		return append(t, g.Mix[0].tree()...)
	}
	var messages []any
	turn := true
	for i := range g.Mix {
		turn = turn && g.Mix[i].Weight == 1
	}
	for i := range g.Mix {
		m := g.Mix[i].tree()
		if !turn {
			m = append(tree{{"weight", g.Mix[i].Weight}}, m...)
		}
		messages = append(messages, m)
	}
	t.add("messages", messages)
	return t
}

// nameOf returns the name of a broker; empty if there is only one.
func (w *writer) nameOf(b *Broker) string {
	if w.brokers[b] == OnlyBroker {
		return ""
	}
	return w.brokers[b]
}

// intersection returns what two trees have in common.
func intersection(a, b tree) (both tree) {
	for _, e := range a {
		if reflect.DeepEqual(e.value, b.get(e.key)) {
			both = append(both, e)
		}
	}
	return both
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
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: clean(v)}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprint(v)}
	}
}
