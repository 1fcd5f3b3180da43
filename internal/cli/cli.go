// Package cli is the command line: it turns arguments and environment into a plan, runs the plan with the engine, and
// reports the outcome to people and scripts.
//
//	arguments + environment -> input (texts) -> settings (values) -> plan -> run.Run -> exit status
//
// All protocols get their commands from one table of flags and the list of driver factories; this package knows no
// protocol by name. Mistakes of all these steps are reported together, each as a line "error:" and, if the user can do
// something, a line "hint:".
//
// The package reads nothing from the process itself: all input comes through [Env], so that tests run whole commands.
package cli

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Env is a command's only access to the process around it.
type Env struct {
	Args           []string // without the program's name
	Environ        []string // in the form of os.Environ
	Stdout, Stderr io.Writer
	// Signals delivers the signals that end a run. It may be nil.
	Signals <-chan os.Signal
	// Factories are the protocols. The first factory of a name is its native driver; others of that name use client
	// libraries.
	Factories []driver.Factory
	// Scenarios are the scenario files inside the program; nil for none.
	Scenarios fs.FS
	// Version is the version of the program, for "perfmq version".
	Version run.Version
	// HandOver runs another program of the release with this command line, and returns its status; see
	// [driver.Factory.Program]. It may be nil.
	HandOver func(program string) (status int, err error)
	// Listen opens the ports of the metrics; nil for [listen.TCP].
	Listen listen.Listener
	// FakeClock is [plan.Plan.FakeClock]. The number of a run is 1 then.
	FakeClock bool
}

// app is one call of the program.
type app struct {
	Env
	environ config.Environment
	maker   *config.Maker
	secrets *safetext.Secrets
	errors  *errorPrinter
	// work runs after the input was read and checked; nil if the command has nothing more to do
	work   func() int
	status int
	part   string // of the help, that --help asks for
}

// errReported means that the errors were printed and app.status is set.
var errReported = errors.New("reported")

// Main runs one command and returns the exit status of the process.
//
// Reading the input may block, on a pipe or a file system. A signal ends it at once, because nothing is open yet that
// must be closed. The work after it handles signals itself.
func Main(env Env) int {
	a := newApp(env)
	a.secrets = learnSecrets(env.Args, a.environ)
	a.errors = &errorPrinter{secrets: a.secrets, w: env.Stderr, seen: map[string]bool{}}
	a.errors.overwrite = run.Terminal(env.Stdout) != nil && run.Terminal(env.Stderr) != nil &&
		run.Variable(env.Environ, "TERM") != "dumb"
	a.maker.Secrets = a.secrets
	root := a.root()
	root.SetArgs(completing(env.Args, a.secrets))
	err, ended := run.UntilSignal(a.Signals, root.Execute)
	if !ended {
		a.errors.say("interrupted: " + nothingDone)
		return result.StatusInterrupted
	}
	switch {
	case err == nil, errors.Is(err, errReported):
	case isWrite(err):
		_ = a.notWritten(err) // always errReported
	default:
		_ = a.usage(err) // likewise
	}
	if a.work != nil {
		a.status = a.work()
	}
	return a.status
}

func newApp(env Env) *app {
	a := &app{Env: env, environ: config.NewEnvironment(env.Environ)}
	natives, libraries := config.ByClient(env.Factories)
	a.Factories = natives
	a.maker = &config.Maker{
		Factories: a.Factories, Libraries: libraries, Scenarios: a.Scenarios, JobIndex: a.environ[config.JobIndex],
	}
	return a
}

// Commands returns the tree of commands, for pages of documentation.
func Commands(env Env) *cobra.Command { return newApp(env).root() }

// nothingDone is said of a run that ended before it began.
const nothingDone = "nothing was connected or sent"

func listsFlags(cmd *cobra.Command) string { return cmd.CommandPath() + " --help lists all flags" }

// wrongFlag adds a hint to a mistake in the flags, as pflag words it.
func (a *app) wrongFlag(cmd *cobra.Command, err error) error {
	m := &plan.Mistake{Text: err.Error(), Hint: listsFlags(cmd)}
	var unknown *pflag.NotExistError
	var bad *pflag.InvalidValueError
	switch { // pflag shows the argument, which may be a password: --=SECRET
	case errors.As(err, new(*pflag.InvalidSyntaxError)):
		m.Text = "a flag without a name"
	case errors.As(err, &bad):
		m.Text = "--" + bad.GetFlag().Name + " takes no value"
		if next, missing := strings.CutPrefix(bad.Unwrap().Error(), missingValue); missing {
			m.Text = "--" + bad.GetFlag().Name + " needs a value; " + next + " follows it"
		}
	}
	if !errors.As(err, &unknown) {
		return m
	}
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" { // pflag shows all that follows, which may be a password: -pSECRET
		m.Text = "unknown flag -" + name
	}
	var names, others []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	for _, other := range cmd.Parent().Commands() {
		if other.Flags().Lookup(name) != nil {
			others = append(others, other.CommandPath())
		}
	}
	m.Hint = nearest.Hint(name, names, "--%s", m.Hint)
	if f := a.protocolOf(cmd); f != nil && len(others) > 0 {
		last := max(len(others)-2, 0)
		m.Hint = "it is a flag of " + strings.Join(append(others[:last], strings.Join(others[last:], " and ")), ", ")
	} else if f != nil && slices.ContainsFunc(driver.Describe(config.NewOptions(f)),
		func(o driver.Option) bool { return o.Name == name }) {
		m.Hint = "write -o " + name + "=..."
	}
	return m
}

