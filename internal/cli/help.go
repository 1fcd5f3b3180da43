package cli

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Groups of commands.
const (
	groupProtocols = "protocols"
	groupOther     = "other"
)

const (
	helpWidth  = 100
	helpIndent = 34 // column of the descriptions of flags
)

// help writes the help of any command.
func (a *app) help(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	f, role, ok := a.commandRole(cmd)
	switch {
	case ok:
		a.briefHelp(&b, f, role)
	default:
		a.commandHelp(&b, cmd, false)
	}
	if _, err := cmd.OutOrStdout().Write([]byte(b.String())); err != nil {
		_ = a.notWritten(err) // the status is set
	}
}

// printHelp prints a help for --help-all.
func (a *app) printHelp(write func(*strings.Builder)) error {
	var b strings.Builder
	write(&b)
	_, err := a.Stdout.Write([]byte(b.String()))
	return err
}

// commandRole returns the protocol and role of a command.
func (a *app) commandRole(cmd *cobra.Command) (*driver.Factory, plan.Role, bool) {
	if !cmd.HasParent() {
		return nil, "", false
	}
	for i := range a.Factories {
		if a.Factories[i].Name != cmd.Parent().Name() {
			continue
		}
		for _, role := range config.Roles() {
			if string(role) == cmd.Name() {
				return &a.Factories[i], role, true
			}
		}
	}
	return nil, "", false
}

func (a *app) commandHelp(b *strings.Builder, cmd *cobra.Command, all bool) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	b.WriteString(strings.TrimSpace(text) + "\n")
	fmt.Fprintf(b, "\nUsage\n")
	switch {
	case !cmd.HasParent():
		b.WriteString("  perfmq PROTOCOL client|producer|consumer [flags] [destination...]\n")
	case cmd.GroupID == groupProtocols:
		fmt.Fprintf(b, "  perfmq %s client|producer|consumer [flags] [destination...]\n", cmd.Name())
	case cmd.HasAvailableSubCommands():
		fmt.Fprintf(b, "  %s COMMAND\n", cmd.CommandPath())
	default:
		fmt.Fprintf(b, "  %s\n", cmd.UseLine())
	}
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands"}}
	}
	for _, g := range groups {
		listCommands(b, cmd, g)
	}
	listFlags(b, cmd, all)
	if !cmd.HasParent() && len(a.Factories) > 0 {
		name := a.Factories[0].Name
		fmt.Fprintf(b, "\nExample\n  perfmq %s client --max-pending 100 --duration 30 --show-latency queue://TEST\n", name)
		fmt.Fprintf(b, "\nperfmq %s client --help shows the flags of daily use, --help-all all flags, the environment and "+
			"the exit statuses.\n", name)
	}
}

func listCommands(b *strings.Builder, cmd *cobra.Command, group *cobra.Group) {
	var lines []string
	for _, sub := range cmd.Commands() {
		if (sub.IsAvailableCommand() || sub.Name() == "help") && sub.GroupID == group.ID {
			lines = append(lines, fmt.Sprintf("  %-12s %s\n", sub.Name(), sub.Short))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "\n%s\n%s", group.Title, strings.Join(lines, ""))
	}
}

// listFlags lists the flags of a command that has no help of its own. Unless all is set, it omits settings that are not
// of daily use.
func listFlags(b *strings.Builder, cmd *cobra.Command, all bool) {
	first := true
	brief := !all && cmd.LocalFlags().Lookup(flagHelpAll) != nil
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		_, isSetting := f.Value.(*flagText)
		daily := f.Annotations[dailyFlag]
		if f.Hidden || brief && isSetting && daily == nil {
			return
		}
		if first {
			b.WriteString("\nFlags\n")
			first = false
		}
		arg, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if brief && daily != nil {
			name, usage = strings.TrimSpace(name+" "+arg), daily[0]
		} else if arg != "" {
			name += " " + arg
			if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "[]" {
				usage += " (default " + f.DefValue + ")"
			}
		}
		writeEntry(b, name, usage)
	})
}

