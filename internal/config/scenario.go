package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Scenario is a scenario file.
type Scenario struct {
	Path        string
	Description string
	Sweep       sweep.Sweep
	Axes        []Axis // of a matrix

	maker  *Maker
	text   []byte
	set    map[string]string
	file   *file
	beside string // the folder of the files that it names; empty for that of the process
}

// Read returns the text of a scenario and its path for messages: of a file, of one inside the program (@NAME), or of
// the plan in the folder of a result.
func (m *Maker) Read(name string) (path string, text []byte, err error) {
	if IsShipped(name) {
		if m.Scenarios == nil {
			return "", nil, plan.Wrong("name a file", "this program has no scenarios inside")
		}
		text, err = open(m.Scenarios, name)
		return name, text, err
	}
	hint := ""
	if path = name; inputfile.IsFolder(name) {
		path, hint = filepath.Join(name, result.PlanFile), "the folder of a result has its plan"
	}
	if text, err = inputfile.Read(path, MaxSize); err != nil {
		err = plan.Wrong(cmp.Or(hint, mistakeOf(err).Hint), "scenario %v", err)
	}
	return path, text, err
}

// Parse reads a scenario; set has values of its variables. The error is of type [Mistakes].
func (m *Maker) Parse(path string, text []byte, set map[string]string) (*Scenario, error) {
	s := &Scenario{Path: path, maker: m, text: text, set: set}
	if !IsShipped(path) && filepath.Base(path) != result.PlanFile { // a plan has the paths of its command line
		s.beside = filepath.Dir(path)
	}
	d, err := s.decode(nil)
	if err != nil {
		return nil, err
	}
	s.Description = d.description
	return s, nil
}

// decode reads the file, with other values of variables.
func (s *Scenario) decode(set map[string]string) (*decoder, error) {
	d := &decoder{
		file: &file{placed: map[[2]string]Pos{}}, reader: s.reader(), keys: newKeys(), schema: readSchema(),
		used: map[string]bool{},
	}
	root := d.tree(s.text)
	if root == nil {
		return nil, d.err()
	}
	all := map[string]string{}
	maps.Copy(all, s.set)
	maps.Copy(all, set)
	d.variables(root, all)
	if d.learn(root) {
		d.decode(root)
		d.sweep(root, s)
	}
	s.file = d.file
	return d, d.err()
}

func (s *Scenario) reader() reader { return reader{path: s.Path, secrets: s.maker.Secrets} }

// Wrong returns a mistake at a place of the file.
func (s *Scenario) Wrong(pos Pos, text, hint string) error {
	r := s.reader()
	r.bad(pos, hint, "%s", text)
	return r.err()
}

// Plan returns the plan of a scenario, or of a cell by the values of its axes, with variables and flags over the file.
// The error has all mistakes.
func (s *Scenario) Plan(in *Given, table []Setting, cell map[string]string) (Ready, error) {
	if len(cell) > 0 {
		if _, err := s.decode(cell); err != nil {
			return Ready{}, err
		}
	}
	b := &builder{
		Scenario: s, reader: s.reader(), in: in, table: table, files: map[string][]plan.Variant{},
		brokers: map[string]usedBroker{},
	}
	return b.build()
}

// builder makes a plan of a file and its flags and variables.
type builder struct {
	*Scenario
	reader
	in    *Given
	table []Setting // of the flags

	whole   *resolver // of the settings of the run
	plan    *plan.Plan
	brokers map[string]usedBroker
	errs    []error
	files   map[string][]plan.Variant
	notes   []string
}

func (b *builder) build() (Ready, error) {
	v := b.values(InRun, nil, b.file.entries)
	b.whole = b.resolver(v, plan.Client)
	p := new(v.Plan)
	b.plan, p.Name = p, b.file.name
	if p.Name == "" && !b.file.single {
		base := b.Path[strings.LastIndexAny(b.Path, "/@")+1:]
		p.Name = strings.TrimSuffix(base, ".yaml")
	}
	b.labels()
	for _, of := range b.file.brokers {
		b.broker(of)
	}
	b.sites()
	for _, of := range b.file.steps {
		b.step(of)
	}
	if last := len(p.Steps) - 1; last >= 0 {
		p.Steps[0].Before = slices.Concat(b.file.before, p.Steps[0].Before)
		p.Steps[last].After = append(p.Steps[last].After, b.file.after...)
	}
	p.Thresholds = slices.Concat(p.Thresholds, b.file.thresholds)
	b.whole.complete(p)
	b.judge()
	return Ready{p, v, b.notes}, errors.Join(b.err(), errors.Join(b.errs...), errors.Join(b.whole.errs...))
}

