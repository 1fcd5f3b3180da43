// Command mangen writes the man pages of perfmq, one for each command, into a folder: make man.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/perfmq/perfmq/internal/cli"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/transport"
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
	dir := args[0]
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // pages for everybody
		return fmt.Errorf("make the folder of the pages: %w", err)
	}
	root := cli.Commands(cli.Env{
		Factories: drivers.All(), Stdout: os.Stdout, Stderr: os.Stderr,
		Version: run.Version{Number: transport.Version},
	})
	header := &doc.GenManHeader{Title: "PERFMQ", Section: "1", Source: "perfmq " + transport.Version, Manual: "perfmq"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		return fmt.Errorf("write the pages: %w", err)
	}
	return nil
}