// briefHelp is --help of a role: the settings of daily use, on one screen.
func (a *app) briefHelp(b *strings.Builder, f *driver.Factory, role plan.Role) {
	command := "perfmq " + f.Name + " " + string(role)
	b.WriteString(roleShort(role, f) + "\n")
	exampleHelp(b, f, role, briefExamples)
	fmt.Fprintf(b, "\nUsage: %s [flags] [destination...]\n", command)
	fmt.Fprintf(b, "  destinations: %s\n\nFlags of daily use\n", destinationForms(f))
	for _, s := range config.Table(role, f) {
		if s.Brief != "" {
			writeBrief(b, flagName(&s), s.Brief)
		}
	}
	fmt.Fprintf(b, "\nAll flags, options of the protocol, variables, exit statuses: %s --help-all\n", command)
}

// briefExamples is the number of examples in --help.
const briefExamples = 2

func writeBrief(b *strings.Builder, name, text string) { fmt.Fprintf(b, "  %-21s %s\n", name, text) }

// roleHelp is --help-all of a role.
func (a *app) roleHelp(b *strings.Builder, f *driver.Factory, role plan.Role) {
	writeWrapped(b, roleLong(role, f), 0)
	fmt.Fprintf(b, "\nUsage\n  perfmq %s %s [flags] [destination...]\n", f.Name, role)
	b.WriteString("\nDestinations\n")
	writeWrapped(b, destinationHelp(f), 2)
	defs := config.Table(role, f)
	for _, group := range config.Sections() {
		if group == config.SectionTLS && !f.Capabilities.TLS {
			continue
		}
		var entries strings.Builder
		for i := range defs {
			if defs[i].Section == group {
				writeEntry(&entries, flagName(&defs[i]), flagHelp(&defs[i]))
			}
		}
		if entries.Len() > 0 {
			fmt.Fprintf(b, "\n%s\n%s", group, entries.String())
		}
	}
	a.optionHelp(b, f)
	exampleHelp(b, f, role, math.MaxInt)
	environmentHelp(b)
	b.WriteString("\nExit status\n")
	for _, e := range exitStatuses() {
		fmt.Fprintf(b, "  %3d  %s\n", e.status, e.meaning)
	}
}

const flagHelpAll = "help-all"

// helpAll defines the flag --help-all.
func helpAll(flags *pflag.FlagSet) *bool {
	return flags.Bool(flagHelpAll, false, "help with all flags")
}

// roleShort describes a command in a sentence.
func roleShort(role plan.Role, f *driver.Factory) string {
	what := map[plan.Role]string{
		plan.Client:   "Send messages over %s, receive them again in one process, and measure both.",
		plan.Producer: "Send messages over %s and measure how the broker takes them.",
		plan.Consumer: "Receive messages over %s and measure how the broker delivers them.",
	}[role]
	return fmt.Sprintf(what, f.Title)
}

func roleLong(role plan.Role, f *driver.Factory) string {
	return roleShort(role, f) + " The load ends after --duration or --message-count, or with Ctrl-C; perfmq then waits " +
		"for messages in flight, " +
		"and prints a summary. A second Ctrl-C ends it at once."
}

func destinationHelp(f *driver.Factory) string {
	text := strings.TrimSuffix(destinationForms(f), " (default "+config.DefaultDestination(f)+")")
	if f.Capabilities.Queue.Exists {
		text += ", ADDRESS::QUEUE where the broker has such names (Artemis)"
	}
	return text + "; any number of them (default " + config.DefaultDestination(f) + ")"
}

func destinationForms(f *driver.Factory) string {
	var forms []string
	if f.Capabilities.Queue.Exists {
		forms = append(forms, "queue://NAME or plain NAME")
	}
	if f.Capabilities.Topic.Exists {
		forms = append(forms, "topic://NAME")
	}
	return strings.Join(forms, ", ") + " (default " + config.DefaultDestination(f) + ")"
}

func flagName(d *config.Setting) string {
	name := "--" + d.Name
	if d.Short != "" {
		name = "-" + d.Short + ", " + name
	}
	if d.Arg != "" {
		name += " " + d.Arg
	}
	return name
}

func flagHelp(d *config.Setting) string {
	if d.Default == "" {
		return d.Help
	}
	return d.Help + " (default: " + d.Default + ")"
}