// judge adds the mistakes of the whole plan, of thresholds at their positions.
func (b *builder) judge() {
	for _, err := range Parts(b.plan.Validate(b.maker.Driver)) {
		var m *plan.Mistake
		if !errors.As(err, &m) {
			b.errs = append(b.errs, fmt.Errorf("%s: %w", b.Path, err))
			continue
		}
		text := strings.ReplaceAll(m.Text, "--", "")
		if pos, ok := b.file.placed[[2]string{m.Step, m.Threshold}]; ok {
			b.bad(pos, m.Hint, "%s", text)
			continue
		}
		b.errs = append(b.errs, plan.Wrong(m.Hint, "%s: %s", b.Path, text))
	}
}

func (b *builder) resolver(v *Values, role plan.Role) *resolver {
	if b.whole != nil {
		v.Plan.Threads, v.Plan.Embedded = b.whole.Plan.Threads, b.whole.Plan.Embedded
		v.sources["embedded"] = b.whole.Source("embedded")
	}
	return &resolver{Maker: b.maker, Values: v, role: role, inFile: true, files: b.files}
}

func (b *builder) labels() {
	labels := map[string]string{}
	for _, l := range b.file.labels {
		if err := CheckLabel(l.key.text, l.value.text); err != nil {
			b.bad(l.key.pos, "", "the label %.80q: %v", l.key.text, err)
		}
		labels[l.key.text] = l.value.text
	}
	maps.Copy(labels, b.plan.Labels) // labels of flags
	if len(labels) > 0 {
		b.plan.Labels = labels
	}
}

// values returns the values of entries of the file, variables and flags; later ones take precedence. Only entries,
// variables and flags of the places are applied, and to the run the settings of command lines.
func (b *builder) values(places Scope, f *driver.Factory, entries []entry) *Values {
	v := Defaults()
	for _, e := range entries {
		if e.Places&places == 0 {
			continue
		}
		for _, text := range e.texts {
			if e.Arg == "FILE" && b.beside != "" && !filepath.IsAbs(text) {
				text = filepath.Join(b.beside, text)
			}
			if err := v.Read(e.Setting, File, text); err != nil { // another value may be valid
				b.bad(e.pos, "", "%s: %v", e.Name, err)
			}
		}
	}
	for i := range b.table {
		s := &b.table[i]
		if s.Places&places != 0 || places == InRun && s.Places == 0 {
			b.over(v, s, f)
		}
	}
	return v
}

// over applies the variable and the flag of a setting. If the file sets a limit of the load, they change that entry and
// add none elsewhere.
func (b *builder) over(v *Values, s *Setting, f *driver.Factory) {
	if (s.Name == "duration" || s.Name == "message-count") && !v.Has(s.Name) && b.file.gives(s.Name) {
		return
	}
	b.errs = append(b.errs, b.in.Apply(s, func(s *Setting, from Source, text string) error {
		if !b.fits(s, f, from, text) {
			return nil
		}
		return v.Read(s, from, text)
	})...)
}

// gives reports whether the defaults, a group or a step of the file have a setting.
func (f *file) gives(name string) bool {
	_, given := last(f.defaults, name)
	for _, of := range slices.Concat(f.groups, f.steps) {
		for _, part := range append(slices.Clip(of.uses), of) {
			_, here := last(part.entries, name)
			given = given || here
		}
	}
	return given
}

// badPart adds mistakes of a broker or group: at a place of the file, unless a variable or flag has made them.
func (b *builder) badPart(what string, pos Pos, errs []error) {
	for _, err := range Parts(errs...) {
		m := mistakeOf(err)
		if s := find(b.table, m.Setting); s != nil && b.in.Has(s) {
			b.errs = append(b.errs, plan.Wrong(m.Hint, "%s: %s%s", b.Path, what, m.Text))
			continue
		}
		b.bad(pos, m.Hint, "%s%s", what, strings.ReplaceAll(m.Text, "--", ""))
	}
}

