package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/pkg/driver"
)

// resolver turns settings into a plan and collects their mistakes.
type resolver struct {
	*setting.Values
	role      plan.Role
	own       driver.Factory // of the command
	factories []driver.Factory
	libraries []driver.Factory
	secrets   *safetext.Secrets
	bodies    bodyFiles
	shipped   fs.FS // the files inside the program
	mixed     bool  // the caller sets the kinds of messages
	scenario  bool  // the settings are those of a broker or group of a scenario
	errs      []error
	notes     []string // printed before the run
}

func (r *resolver) refuse(hint, format string, args ...any) {
	m := &plan.Mistake{Text: fmt.Sprintf(format, args...), Hint: hint}
	if _, flag, ok := strings.Cut(m.Text, "--"); ok { // our texts name the wrong setting first
		m.Setting, _, _ = strings.Cut(flag, " ")
		m.Setting = strings.TrimSuffix(m.Setting, ":")
	}
	r.errs = append(r.errs, m)
}

// resolve returns the plan even after mistakes, so that the plan's own mistakes can be found as well.
func (r *resolver) resolve(destinations []string) *plan.Plan {
	p := r.whole()
	p.Steps = []plan.Step{{
		Name: plan.OnlyStep, Duration: r.Duration, Warmup: r.Warmup, Marks: r.Marks,
		Groups: []*plan.Group{r.group(destinations)},
	}}
	r.embedFits(p.Steps[0].Groups[0])
	if r.Relative != nil {
		r.refuse("write a rate in messages per second, or a scenario with several steps: perfmq run --help",
			"--rate %s: there is no earlier step", r.Relative)
	}
	r.verification(p)
	p.AcceptOwn()
	return p
}

// whole returns a plan with the settings of the whole run.
func (r *resolver) whole() *plan.Plan {
	if len(r.Side.Series) > 0 && r.Side.Metrics.URL == "" {
		r.refuse("add --broker-metrics URL", "--broker-series: there is no endpoint to read them from")
	}
	return &plan.Plan{
		Labels: r.Labels, Threads: r.Threads, DrainTimeout: r.DrainTimeout, WaitForBroker: r.WaitForBroker,
		Thresholds:     r.Thresholds,
		StallThreshold: r.StallThreshold,
		BrokerCount:    r.BrokerCount != setting.CountOff,
	}
}

// group returns the producers and consumers of the role.
func (r *resolver) group(destinations []string) *plan.Group {
	g := &plan.Group{
		Role: r.role, Producers: r.Producers, Consumers: r.Consumers, Shared: r.Shared,
		SharedConnections: r.SharedConnections, ProducerConnections: max(r.Threads, 1),
		ConsumerConnections: r.ConsumerConnections, ClientID: r.ClientID, Reconnect: r.Reconnect,
		ReconnectTimeout: r.ReconnectTimeout, Hosts: plan.HostOrder(r.Hosts),
		Resend: r.InDoubt == setting.DoubtResend, Rate: plan.Rate{Schedule: r.Rate, Relative: r.Relative}, Count: r.Count,
		ProducerSpec: driver.ProducerSpec{
			MaxPending: r.MaxPending, Persistent: r.Persistent, TTL: r.TTL, Delay: r.DeliveryDelay,
			CommitInterval: r.CommitInterval, SendTimeout: r.SendTimeout,
		},
		ConsumerSpec: driver.ConsumerSpec{
			Durable: r.Durable, KeepSubscription: r.KeepSubscription, Selector: r.Selector, Credit: r.Credit,
			Failing: r.ConsumerFailAs,
		},
		ConsumerWork: r.ConsumerWork, ConsumerRate: r.ConsumerRate, ConsumerFail: r.ConsumerFail,
	}
	if r.Tx || r.Has("tx-size") {
		g.TransactionSize = r.TxSize
	}
	if r.Has("reconnect-delay") {
		g.ReconnectDelay = r.ReconnectDelay
	}
	r.endpoints(g)
	r.destinations(g, destinations)
	if r.role.Produces() && !r.mixed {
		g.Mix = r.kinds()
	}
	for _, b := range g.Sides() {
		b.MaxBody = r.MaxMessageSize
		if f := r.driver(b); f.Hosts != nil {
			b.Hosts = f.Hosts(b.URL)
		}
	}
	return g
}

