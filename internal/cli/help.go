package cli

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Groups of commands.
const (
	groupProtocols = "protocols"
	groupOther     = "other"
)

const (
	helpWidth   = 80
	helpIndent  = 30 // column of the descriptions of flags
	briefIndent = 24 // the same of flags of daily use
)

// Parts of the help.
const (
	flagHelp    = "help"
	flagHelpAll = "help-all"
	briefHelp   = "brief" // one screen of a command with topics; the whole of others
	allHelp     = "all"
)

// otherFlags is the title of the flags of no section.
const otherFlags = "Flags"

// helpFlag is --help, --help=TOPIC or --help-all: one text for all three. It is a switch for cobra.
type helpFlag struct {
	part *string
	own  string // the part of the flag without a topic
}

// Set notes the part of the help. It never fails.
func (h *helpFlag) Set(text string) error {
	switch text {
	case "true":
		text = h.own
	case "false":
		text = ""
	}
	*h.part = text
	return nil
}

// String says whether help is asked for.
func (h *helpFlag) String() string { return strconv.FormatBool(*h.part != "") }

// Type is the one that cobra wants.
func (h *helpFlag) Type() string { return "bool" }

//go:embed help
var helpFiles embed.FS

// helpText returns a text of the help; empty if there is none of that name.
func helpText(name string) string {
	text, _ := helpFiles.ReadFile("help/" + name + ".txt")
	return string(text)
}

// addHelp describes a command and those below it by their texts. It defines --help, and --help-all of commands that
// make a load.
func (a *app) addHelp(cmd *cobra.Command) {
	if text := helpText(cmd.Name()); text != "" {
		if f := a.protocolOf(cmd); f != nil {
			text = strings.NewReplacer("COMMAND", cmd.CommandPath(), "TITLE", f.Title, "DESTINATIONS",
				destinationHelp(f), "DESTINATION", config.DefaultDestination(f)).Replace(text)
			cmd.Short, _, _ = strings.Cut(text, " over ")
		}
		cmd.Long, cmd.Example, _ = strings.Cut(text, "\n\nExamples\n")
	}
	usage := "help for " + cmd.Name()
	if a.protocolOf(cmd) != nil || cmd.Name() == "run" {
		cmd.Flags().VarPF(&helpFlag{&a.part, allHelp}, flagHelpAll, "", "help with all flags").NoOptDefVal = "true"
		usage += "; --help=TOPIC for a part of --help-all"
	}
	cmd.Flags().VarPF(&helpFlag{&a.part, briefHelp}, flagHelp, "h", usage).NoOptDefVal = "true"
	for _, sub := range cmd.Commands() {
		a.addHelp(sub)
	}
}

// hasTopics reports whether the help of a command is on one screen unless more is asked for.
func hasTopics(cmd *cobra.Command) bool { return cmd.Flags().Lookup(flagHelpAll) != nil }

// help writes the part of the help of a command that its flags ask for.
func (a *app) help(cmd *cobra.Command) error {
	var b strings.Builder
	names, texts := a.topics(cmd)
	brief := cmp.Or(a.part, briefHelp) == briefHelp
	if !brief && a.part != allHelp {
		text, ok := texts[strings.ToLower(a.part)]
		if !ok { // the word is not shown: it may be a password
			all := cmd.CommandPath() + " --help=all prints all topics"
			if !hasTopics(cmd) {
				all = "topics are of perfmq run and of the loads: perfmq run --help lists them"
			}
			return a.usage(plan.Wrong(nearest.Hint(a.part, names, "--help=%s", all),
				"--help: no such topic; known are %s", strings.Join(names, ", ")))
		}
		return a.write([]byte(strings.TrimPrefix(text, "\n")))
	}
	brief = brief && hasTopics(cmd)
	intro(&b, cmd, brief)
	if brief {
		b.WriteString(listFlags(cmd, true)[otherFlags] + "\nTopics: --help=TOPIC\n")
		wrap(&b, "", "  ", strings.Join(names, ", "))
	} else {
		for _, name := range names {
			b.WriteString(texts[name])
		}
	}
	if example := strings.TrimSuffix(cmd.Example, "\n"); example != "" {
		b.WriteString("\nExamples\n" + example + "\n")
	}
	_, err := cmd.OutOrStdout().Write([]byte(b.String()))
	return err
}

