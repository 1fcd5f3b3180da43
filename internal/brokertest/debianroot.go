//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// scratchRoot is a folder with the files of another release of Debian, in which
// programs run by chroot. Empty is the machine's own root.
type scratchRoot string

// scratchDir is where a program in a scratch root sees the broker's folder.
const scratchDir = "/broker"

// enterScratch mounts the folders that programs need, in a mount namespace that ends with
// them, and becomes the program: ROOT, the broker's folder, program, arguments.
const enterScratch = `set -e
root=$1 dir=$2
shift 2
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$dir" "$root` + scratchDir + `"
exec chroot "$root" "$@"`

// path returns the path of a file of the root as this process sees it.
func (s scratchRoot) path(name string) string { return filepath.Join("/", string(s), name) }

// command returns the command line of a program of the root. dir is the broker's folder.
// The process keeps its id when it becomes the program.
func (s scratchRoot) command(dir, program string, args ...string) []string {
	if s == "" {
		return append([]string{program}, args...)
	}
	return append(unshared("/bin/sh", "-c", enterScratch, "sh", string(s), dir, program), args...)
}

// debianBase are packages that no other package depends on, as every Debian has them.
func debianBase() []string {
	return []string{"base-files", "coreutils", "dash", "grep", "libc-bin", "mawk", "sed"}
}

// debianRoot returns a root with Debian packages of another release and all that they depend on: unpacked, not
// configured, which is enough for programs that get all their paths as arguments. apt-get fetches them from the
// machine's own mirror, about 60 MB, and checks their signatures.
func debianRoot(ctx context.Context, suite string, packages ...string) (scratchRoot, error) {
	if err := mayEnterScratch(ctx); err != nil {
		return "", fmt.Errorf("run %s of Debian %s: %w", strings.Join(packages, " "), suite, err)
	}
	name := "debian-" + suite + "-" + strings.Join(packages, "-")
	root, err := once(ctx, name, func(tmp string) error {
		if err := unpackDebian(ctx, tmp, suite, packages); err != nil {
			return fmt.Errorf("unpack %s of Debian %s: %w", strings.Join(packages, " "), suite, err)
		}
		return nil
	})
	return scratchRoot(root), err
}

// unshared returns the command line that runs a program in a mount namespace of its own.
func unshared(command ...string) []string {
	line := []string{"/usr/bin/unshare", "--mount", "--propagation", "private"}
	if os.Geteuid() != 0 {
		line = append(line, "--map-root-user")
	}
	return append(append(line, "--"), command...)
}

// mayEnterScratch returns an error if this user cannot have a mount namespace.
func mayEnterScratch(ctx context.Context) error {
	line := unshared("/bin/true")
	out, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput() //nolint:gosec // the harness's own
	if err != nil {
		return fmt.Errorf("it needs a mount namespace: be root, or allow user namespaces: %w: %s", err,
			lastLines(string(out), 3))
	}
	return nil
}

// debianKeys are the keys of Debian's archive.
const debianKeys = "/usr/share/keyrings/debian-archive-keyring.gpg"

func unpackDebian(ctx context.Context, root, suite string, packages []string) (err error) {
	mirror, err := debianMirror(ctx)
	if err != nil {
		return err
	}
	run := func(program string, args ...string) error {
		out, err := exec.CommandContext(ctx, program, args...).CombinedOutput() //nolint:gosec // the harness's own
		if err != nil {
			return fmt.Errorf("%s: %w: %s", program, err, lastLines(string(out), 10))
		}
		return nil
	}
	state := root + ".apt" // of apt-get, as on a machine with nothing installed
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	for _, dir := range []string{
		filepath.Join(state, "lists/partial"), filepath.Join(state, "archives/partial"),
		filepath.Join(root, scratchDir),
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // what they hold is public
			return err
		}
	}
	source := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", debianKeys, mirror, suite)
	for name, text := range map[string]string{"sources.list": source, "status": ""} {
		if err := os.WriteFile(filepath.Join(state, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	options := []string{"-qq"}
	for _, set := range []string{
		"Dir::Etc::SourceList=" + filepath.Join(state, "sources.list"), "Dir::Etc::SourceParts=/dev/null",
		"Dir::Etc::Preferences=/dev/null", "Dir::Etc::PreferencesParts=/dev/null",
		"Dir::State::Lists=" + filepath.Join(state, "lists"), "Dir::State::status=" + filepath.Join(state, "status"),
		"Dir::Cache=" + state, "APT::Install-Recommends=false", "APT::Sandbox::User=", "Acquire::Languages=none",
		"Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false", "Acquire::Retries=3",
	} {
		options = append(options, "-o", set)
	}
	if err := run("apt-get", append(options, "update")...); err != nil {
		return err
	}
	options = append(options, "install", "--yes", "--download-only", "--")
	if err := run("apt-get", slices.Concat(options, packages, debianBase())...); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(state, "archives", "*.deb"))
	if err != nil {
		return err
	}
	// First the links of the merged /usr: other packages have files behind them.
	first := func(file string) int { return strings.Count(file, "/base-files_") }
	slices.SortStableFunc(files, func(a, b string) int { return first(b) - first(a) })
	for _, file := range files {
		if err := run("dpkg-deb", "--extract", file, root); err != nil {
			return err
		}
	}
	hosts := []byte(loopback + " localhost\n")
	return os.WriteFile(filepath.Join(root, "etc/hosts"), hosts, 0o644) //nolint:gosec // public
}

// debianMirror returns the URL from which apt-get takes Debian's packages.
func debianMirror(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)",
		"Created-By: Packages", "Origin: Debian", "Label: Debian").Output()
	if err != nil {
		return "", fmt.Errorf("ask apt-get, which Debian and its like have, for its mirror: %w", err)
	}
	return append(strings.Fields(string(out)), "http://deb.debian.org/debian")[0], nil // where apt-get update never ran
}
