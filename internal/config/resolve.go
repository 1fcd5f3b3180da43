package config

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Maker makes plans.
type Maker struct {
	Factories []driver.Factory // the usual drivers of the protocols
	Libraries []driver.Factory // drivers on client libraries
	Secrets   *safetext.Secrets
	Scenarios fs.FS // the scenario files inside the program; nil for none
	// JobIndex is the completion index of a Kubernetes Job; empty without one.
	JobIndex string
	// Elsewhere is the program that has the drivers of the plans made; empty if this one has them.
	Elsewhere string
}

// Ready is a plan with the settings of its outputs.
type Ready struct {
	Plan   *plan.Plan
	Values *Values
	Notes  []string // printed before the run
}

// resolver makes parts of a plan of values, and collects their mistakes.
type resolver struct {
	*Maker
	*Values
	role   plan.Role
	inFile bool // the values are those of a part of a scenario
	files  map[string][]plan.Variant
	errs   []error
	notes  []string
}

// FromFlags returns the plan of a command line: of one step with one group. It returns a plan even after mistakes, so
// that all of them are found.
func (m *Maker) FromFlags(v *Values, role plan.Role, f *driver.Factory, destinations []string) (Ready, []error) {
	r := &resolver{Maker: m, Values: v, role: role}
	p := v.Plan
	own := r.makeBroker("--url", *f, v.Broker)
	brokers := []usedBroker{own}
	if role.Side() == plan.Client {
		brokers = append(brokers, r.makeConsumerBroker(own, f))
	}
	r.setOptions(brokers)
	g := r.makeGroup(f, destinations, brokers)
	g.Mix = r.makeVariants(g.ProducerBroker)
	r.checkEmbedded(g)
	step := v.Step
	step.Name, step.Groups = plan.OnlyStep, []*plan.Group{g}
	p.Steps = []plan.Step{step}
	if v.Group.Rate.Relative != nil {
		r.add(plan.Needs("--rate "+v.Group.Rate.String(), "an earlier step, in a scenario"))
	}
	r.complete(&p)
	if err := p.Validate(m.Driver); err != nil {
		r.errs = append(r.errs, err)
	}
	return Ready{&p, v, r.notes}, r.errs
}

// complete sets what follows from the whole plan, and checks the outputs.
func (r *resolver) complete(p *plan.Plan) {
	p.AcceptOwn()
	p.VerifyFile = r.Outputs.VerifyFile
	p.Verify = p.Verify || p.VerifyFile != "" || p.VerifyWindow > 0
	if r.Outputs.Result != "" && r.Outputs.Continue {
		r.Outputs.Result = result.NextRun(r.Outputs.Result)
	}
	r.Outputs.SetFolder(r.Outputs.Result, p)
	r.setShard(p)
	switch {
	case p.Split() && p.Met: // the host would have to judge each second
		r.add(plan.Wrong("--verify judges the joined result at the end", "--verify-window does not work with --rendezvous"))
	case p.Split() && r.Outputs.Result == "":
		r.add(plan.Wrong("add --result DIR, for perfmq merge --follow DIR...", "--verify-window of one side needs --result"))
	}
	r.checkOutputs()
}

// makeGroup returns a group at its brokers: of the producers, or the only one, and of the consumers. f is the protocol,
// which decides the usual destination.
func (r *resolver) makeGroup(f *driver.Factory, destinations []string, brokers []usedBroker) *plan.Group {
	g := r.Group
	g.Role = r.role
	if g.Role == plan.Connections {
		if g.ProducerBroker = brokers[0].Broker; !r.Has("max-pending") {
			g.SetAtOnce()
		}
	}
	if g.Role.Produces() {
		g.ProducerBroker = brokers[0].Broker
		g.ProducerConnections = max(r.Plan.Threads, 1)
	}
	if g.Role.Consumes() {
		g.ConsumerBroker = brokers[len(brokers)-1].Broker
		g.ConsumerBroker.MaxBody = max(g.ConsumerBroker.MaxBody, r.Group.MaxMessageSize)
	}
	if r.Group.Tx {
		g.TransactionSize = max(g.TransactionSize, 1)
	}
	if g.Poisson {
		var err error
		if g.Rate.Schedule, err = g.Rate.Poisson(); err != nil {
			r.refuse("", "--rate %s: %v", g.Rate, err)
		}
	}
	r.applyFailover(&g, brokers)
	r.refuseContradictions(&g)
	r.setDestinations(&g, f, destinations)
	return &g
}

