// Command mangen writes the man pages of perfmq, one for each command, into a folder: make man. A page is the help of
// its command, with all flags.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/cli"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/transport"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1) //nolint:forbidigo // it is a program of its own
	}
}

func write(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: mangen DIR")
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // pages for everybody
		return fmt.Errorf("make the folder of the pages: %w", err)
	}
	return pages(args[0], cli.Commands(cli.Env{Factories: drivers.All()}))
}

// pages writes the pages of a command and of the commands below it.
func pages(dir string, cmd *cobra.Command) error {
	text, err := help(cmd)
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	var related []string
	if cmd.HasParent() {
		related = append(related, cmd.Parent().CommandPath())
	}
	for _, sub := range cmd.Commands() {
		if sub.Hidden || sub.Name() == "help" {
			continue
		}
		related = append(related, sub.CommandPath())
		if err := pages(dir, sub); err != nil {
			return err
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" \"perfmq %s\" perfmq\n.nh\n.ad l\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n",
		strings.ToUpper(name), transport.Version, roff(name), roff(cmd.Short))
	body(&b, text)
	if !strings.Contains(text, "\nExit status\n") {
		b.WriteString(".SH EXIT STATUS\n0 for a success, 1 for a failure, 2 for a mistake in the command line;\n" +
			"see also\n.BR perfmq\\-run (1).\n")
	}
	b.WriteString(".SH SEE ALSO\n")
	for _, path := range related {
		fmt.Fprintf(&b, ".BR %s (1)\n", roff(strings.ReplaceAll(path, " ", "-")))
	}
	return os.WriteFile(filepath.Join(dir, name+".1"), []byte(b.String()), 0o644) //nolint:gosec // for everybody
}

// help returns the help of a command with all flags.
func help(cmd *cobra.Command) (string, error) {
	flag := "--help"
	if cmd.Flags().Lookup("help-all") != nil {
		flag = "--help-all"
	}
	var out, failed bytes.Buffer
	args := append(strings.Fields(cmd.CommandPath())[1:], flag)
	status := cli.Main(cli.Env{
		Args: args, Stdout: &out, Stderr: &failed, Factories: drivers.All(),
		Version: run.Version{Number: transport.Version},
	})
	if status != 0 {
		return "", fmt.Errorf("perfmq %s: %s", strings.Join(args, " "), failed.String())
	}
	return out.String(), nil
}

// entry is a line of the help with a flag or a command, and the beginning of its description.
var entry = regexp.MustCompile(`^  (\S+(?: \S+)*)(?:  +(\S.*))?$`)

// body writes the help: first the description, then a section for each title. Entries become tagged paragraphs; the
// other sections keep their lines.
func body(b *strings.Builder, help string) {
	description, sections, _ := strings.Cut(help, "\nUsage\n")
	for paragraph := range strings.SplitSeq(strings.TrimSpace(description), "\n\n") {
		b.WriteString(".PP\n")
		if strings.ContainsAny(paragraph, "\t") || strings.Contains(paragraph, "\n ") {
			literal(b, paragraph)
		} else {
			b.WriteString(roff(paragraph) + "\n")
		}
	}
	b.WriteString(".SH SYNOPSIS\n")
	for section := range strings.SplitSeq(sections, "\n\n") {
		title, lines, titled := strings.Cut(strings.Trim(section, "\n"), "\n")
		if strings.HasPrefix(title, " ") {
			lines, titled = strings.Trim(section, "\n"), false
		}
		title, note, _ := strings.Cut(title, ": ")
		if titled {
			fmt.Fprintf(b, ".SH %s\n", roff(strings.ToUpper(title)))
		}
		if !titled || slices.Contains([]string{"Environment", "Exit status", "Examples"}, title) {
			literal(b, lines)
			continue
		}
		if note != "" {
			b.WriteString(roff(note) + "\n")
		}
		for line := range strings.SplitSeq(lines, "\n") {
			if m := entry.FindStringSubmatch(line); m != nil {
				fmt.Fprintf(b, ".TP\n.B %s\n", roff(m[1]))
				line = m[2]
			}
			if line != "" { // which would be a line of space
				b.WriteString(roff(strings.TrimLeft(line, " ")) + "\n")
			}
		}
	}
}

// literal writes lines as they are.
func literal(b *strings.Builder, lines string) { b.WriteString(".nf\n" + roff(lines) + "\n.fi\n") }

// roff escapes a text, of several lines perhaps.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\`", "^", `\(ha`, "~", `\(ti`).Replace(text)
	return strings.ReplaceAll("\n"+text, "\n.", "\n\\&.")[1:]
}