// usage reports mistakes in the command line or the environment.
func (a *app) usage(errs ...error) error {
	a.errors.print(errs...)
	a.status = result.StatusUsage
	return errReported
}

// noArguments refuses arguments of a command that takes only flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return plan.Wrong(listsFlags(cmd), "%s takes no arguments, but %s was given",
		cmd.CommandPath(), config.Quoted(args[0]))
}

// needArguments refuses to run a command without arguments.
func needArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	words := strings.Fields(cmd.Use)
	return plan.Needs(cmd.CommandPath(), words[len(words)-1])
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "perfmq",
		Short:         "Load a message broker, and measure it truly",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          a.wantCommand,
		Example:       "  perfmq amqp client --max-pending 100 --duration 30 --show-latency queue://TEST",
		// A mistyped command is reported, not the flags behind it.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	// Not cobra's, whose version comes through text/template, see internal/page/markup.go.
	root.Flags().BoolP("version", "v", false, "version for perfmq")
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	root.AddGroup(&cobra.Group{ID: groupProtocols, Title: "Protocols"},
		&cobra.Group{ID: groupOther, Title: "Other commands"})
	root.SetFlagErrorFunc(a.wrongFlag)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if err := a.help(cmd); err != nil && !errors.Is(err, errReported) {
			_ = a.notWritten(err) // the status is set
		}
	})
	for i := range a.Factories {
		root.AddCommand(a.protocolCommand(&a.Factories[i]))
	}
	version := &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return a.printVersion() },
	}
	for _, cmd := range []*cobra.Command{
		a.runCommand(), a.brokerCommand(), a.verifyCommand(), a.mergeCommand(), a.compareCommand(), a.reportCommand(),
		a.scenarioCommand(), version,
	} {
		cmd.GroupID, cmd.DisableFlagsInUseLine = groupOther, true
		root.AddCommand(cmd)
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, sub := range root.Commands() { // cobra's own ignore a word that they do not know
		switch sub.Name() {
		case "help":
			sub.Run, sub.RunE = nil, func(_ *cobra.Command, args []string) error { return a.helpOf(root, args) }
		case "completion":
			sub.Args, sub.RunE = cobra.ArbitraryArgs, a.wantCommand
		}
	}
	a.addHelp(root)
	return root
}

// helpOf prints the help of a command below cmd.
func (a *app) helpOf(cmd *cobra.Command, names []string) error {
	sub, rest, _ := cmd.Find(names) // the error says less than the rest
	if len(rest) > 0 {
		return a.usage(unknownCommand(sub, rest[0]))
	}
	return sub.Help()
}

// wantCommand runs for commands that only have subcommands: it prints the help, or refuses an unknown name.
func (a *app) wantCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && args[0] == "help" {
		return a.helpOf(cmd, args[1:])
	}
	if asked, _ := cmd.Flags().GetBool("version"); asked { // only the root has it
		return a.printVersion()
	}
	if len(args) == 0 {
		cmd.SetOut(a.Stderr)
		_ = cmd.Help()
		a.status = result.StatusUsage
		return errReported
	}
	return a.usage(unknownCommand(cmd, args[0]))
}

func (a *app) printVersion() error { return a.write([]byte("perfmq " + a.Version.String() + "\n")) }

// unknownCommand returns the mistake for a word that names no command of cmd.
func unknownCommand(cmd *cobra.Command, word string) *plan.Mistake {
	var names []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	hint := listsFlags(cmd)
	if len(names) > 0 {
		hint = nearest.Hint(word, names, cmd.CommandPath()+" %s", "known are "+strings.Join(names, ", "))
	}
	return plan.Wrong(hint, "unknown command %q of %s", word, cmd.CommandPath())
}

func (a *app) protocolCommand(f *driver.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     f.Name,
		Short:   "Load over " + f.Title,
		Hidden:  f.Hidden,
		GroupID: groupProtocols,
		Args:    cobra.ArbitraryArgs,
		RunE:    a.wantCommand,

		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	for _, role := range config.Roles() {
		if a.plays(f, role) {
			cmd.AddCommand(a.roleCommand(f, role))
		}
	}
	return cmd
}