// last returns the last text of a setting among entries.
func last(entries []entry, name string) (text string, ok bool) {
	for _, e := range entries {
		if e.Name == name {
			text, ok = e.texts[len(e.texts)-1], true
		}
	}
	return text, ok
}

// factory returns the protocol of a broker of the file: that of its setting, or of its URL.
func (b *builder) factory(of *part) *driver.Factory {
	entries := slices.Concat(b.file.defaults, of.entries)
	name, given := last(entries, "protocol")
	address, _ := last(entries, "url")
	f := byScheme(b.maker.Factories, scheme(address))
	if given {
		f = byName(b.maker.Factories, name)
	}
	if f == nil {
		b.bad(of.pos, "the protocols are "+strings.Join(Names(b.maker.Factories), ", "),
			"the broker %s has no protocol, or an unknown one", of.name)
		f = &b.maker.Factories[0]
	}
	return f
}

// broker makes a broker of the file.
func (b *builder) broker(of *part) {
	f, what, entries := *b.factory(of), "", slices.Concat(b.file.defaults, of.entries)
	address, _ := last(entries, "url")
	v := b.values(InBroker, &f, entries)
	v.Broker.Protocol = ""
	r := b.resolver(v, plan.Client)
	at := r.makeBroker("--url", f, v.Broker)
	if !b.file.single {
		at.Name, what = of.name, "broker "+of.name+": "
		if at.Site == "" {
			at.Site = "host " + hosts(address)
		}
	}
	r.setOptions([]usedBroker{at})
	b.brokers[of.name] = at
	b.badPart(what, of.pos, r.errs)
	b.notes = append(b.notes, r.notes...)
}

// sites sets the names of the sites: none if there is one site, else the site's own name or its first broker's.
func (b *builder) sites() {
	names := map[string]string{}
	for _, of := range b.file.brokers {
		at := b.brokers[of.name]
		if _, ok := names[at.Site]; !ok {
			if names[at.Site] = at.Site; strings.HasPrefix(at.Site, "host ") {
				names[at.Site] = at.Name
			}
		}
	}
	for _, at := range b.brokers {
		if at.Site = names[at.Site]; len(names) == 1 {
			at.Site = ""
		}
	}
}

// step adds a step with its groups.
func (b *builder) step(of *part) {
	v := b.values(InStep, nil, slices.Concat(b.file.defaults, of.entries))
	s := v.Step
	s.Name, s.Before, s.After, s.Drained = of.name, of.before, of.after, of.until == untilDrained
	s.Thresholds = of.thresholds
	for _, u := range of.uses {
		s.Groups = append(s.Groups, b.group(u))
	}
	counted := slices.ContainsFunc(s.Groups, func(g *plan.Group) bool { return g.Count > 0 })
	if of.until == untilCount && !counted {
		b.bad(of.pos, "message-count: 10000", "until: count: no group of the step %s has one", of.name)
	}
	b.plan.Steps = append(b.plan.Steps, s)
}

// group returns a group with its settings in a step.
func (b *builder) group(u *part) *plan.Group {
	of := named(b.file.groups, u.name)
	brokers := []usedBroker{b.brokers[of.broker]}
	if of.role.Side() == plan.Client {
		brokers = append(brokers, b.brokers[cmp.Or(of.consumerBroker, of.broker)])
	}
	places, _ := placesOfRole(of.role)
	entries := slices.Concat(b.file.defaults, of.entries, u.entries)
	r := b.resolver(b.values(places, brokers[0].driver, entries), of.role)
	g := r.makeGroup(brokers[0].driver, of.destinations, brokers)
	g.Name = of.name
	what := ""
	if of.name != "" {
		what = "group " + of.name + ": "
	}
	kinds := of.messages
	if len(u.messages) > 0 {
		kinds = u.messages
	}
	if len(kinds) > 0 {
		g.Mix = b.messages(what, g.ProducerBroker, kinds, entries)
	} else {
		g.Mix = r.makeVariants(g.ProducerBroker)
	}
	r.checkEmbedded(g)
	b.badPart(what, u.pos, r.errs)
	b.notes = append(b.notes, r.notes...)
	return g
}

