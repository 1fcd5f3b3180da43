// Command release makes what goreleaser does not: the licences of the modules in the binary, the provenance of a
// release, and its image. Usage, from the top of the repository:
//
//	go run -C internal/lab/release . licences [FILE]
//	go run -C internal/lab/release . provenance SHA256SUMS FILE
//	go run -C internal/lab/release . image DIST DIR
//
// It is a module of its own: its libraries are no dependency of perfmq.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if err := os.Chdir(filepath.Join("..", "..", "..")); err != nil { // the top: paths are relative to it
		return err
	}
	switch name := strings.Join(args[:min(1, len(args))], ""); {
	case name == "licences" && len(args) <= 2:
		return licences(append(args, "")[1])
	case name == "provenance" && len(args) == 3:
		return provenance(args[1], args[2])
	case name == "image" && len(args) == 3:
		return image(args[1], args[2])
	}
	return errors.New("usage: licences [FILE], provenance SHA256SUMS FILE or image DIST DIR")
}

// output returns what a command prints, without the line feed at its end.
func output(env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimRight(string(text), "\n"), nil
}