// refuseContradictions refuses settings of a group that its protocol's options contradict.
func (r *resolver) refuseContradictions(g *plan.Group) {
	if !g.Role.Produces() {
		return
	}
	for _, o := range driver.Describe(g.ProducerBroker.Options) {
		if on, ok := o.Value.(bool); ok && on && o.Name == "transactional" && g.Resend {
			r.add(plan.Excludes("--in-doubt resend", "-o transactional=true"))
		}
	}
}

func (r *resolver) setDestinations(g *plan.Group, f *driver.Factory, names []string) {
	if len(names) == 0 && g.Role == plan.Connections {
		return
	}
	if len(names) == 0 {
		names = []string{DefaultDestination(f)}
		if (g.Durable || g.Shared > 0) && f.Capabilities.Topic.Exists { // only topics have these
			names = []string{"topic://TEST"}
		}
	}
	if !r.inFile {
		r.refuseStray(names)
	}
	list, err := plan.Destinations(names, r.Group.NumDestinations)
	if err != nil {
		r.errs = append(r.errs, err)
	}
	if len(list) == 0 { // already reported; the rest of the plan is checked, too
		list, _ = plan.Destinations([]string{DefaultDestination(f)}, 1)
	}
	g.Destinations = list
}

// refuseStray refuses plain names beside names with their kind: more likely, they are the rest of a flag.
func (r *resolver) refuseStray(names []string) {
	kind := slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, "://") })
	for _, name := range names {
		if kind >= 0 && !strings.Contains(name, "://") && !strings.Contains(name, "::") {
			r.refuse("write --FLAG=VALUE; a queue of that name is queue://"+name,
				"the plain name %s stands beside %s", Quoted(name), Quoted(names[kind]))
		}
	}
}

// DefaultDestination is the destination of a command line that names none.
func DefaultDestination(f *driver.Factory) string {
	if f.Capabilities.Queue.Exists {
		return "queue://TEST"
	}
	return "topic://TEST"
}

// refuse adds a mistake.
func (r *resolver) refuse(hint, format string, args ...any) {
	r.add(plan.Wrong(hint, format, args...))
}

// add adds a mistake, of the setting that its text names first.
func (r *resolver) add(m *plan.Mistake) {
	if _, flag, ok := strings.Cut(m.Text, "--"); ok {
		m.Setting, _, _ = strings.Cut(flag, " ")
		m.Setting = strings.TrimSuffix(m.Setting, ":")
	}
	r.errs = append(r.errs, m)
}

// refuseBoth refuses two flags that exclude each other.
func (r *resolver) refuseBoth(first, second string) {
	r.add(plan.Excludes("--"+first, "--"+second))
}

// refuseWord refuses a value that is none of a few.
func (r *resolver) refuseWord(flag, given string, words []string) {
	r.refuse(nearest.Hint(given, words, "%s", ""), "%s %s: must be one of %s", flag, Quoted(given),
		strings.Join(words, ", "))
}