// messages returns the kinds of messages of a group. A message inherits the entries of the group that it does not set.
func (b *builder) messages(what string, broker *plan.Broker, of []*part, inherited []entry) (kinds []plan.Variant) {
	for _, one := range of {
		isBody := func(e entry) bool { return e.Name == "message-size" || strings.HasPrefix(e.Name, "body-") }
		own := slices.IndexFunc(one.entries, isBody)
		entries := slices.DeleteFunc(slices.Clone(inherited), func(e entry) bool {
			return own >= 0 && isBody(e) && e.Name != one.entries[own].Name
		})
		file := own >= 0 && one.entries[own].Name != "message-size"
		v := b.values(InMessage, nil, append(entries, one.entries...))
		if _, filled := last(one.entries, "fill"); file && !filled && v.Source("fill") == File {
			delete(v.sources, "fill") // the group's value is for its other messages
		}
		r := b.resolver(v, plan.Producer)
		list := r.makeVariants(broker)
		if len(list) > 1 {
			r.refuse("", "a message has several sizes or files")
		}
		for i := range list {
			list[i].Weight = v.Message.Weight // 1 of each, if they are sent in turn
		}
		b.badPart(what, one.pos, r.errs)
		kinds = append(kinds, list...)
	}
	return kinds
}

// fits reports whether a value of a variable or flag is for a broker of a protocol. URLs and options of the protocol of
// another broker of the file are not. A URL variable may be left over from a run over another protocol: then the login,
// TLS and options of the environment belong to it, and no other broker gets them.
func (b *builder) fits(s *Setting, f *driver.Factory, from Source, text string) bool {
	of := func(*driver.Factory) bool { return true }
	switch key, _, _ := strings.Cut(text, "="); s.Name {
	case "option":
		of = func(f *driver.Factory) bool { return b.hasOption(f, key) }
	case "url":
		of = func(f *driver.Factory) bool { return slices.Contains(f.Schemes, scheme(text)) }
	}
	if from == Variable && f != nil && s.Places&InBroker != 0 && len(b.in.Flags["url"]) == 0 {
		_, texts := b.in.Environment.Lookup(find(b.table, "url"))
		if url := strings.Join(texts, ""); byScheme(b.maker.Factories, scheme(url)) != nil {
			return slices.Contains(f.Schemes, scheme(url)) && of(f)
		}
	}
	return f == nil || of(f) || !slices.ContainsFunc(b.file.brokers, func(p *part) bool { return of(b.factory(p)) })
}

// hasOption reports whether a client of a protocol has an option.
func (b *builder) hasOption(f *driver.Factory, key string) bool {
	return slices.ContainsFunc(b.maker.Clients(f), func(c driver.Factory) bool {
		return slices.ContainsFunc(driver.Describe(NewOptions(&c)), func(o driver.Option) bool { return o.Name == key })
	})
}

// Info is a scenario of a collection.
type Info struct {
	Name        string // the path without its ending: artemis/latency
	Description string // the file's own, without variables replaced
}

// Shipped lists the scenario files (*.yaml) of a file system, sorted by name. A file of broken YAML is an error of type
// [Mistakes].
func Shipped(fsys fs.FS) ([]Info, error) {
	var list []Info
	err := fs.WalkDir(fsys, ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(at) != ".yaml" {
			return err
		}
		text, err := fs.ReadFile(fsys, at)
		if err != nil {
			return err
		}
		r := reader{path: at, secrets: &safetext.Secrets{}}
		root := r.tree(text)
		if err := r.err(); err != nil {
			return err
		}
		description := strings.Join(strings.Fields(root.get("description").text), " ")
		list = append(list, Info{strings.TrimSuffix(at, ".yaml"), description})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the shipped scenarios: %w", err)
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// IsShipped reports whether an argument names a shipped scenario, @artemis/latency, not a file.
func IsShipped(argument string) bool { return strings.HasPrefix(argument, "@") }

// open reads a shipped scenario by its name, with or without the @.
func open(fsys fs.FS, name string) ([]byte, error) {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "@"), ".yaml")
	text, err := fs.ReadFile(fsys, name+".yaml")
	if err == nil {
		return text, nil
	}
	list, err := Shipped(fsys)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, info := range list {
		all = append(all, info.Name)
	}
	hint := nearest.Hint(name, all, "@%s", "perfmq scenario list shows all")
	return nil, plan.Wrong(hint, "there is no shipped scenario @%s", name)
}