func (r *resolver) endpoints(g *plan.Group) {
	embedOver(r.Values, r.Source("embedded"))
	failover := r.readFailovers()
	r.loadTLS()
	if r.Protocol != "" && !strings.EqualFold(r.Protocol, r.own.Name) {
		r.refuse(r.useProtocol(r.Protocol), "--protocol %s does not agree with the command perfmq %s", r.Protocol, r.own.Name)
	}
	password := r.readPassword()
	own := r.choose(r.own, plan.Broker{
		Management: r.ManagementURL, OpenOptions: r.open(r.brokerURL("--url", r.URL, &r.own), r.User, password),
	})
	if r.role.Produces() {
		g.ProducerBroker = &own
	}
	if r.role.Consumes() {
		consumers := own
		if r.role == plan.Client {
			consumers = r.consumerBroker(own, password)
		}
		g.ConsumerBroker = &consumers
	}
	r.applyFailovers(g, failover)
	r.setOptions(g)
	r.sendTimeout(g.ProducerBroker)
	r.inDoubt(g.ProducerBroker)
	r.embed(g)
}

// choose gives a broker the client that the user chose for a protocol.
func (r *resolver) choose(f driver.Factory, b plan.Broker) plan.Broker {
	f = r.byChoice(f)
	b.Protocol, b.Client = f.Name, cmp.Or(f.Client, driver.Native)
	return b
}

// driver returns the driver of a broker.
func (r *resolver) driver(b *plan.Broker) *driver.Factory {
	return driverOf(b, r.factories, r.libraries)
}

// driverOf finds the driver of a broker. For hints, that of a client library knows what the native driver can.
func driverOf(b *plan.Broker, factories, libraries []driver.Factory) *driver.Factory {
	i := slices.IndexFunc(factories, func(f driver.Factory) bool { return f.Name == b.Protocol })
	for _, l := range libraries {
		if l.Name == b.Protocol && l.Client == b.Client && b.Client != factories[i].Client {
			if isNative(&factories[i]) {
				l.Native = &factories[i].Capabilities
			}
			return &l
		}
	}
	return &factories[i]
}

// consumerBroker returns the broker of the consumers of a client.
func (r *resolver) consumerBroker(own plan.Broker, password string) plan.Broker {
	f := r.own
	switch {
	case r.ConsumerProtocol != "":
		i := slices.IndexFunc(r.factories, func(f driver.Factory) bool {
			return strings.EqualFold(f.Name, r.ConsumerProtocol)
		})
		if i < 0 {
			r.refuse("known are "+strings.Join(setting.Names(r.factories), ", "), "unknown protocol --consumer-protocol %s",
				r.ConsumerProtocol)
			return own
		}
		f = r.factories[i]
	case r.ConsumerURL != "" && !slices.Contains(f.Schemes, plan.Scheme(r.ConsumerURL)):
		if other := byScheme(r.factories, plan.Scheme(r.ConsumerURL)); other != nil {
			f = *other
		}
	}
	if f.Name == r.own.Name && (r.ConsumerURL == "" || r.ConsumerURL == r.URL) {
		return own
	}
	user := r.User
	if plan.HasUser(r.ConsumerURL) {
		user, password = "", ""
	}
	if r.ConsumerURL != "" && hosts(r.ConsumerURL) != hosts(own.URL) {
		own.Management = "" // belongs to the other broker
	}
	own.OpenOptions = r.open(r.brokerURL("--consumer-url", r.ConsumerURL, &f), user, password)
	if f.Name != r.own.Name {
		own = r.choose(f, own)
	}
	return own
}