// intro writes the description of a command, its usage and the commands below it.
func intro(b *strings.Builder, cmd *cobra.Command, brief bool) {
	text := strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short+"."))
	if brief {
		text, _, _ = strings.Cut(text, "\n\n")
	}
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if strings.Contains("\n"+paragraph, "\n ") || strings.Contains(paragraph, "\t") { // it has its lines
			b.WriteString(paragraph + "\n")
		} else {
			wrap(b, "", "", paragraph)
		}
		b.WriteString("\n")
	}
	usage := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		usage = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(b, "Usage\n  %s\n", usage)
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands"}}
	}
	for _, g := range groups {
		listCommands(b, cmd, g)
	}
}

// topics returns the parts of the help of a command behind its usage: their names in order, and their texts.
func (a *app) topics(cmd *cobra.Command) (names []string, texts map[string]string) {
	texts = map[string]string{}
	add := func(name, text string) {
		if text != "" {
			names, texts[name] = append(names, name), text
		}
	}
	sections := listFlags(cmd, false)
	for _, title := range append(config.Sections(), otherFlags) {
		words := strings.Fields(strings.ToLower(title))
		add(words[len(words)-1], sections[title])
	}
	if f := a.protocolOf(cmd); f != nil {
		add("options", optionHelp(f))
	}
	if hasTopics(cmd) {
		add("environment", helpText("environment"))
		add("status", helpText("status"))
	}
	return names, texts
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

// listFlags returns the flags of a command by the titles of their sections; brief, the flags of daily use under one
// title, with the first part of their help.
func listFlags(cmd *cobra.Command, brief bool) map[string]string {
	sections := map[string]string{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		section, indent := otherFlags, helpIndent
		arg, usage := pflag.UnquoteUsage(f)
		t, ok := f.Value.(*flagText)
		if brief {
			if ok && !t.setting.Is("daily") && t.setting.Name != "find-max" && t.setting.Name != "format" {
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
			section, indent = otherFlags, briefIndent
		} else if f.Shorthand != "" && f.Name != flagHelp {
			name = "-" + f.Shorthand + ", " + name
		}
		b := &strings.Builder{}
		if sections[section] == "" {
			b.WriteString("\n" + section + "\n")
		}
		writeEntry(b, name, usage, indent)
		sections[section] += b.String()
	})
	return sections
}

// describe returns a help with the default.
func describe(help, byDefault string) string {
	if byDefault == "" {
		return help
	}
	return help + " (default: " + byDefault + ")"
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

func optionHelp(f *driver.Factory) string {
	options := driver.Describe(config.NewOptions(f))
	if len(options) == 0 {
		return ""
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, "\nOptions of %s: -o KEY=VALUE, may be repeated\n", f.Title)
	for _, o := range options {
		help := o.Help
		if words := strings.Join(o.Enum, ", "); words != "" {
			help += ": " + words
		}
		writeEntry(b, "-o "+o.Name+"=", describe(help, o.Default), helpIndent)
	}
	return b.String()
}

// writeEntry writes a name and, from a column on, its description.
func writeEntry(b *strings.Builder, name, text string, indent int) {
	line := fmt.Sprintf("  %-*s", indent-2, name)
	margin := strings.Repeat(" ", indent)
	if len(name)+len("  ") >= indent {
		b.WriteString(line + "\n")
		line = margin
	}
	wrap(b, line, margin, text)
}

// wrap writes a text behind the beginning of a line, in lines of at most helpWidth characters.
func wrap(b *strings.Builder, line, margin, text string) {
	line = cmp.Or(line, margin)
	for word := range strings.FieldsSeq(text) {
		switch {
		case len(line) == len(margin):
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
