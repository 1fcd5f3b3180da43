package cli

import (
	"cmp"
	"fmt"
	"slices"
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
	helpWidth   = 100
	helpIndent  = 34 // column of the descriptions of flags
	briefIndent = 24 // the same of flags of daily use
)

const flagHelpAll = "help-all"

// helpAll defines the flag --help-all.
func helpAll(flags *pflag.FlagSet) *bool {
	return flags.Bool(flagHelpAll, false, "help with all flags")
}

// help writes the help of any command. Of commands with --help-all, it is on one screen unless all is set.
func (a *app) help(cmd *cobra.Command, all bool) error {
	var b strings.Builder
	brief := !all && cmd.LocalFlags().Lookup(flagHelpAll) != nil
	text, example := strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short+".")), cmd.Example
	if brief {
		text, _, _ = strings.Cut(text, "\n\n")
	}
	usage := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		usage = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&b, "%s\n\nUsage\n  %s\n", text, usage)
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands"}}
	}
	for _, g := range groups {
		listCommands(&b, cmd, g)
	}
	listFlags(&b, cmd, brief)
	if f := a.protocolOf(cmd); f != nil && all {
		optionHelp(&b, f)
	}
	if example != "" {
		fmt.Fprintf(&b, "\nExamples\n%s\n", strings.TrimSuffix(example, "\n"))
	}
	if a.protocolOf(cmd) != nil && all {
		b.WriteString(environmentHelp)
	}
	_, err := cmd.OutOrStdout().Write([]byte(b.String()))
	return err
}

// protocolOf returns the protocol of a command that makes a load; nil if it is another command.
func (a *app) protocolOf(cmd *cobra.Command) *driver.Factory {
	if !cmd.HasParent() {
		return nil
	}
	i := slices.IndexFunc(a.Factories, func(f driver.Factory) bool { return f.Name == cmd.Parent().Name() })
	if i < 0 {
		return nil
	}
	return &a.Factories[i]
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

// listFlags lists the flags of a command by their sections. The brief list has the flags of daily use, with the first
// part of their help.
func listFlags(b *strings.Builder, cmd *cobra.Command, brief bool) {
	const others = "Flags"
	sections := map[string]*strings.Builder{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		section, indent := others, helpIndent
		arg, usage := pflag.UnquoteUsage(f)
		t, ok := f.Value.(*flagText)
		if ok && brief {
			if !t.setting.Is("daily") {
				return
			}
			usage, _, _ = strings.Cut(usage, "; ")
		} else if ok && slices.Contains(config.Sections(), t.setting.Section) {
			section = t.setting.Section
		}
		if f.DefValue != "false" && f.DefValue != "[]" {
			usage = describe(usage, f.DefValue)
		}
		name := strings.TrimSpace("--" + f.Name + " " + arg)
		if brief {
			section, indent = others, briefIndent
		} else if f.Shorthand != "" && f.Name != "help" {
			name = "-" + f.Shorthand + ", " + name
		}
		if sections[section] == nil {
			sections[section] = &strings.Builder{}
		}
		writeEntry(sections[section], name, usage, indent)
	})
	for _, title := range append(config.Sections(), others) {
		if list := sections[title]; list != nil {
			fmt.Fprintf(b, "\n%s\n%s", title, list)
		}
	}
}

// describe returns a help with the default.
func describe(help, byDefault string) string {
	if byDefault == "" {
		return help
	}
	return help + " (default: " + byDefault + ")"
}

// roleLong describes a command; the first paragraph is for --help, all are for --help-all.
func roleLong(role plan.Role, f *driver.Factory) string {
	return fmt.Sprintf(`%s over %s, and measure the broker.
Destinations: %s.

The load ends after --duration or --message-count, or with Ctrl-C; perfmq then waits for messages
in flight, and prints a summary. A second Ctrl-C ends it at once.`, roleText(role), f.Title, destinationHelp(f))
}

func destinationHelp(f *driver.Factory) string {
	var forms []string
	if f.Capabilities.Queue.Exists {
		forms = append(forms, "queue://NAME or NAME", "ADDRESS::QUEUE (Artemis)")
	}
	if f.Capabilities.Topic.Exists {
		forms = append(forms, "topic://NAME")
	}
	return strings.Join(forms, ", ") + " (default: " + config.DefaultDestination(f) + ")"
}

func optionHelp(b *strings.Builder, f *driver.Factory) {
	options := driver.Describe(config.NewOptions(f))
	if len(options) == 0 {
		return
	}
	fmt.Fprintf(b, "\nOptions of %s: -o KEY=VALUE, may be repeated\n", f.Title)
	for _, o := range options {
		help := o.Help
		if words := strings.Join(o.Enum, ", "); words != "" {
			help += ": " + words
		}
		writeEntry(b, "-o "+o.Name+"=", describe(help, o.Default), helpIndent)
	}
}

// roleExample returns the examples of a command.
func roleExample(role plan.Role, f *driver.Factory) string {
	text := map[plan.Role]string{
		plan.Consumer: `  # receive for a minute and show latencies every second
  COMMAND --duration 1m --show-latency DESTINATION
  # 4 consumers on each of 10 destinations, over 8 connections
  COMMAND --num-destinations 10 --consumers 4 --num-connections 8 DESTINATION
`,
		plan.Producer: `  # exactly a million messages of 10 KiB, 100 in flight
  COMMAND --message-count 1M --message-size 10KiB --max-pending 100 DESTINATION
  # 30000 msg/sec from 3 producers, checked first
  COMMAND --producers 3 --rate 30000 --max-pending 100 --dry-run DESTINATION
`,
		plan.Client: `  # as fast as it goes, 100 in flight, a minute of which 20 s are warm-up
  COMMAND --max-pending 100 --warmup 20 --duration 1m DESTINATION
  # at a fixed rate, with latencies on the console and as an HDR log
  COMMAND --rate 30000 --max-pending 100 --show-latency --hdr run.hdr DESTINATION
`,
	}[role]
	return strings.NewReplacer("COMMAND", "perfmq "+f.Name+" "+string(role), "DESTINATION",
		config.DefaultDestination(f)).Replace(text)
}

const environmentHelp = `
Environment
  Each flag has a variable: PERFMQ_MESSAGE_SIZE=10KiB is --message-size 10KiB, PERFMQ_CLIENT_ID is --clientID,
  PERFMQ_OPTION=a=1,b=2 is -o a=1 -o b=2. A flag wins over its variable; an empty variable counts as not set.

Exit status
    0  all that was sent was accepted and received
    1  the run failed, or output could not be written
    2  usage or configuration; nothing was sent
    3  a --threshold failed; else it was a success
    4  could not connect, log in or begin; nothing was sent
    5  --find-max found no rate, as perfmq or its machine was the limit
  130  interrupted by SIGINT, SIGTERM or SIGHUP, or its output was closed; else it was a success
`

// writeEntry writes a name and, from a column on, its description in lines of at most helpWidth characters.
func writeEntry(b *strings.Builder, name, text string, indent int) {
	line := fmt.Sprintf("  %-*s", indent-2, name)
	margin := strings.Repeat(" ", indent)
	if len(line) > indent {
		b.WriteString(line + "\n")
		line = margin
	}
	for word := range strings.FieldsSeq(text) {
		switch {
		case len(line) == indent:
			line += word
		case len(line)+1+len(word) <= helpWidth:
			line += " " + word
		default:
			b.WriteString(line + "\n")
			line = margin + word
		}
	}
	b.WriteString(line + "\n")
}