// addNote adds a note that is printed before the run.
func (r *resolver) addNote(text string) {
	if !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

// refuseFile reports files that cannot be used.
func (r *resolver) refuseFile(flag string, err error) {
	for _, err := range Parts(err) {
		r.refuse(mistakeOf(err).Hint, "%s: %v", flag, err)
	}
}

// mistakeOf returns an error as a mistake, with its hint.
func mistakeOf(err error) *plan.Mistake {
	var m *plan.Mistake
	var fe *inputfile.Error
	switch {
	case errors.As(err, &m):
		return m
	case errors.As(err, &fe):
		return plan.Wrong(fe.Hint, "%v", err)
	default:
		return plan.Wrong(driver.HintOf(err), "%v", err)
	}
}

// Parts returns errors with joins expanded and nil removed.
func Parts(errs ...error) (list []error) {
	for _, err := range errs {
		joined, ok := err.(interface{ Unwrap() []error })
		switch {
		case err == nil:
		case ok && reflect.TypeOf(err) == reflect.TypeOf(errors.Join(fs.ErrExist)): // not fmt.Errorf
			list = append(list, Parts(joined.Unwrap()...)...)
		default:
			list = append(list, err)
		}
	}
	return list
}

// JobIndex is the variable that tells a pod of a Kubernetes Indexed Job which one it is, counted from 0.
const JobIndex = "JOB_COMPLETION_INDEX"

// setShard sets this process's part of a complete plan and the moment of its start.
func (r *resolver) setShard(p *plan.Plan) {
	r.Side.Metrics.TLS = p.Brokers()[0].TLS // loaded by now
	if to := &r.Outputs.Remote; to.URL != "" {
		to.TLS = r.Side.Metrics.TLS
		to.TLS.ServerName = "" // of the broker
	}
	now := time.Now()
	at := r.StartAt
	if m := at.Mistake(now); m != nil {
		r.errs = append(r.errs, m)
	}
	p.StartAt = at.Of(now)
	r.setMeeting(p)
	if p.Shard.IsZero() {
		if r.RunID != "" && !r.Has("shard") {
			r.add(plan.Needs("--run-id", "--shard"))
		}
		return
	}
	if p.Shard.Number == 0 {
		of, err := p.Shard.At(r.JobIndex)
		if err != nil {
			r.refuse("give --shard 1/"+p.Shard.String(), "--shard %s: %s=%s %v", p.Shard, JobIndex, Quoted(r.JobIndex),
				err)
		}
		if p.Shard = of; p.Shard.Number == 0 {
			p.Shard.Number = 1
		}
	}
	if p.Embedded {
		r.add(plan.Excludes("--shard", "--embedded"))
	}
	switch {
	case r.RunID != "":
		p.RunID = plan.RunNumber(r.RunID)
	case !at.At.IsZero() && !p.Met:
		p.RunID = r.deriveRunID(p)
	}
}

// setMeeting sets where the shards meet.
func (r *resolver) setMeeting(p *plan.Plan) {
	m := &r.Meeting
	for _, unmet := range plan.Unmet(m) {
		if unmet.Setting != "rendezvous-timeout" { // it has a default
			r.add(unmet)
		}
	}
	if p.Met = m.URL != ""; !p.Met {
		return
	}
	if p.Shard.IsZero() && !r.Has("shard") {
		r.add(plan.Needs("--rendezvous", "--shard"))
	}
	for _, flag := range []string{"run-id", "start-at"} {
		if r.Has(flag) {
			r.refuseBoth("rendezvous", flag)
		}
	}
	var err error
	if m.Token, err = ReadToken(m.TokenFile, r.Secrets); err != nil {
		r.refuseFile("--token-file", err)
	}
	m.TLS = new(p.Brokers()[0].TLS)
	for _, b := range p.Brokers() {
		if strings.HasPrefix(m.URL, "https:") && !plan.Encrypted(b.URL) { // TLS is that of the rendezvous alone
			b.TLS = driver.TLS{}
		}
	}
	if m.CAFile != "" {
		m.TLS = new(r.loadCA("--rendezvous-ca", m.CAFile))
	}
	if m.Plain() {
		r.addNote("the token of the rendezvous travels without TLS: use https:// in networks of others")
	}
}

// leastToken is the length of the shortest token, in bytes.
const leastToken = 16

// ReadToken reads the token of a rendezvous.
func ReadToken(file string, secrets *safetext.Secrets) (string, error) {
	const hint = "openssl rand -hex 16 makes one"
	if file == "" {
		return "", plan.Wrong(hint, "--rendezvous needs the FILE of a token")
	}
	token, err := inputfile.FirstLine(file, MaxPassword)
	if err != nil {
		return "", err
	}
	secrets.Add("", token)
	if len(token) < leastToken {
		return "", plan.Wrong(hint, "the token in %s is shorter than %d characters", file, leastToken)
	}
	return token, CheckCredential(token)
}

// deriveRunID returns a run number from the plan and the moment of the start, so that all shards compute the same
// number.
func (r *resolver) deriveRunID(p *plan.Plan) int64 {
	text, err := plan.JSON(p, r.Secrets.Field)
	if err == nil {
		var hash string
		if hash, err = result.Hash(text); err == nil {
			return plan.RunNumber(hash + " " + p.StartAt.UTC().Format(time.RFC3339Nano))
		}
	}
	r.errs = append(r.errs, err)
	return 0
}