// plays reports whether a client of the protocol has what a role needs.
func (a *app) plays(f *driver.Factory, role plan.Role) bool {
	switch role {
	case plan.Service, plan.Requester, plan.Responder:
		return slices.ContainsFunc(a.maker.Clients(f), func(c driver.Factory) bool {
			return c.Capabilities.Queue.RequestReply || c.Capabilities.Topic.RequestReply
		})
	}
	return true
}

func (a *app) roleCommand(f *driver.Factory, role plan.Role) *cobra.Command {
	in := a.newInput(config.Table(role, f))
	cmd := &cobra.Command{
		Use:                   string(role) + " [flags] [destination...]",
		Args:                  cobra.ArbitraryArgs,
		DisableFlagsInUseLine: true,
		ValidArgsFunction: func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return offer([]string{"queue://", "topic://"}, prefix)
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.runRole(args, in, f, role) },
	}
	in.addTo(cmd.Flags())
	a.completeFlags(cmd, in, *f)
	return cmd
}

// input has the settings of one command and their given texts.
type input struct {
	table []config.Setting
	given *config.Given
}

func (a *app) newInput(table []config.Setting) *input {
	return &input{table: table, given: config.NewGiven(a.environ)}
}

// addTo defines the flags.
func (in *input) addTo(flags *pflag.FlagSet) {
	aliases := map[string]string{}
	for i := range in.table {
		s := &in.table[i]
		flag := flags.VarPF(&flagText{in.given, s, flags}, s.Name, s.Short, s.Help)
		if s.Arg == "" {
			flag.NoOptDefVal = "true"
		}
		for _, alias := range s.Aliases {
			aliases[alias] = s.Name
		}
	}
	if len(aliases) > 0 {
		flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
			return pflag.NormalizedName(cmp.Or(aliases[name], name))
		})
	}
	flags.SortFlags = false
}

// withSettings adds flags to a command, one for each setting in the struct behind a pointer. run gets the mistakes in
// their values.
func (a *app) withSettings(
	cmd *cobra.Command, settings any, run func(args []string, errs []error) error,
) *cobra.Command {
	in := &input{table: config.TableOf(settings), given: config.NewGiven(nil)} // variables are of loads
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		errs := in.given.Fill(in.table)
		for _, unmet := range plan.Unmet(settings) {
			errs = append(errs, unmet)
		}
		return run(args, errs)
	}
	in.addTo(cmd.Flags())
	a.completeFlags(cmd, in)
	return cmd
}

// flagText is a [pflag.Value] that keeps the given texts.
type flagText struct {
	given   *config.Given
	setting *config.Setting
	flags   *pflag.FlagSet // of the command
}

// missingValue begins the error of a value that is another flag of the command.
const missingValue = "no value, but "

// Set keeps the text, unless it is another flag: most likely a shell variable was not set.
func (f *flagText) Set(text string) error {
	flag, _, _ := strings.Cut(text, "=")
	if name, long := strings.CutPrefix(flag, "--"); long && f.flags.Lookup(name) != nil {
		return errors.New(missingValue + flag)
	}
	f.given.Flags[f.setting.Name] = append(f.given.Flags[f.setting.Name], text)
	return nil
}

// String returns the default, for pflag's help.
func (f *flagText) String() string { return f.setting.Default }

// Type returns the name of the value.
func (f *flagText) Type() string {
	if f.setting.Arg == "" {
		return "bool"
	}
	return f.setting.Arg
}

// completeFlags defines the completion of flag values, for a command of one protocol or of all.
func (a *app) completeFlags(cmd *cobra.Command, in *input, own ...driver.Factory) {
	for i := range in.table {
		s := &in.table[i]
		if s.Arg == "" || s.Arg == "FILE" {
			continue // switches have no value; the shell completes files by itself
		}
		// The only error is a flag that does not exist or was registered twice.
		_ = cmd.RegisterFlagCompletionFunc(s.Name, func(_ *cobra.Command, _ []string, prefix string) ([]string,
			cobra.ShellCompDirective,
		) {
			if s.Arg == "DIR" {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return offer(s.Suggest(own, a.Factories), prefix)
		})
	}
}

// offer returns the items that begin with prefix. The shell adds no space after an incomplete item such as "queue://".
func offer(list []string, prefix string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	var matching []string
	for _, entry := range list {
		word, _, _ := strings.Cut(entry, "\t")
		if !strings.HasPrefix(word, prefix) {
			continue
		}
		matching = append(matching, entry)
		if strings.HasSuffix(word, "=") || strings.HasSuffix(word, "://") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
	}
	return matching, directive
}

// suggestScenarios offers files, or the scenarios inside this program after an @.
func (a *app) suggestScenarios(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if strings.HasPrefix(prefix, "@") {
		return a.suggestShipped(cmd, args, prefix)
	}
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

func (a *app) suggestShipped(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if a.Scenarios != nil {
		list, _ := config.Shipped(a.Scenarios) // on an error the list is empty
		for _, info := range list {
			names = append(names, "@"+info.Name+"\t"+info.Description)
		}
	}
	return offer(names, prefix)
}