func (r *resolver) open(url, user, password string) driver.OpenOptions {
	if user == "" && password != "" {
		user = plan.User(url) // drivers take user and password from one source
	}
	return driver.OpenOptions{URL: url, User: user, Password: password, TLS: r.TLS, ConnectTimeout: r.ConnectTimeout}
}

// brokerURL returns the URL for a protocol: the protocol's default if none was given, or after a mistake in it.
func (r *resolver) brokerURL(flag, url string, f *driver.Factory) string {
	url = r.clientURL(flag, url)
	scheme := plan.Scheme(url)
	switch {
	case url == "":
		return f.DefaultURL
	case slices.Contains(f.Schemes, scheme):
		return url
	case scheme == "":
		scheme, rest := f.Schemes[0], url
		if before, after, ok := strings.Cut(url, ":"); ok && slices.Contains(f.Schemes, strings.ToLower(before)) {
			scheme, rest = before, strings.TrimLeft(after, "/")
		}
		r.refuse("write "+scheme+"://"+plan.RedactURL(rest), "%s %s has no scheme", flag,
			setting.Quoted(plan.RedactURL(url)))
	default:
		hint := f.Name + " URLs begin with " + strings.Join(setting.Schemes(f), ", ")
		if other := byScheme(r.factories, scheme); other != nil && flag == "--url" {
			hint = r.useProtocol(other.Name)
			if r.scenario {
				hint = "the broker has protocol: " + f.Name + "; change one of them"
			}
		}
		r.refuse(hint, "%s %s: %s is no scheme of %s", flag, setting.Quoted(plan.RedactURL(url)), scheme, f.Name)
	}
	return f.DefaultURL
}

// byScheme returns the first protocol with that scheme; nil if there is none.
func byScheme(list []driver.Factory, scheme string) *driver.Factory {
	i := slices.IndexFunc(list, func(f driver.Factory) bool { return slices.Contains(f.Schemes, scheme) })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func (r *resolver) useProtocol(name string) string {
	for _, f := range r.factories {
		if strings.EqualFold(f.Name, name) {
			return fmt.Sprintf("use perfmq %s %s", f.Name, r.role)
		}
	}
	return "perfmq speaks " + strings.Join(setting.Names(r.factories), ", ")
}

// readPassword returns the password, perhaps from its file. A flag takes precedence over the environment.
func (r *resolver) readPassword() string {
	if r.PasswordFile == "" {
		return r.Password
	}
	if r.Has("password") {
		direct, file := r.Source("password"), r.Source("password-file")
		if direct == file {
			r.refuse("leave one of them out", "--password and --password-file are both given")
			return r.Password
		}
		if direct > file {
			return r.Password
		}
	}
	line, err := inputfile.FirstLine(r.PasswordFile, maxPassword)
	if err != nil {
		r.refuseFile("--password-file", err)
		return ""
	}
	if line == "" {
		r.refuse("write the password into its first line", "--password-file %s has no password in it", r.PasswordFile)
	}
	r.secrets.Add(r.User, line)
	if err := setting.CheckCredential(line); err != nil {
		r.refuse("", "--password-file %s: the password %v", r.PasswordFile, err)
	}
	return line
}

// The bounds of files, in bytes.
const (
	maxPassword    = 4 << 10
	maxCredentials = 16 << 20 // the CA certificates of a system take less than 1 MiB
)

// loadTLS reads the files of the --tls flags, once for all connections.
func (r *resolver) loadTLS() {
	if r.TLS == (driver.TLS{}) {
		return
	}
	unread := false
	err := r.TLS.Load(func(path string) ([]byte, error) {
		text, err := inputfile.Read(path, maxCredentials)
		if err != nil {
			unread = true
			flag := map[string]string{r.TLS.CAFile: "--tls-ca", r.TLS.CertFile: "--tls-cert", r.TLS.KeyFile: "--tls-key"}[path]
			r.refuseTLS(flag, err)
		}
		return text, err
	})
	switch {
	case err == nil:
		return
	case !unread:
		r.refuseFile("--tls", err)
	}
	r.TLS.CAFile, r.TLS.CertFile, r.TLS.KeyFile = "", "", "" // avoids reading and reporting them again
}

// refuseTLS reports a file of TLS that cannot be read.
func (r *resolver) refuseTLS(flag string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		r.refuse("check the path given with "+flag, "%s: %v", flag, err)
		return
	}
	r.refuseFile(flag, err)
}