func (a *app) optionHelp(b *strings.Builder, f *driver.Factory) {
	options := driver.Describe(config.NewOptions(f))
	if len(options) == 0 {
		return
	}
	fmt.Fprintf(b, "\nOptions of %s: -o KEY=VALUE, may be repeated\n", f.Title)
	for _, o := range options {
		help := o.Help
		if len(o.Enum) > 0 && !mentionsAll(help, o.Enum) {
			help += ": " + strings.Join(o.Enum, ", ")
		}
		if o.Default != "" {
			help += " (default: " + o.Default + ")"
		}
		writeEntry(b, "-o "+o.Name+"=", help)
	}
	for _, l := range config.LibrariesOf(f, a.libraries) {
		var names []string
		for _, o := range driver.Describe(config.NewOptions(&l)) {
			names = append(names, "-o "+o.Name)
		}
		text := "With --client library, which is " + l.Client + ", there are no options."
		if len(names) > 0 {
			text = "With --client library, which is " + l.Client + ", only " + strings.Join(names, ", ") + "."
		}
		writeWrapped(b, text, 2)
	}
}

func mentionsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func exampleHelp(b *strings.Builder, f *driver.Factory, role plan.Role, most int) {
	command := "perfmq " + f.Name + " " + string(role)
	dest, topic := config.DefaultDestination(f), "topic://T"
	b.WriteString("\nExamples\n")
	example := func(comment, args string) {
		if most--; most >= 0 {
			fmt.Fprintf(b, "  # %s\n  %s %s\n", comment, command, args)
		}
	}
	switch role {
	case plan.Consumer:
		example("receive for a minute and show latencies every second", "--duration 1m --show-latency "+dest)
		example("4 consumers on each of 10 destinations, over 8 connections",
			"--num-destinations 10 --consumers 4 --num-connections 8 "+dest)
	case plan.Producer:
		example("exactly a million messages of 10 KiB, 100 in flight",
			"--message-count 1M --message-size 10KiB --max-pending 100 "+dest)
		example("30000 msg/sec from 3 producers, checked first", "--producers 3 --rate 30000 --max-pending 100 --dry-run "+
			dest)
	default:
		example("as fast as it goes, 100 in flight, a minute of which 20 s are warm-up",
			"--max-pending 100 --warmup 20 --duration 1m "+dest)
		example("at a fixed rate, with latencies on the console and as an HDR log",
			"--rate 30000 --max-pending 100 --show-latency --hdr run.hdr "+dest)
		if f.Capabilities.Topic.DurableSubscription {
			example("10 durable topics, 3 producers and 2 consumers on each",
				"--producers 3 --consumers 2 --num-destinations 10 --durable --clientID test "+topic)
		}
	}
}

func environmentHelp(b *strings.Builder) {
	b.WriteString("\nEnvironment\n")
	writeWrapped(b, "Each flag has a variable: PERFMQ_ and its name in upper case with _ for -, so "+
		"PERFMQ_MESSAGE_SIZE=10KiB is --message-size 10KiB, "+
		"PERFMQ_CLIENT_ID is --clientID, PERFMQ_OPTION=a=1,b=2 is -o a=1 -o b=2. A flag wins over its variable, which wins "+
		"over the default; "+
		"an empty variable counts as not set. Give passwords as PERFMQ_PASSWORD or in a --password-file.", 2)
}

// writeEntry writes a name and, from helpIndent on, its description.
func writeEntry(b *strings.Builder, name, text string) {
	first := fmt.Sprintf("  %-*s", helpIndent-2, name)
	if len(first) > helpIndent {
		first = first + "\n" + strings.Repeat(" ", helpIndent)
	}
	for i, line := range wrap(text, helpWidth-helpIndent) {
		if i > 0 {
			first = strings.Repeat(" ", helpIndent)
		}
		b.WriteString(strings.TrimRight(first+line, " ") + "\n")
	}
}

func writeWrapped(b *strings.Builder, text string, indent int) {
	for _, line := range wrap(text, helpWidth-indent) {
		b.WriteString(strings.Repeat(" ", indent) + line + "\n")
	}
}

// wrap breaks a text into lines of at most width characters, between words.
func wrap(text string, width int) []string {
	var lines []string
	var line string
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