// refuseFile reports files that cannot be used.
func (r *resolver) refuseFile(flag string, err error) {
	for _, err := range parts([]error{err}) {
		hint := driver.HintOf(err)
		var fe *inputfile.Error
		if errors.As(err, &fe) {
			hint = fe.Hint
		}
		r.refuse(hint, "%s: %v", flag, err)
	}
}

// bare returns "PATH: reason" without the name of the system call.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", pe.Path, pe.Err)
	}
	return err
}

// setOptions sets the options of each side. With two protocols a key belongs to each protocol that knows it.
func (r *resolver) setOptions(g *plan.Group) {
	sides := g.Sides()
	known := make([][]string, len(sides))
	var all []string
	for i, side := range sides {
		side.Options = setting.NewOptions(r.driver(side))
		for _, o := range driver.Describe(side.Options) {
			known[i] = append(known[i], o.Name)
			if !slices.Contains(all, o.Name) {
				all = append(all, o.Name)
			}
		}
	}
	reported := map[string]bool{}
	for _, assignment := range r.Options {
		key, _, _ := strings.Cut(assignment, "=")
		if !slices.Contains(all, key) {
			r.unknownOption(key, all)
			continue
		}
		for i, side := range sides {
			if !slices.Contains(known[i], key) {
				continue
			}
			if err := driver.SetOptions(side.Options,
				[]string{setting.PlainOption(side.Options, assignment)}); err != nil && !reported[err.Error()] {
				reported[err.Error()] = true
				r.refuse(setting.MeantOption(setting.NewOptions(r.driver(side)), assignment), "-o: %v", err)
			}
		}
	}
}

func (r *resolver) unknownOption(key string, all []string) {
	hint := r.own.Name + " has no options"
	if len(all) > 0 {
		hint = "known are " + strings.Join(all, ", ")
	}
	if of := setting.OptionOf(r.factories, key); len(of) > 0 {
		hint = "it is an option of " + strings.Join(of, " and ") + "; " + hint
		if slices.Contains(of, r.own.Name) {
			hint = "it is an option of --client native"
		}
	}
	hint = nearest.Hint(key, all, "-o %s=...", hint)
	if other := otherNames(key); other != "" {
		hint = other
	}
	from := ""
	if r.Source("option") == setting.Variable {
		from = " (PERFMQ_OPTION)"
	}
	r.errs = append(r.errs, &plan.Mistake{Text: "unknown option -o " + key + from, Hint: hint, Setting: "option"})
}

func (r *resolver) destinations(g *plan.Group, names []string) {
	if len(names) == 0 {
		names = []string{defaultDestination(&r.own)}
		if (r.Durable || r.Shared > 0) && r.own.Capabilities.Topic.Exists { // only topics have these
			names = []string{"topic://TEST"}
		}
	}
	list, err := plan.Destinations(names, r.NumDestinations)
	g.Destinations = list
	if err != nil {
		r.errs = append(r.errs, err)
	}
	if len(list) == 0 { // already reported; the rest of the plan is checked, too
		g.Destinations, _ = plan.Destinations([]string{defaultDestination(&r.own)}, 1)
	}
}

func defaultDestination(f *driver.Factory) string {
	if f.Capabilities.Queue.Exists {
		return "queue://TEST"
	}
	return "topic://TEST"
}
