//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	return append([]string{
		"/usr/bin/unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", enterScratch, "sh", string(s), dir,
		program,
	}, args...)
}

// debianRoot returns a root with Debian packages of another release and all that they depend on: unpacked, not
// configured, which is enough for programs that get all their paths as arguments. They come from the mirror that
// apt-get uses.
func debianRoot(ctx context.Context, suite string, packages ...string) (scratchRoot, error) {
	if os.Geteuid() != 0 {
		return "", fmt.Errorf("run %s of Debian %s in a root of its own: only root may do that", strings.Join(packages, " "),
			suite)
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

func unpackDebian(ctx context.Context, root, suite string, packages []string) error {
	debootstrap, err := exec.LookPath("debootstrap")
	if err != nil {
		return errors.New("debootstrap is not in PATH: apt-get install --no-install-recommends debootstrap")
	}
	mirror, err := debianMirror(ctx)
	if err != nil {
		return err
	}
	run := func(program string, args ...string) error {
		out, err := exec.CommandContext(ctx, program, args...).CombinedOutput() //nolint:gosec // the harness's own
		if err != nil {
			return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, lastLines(string(out), 10))
		}
		return nil
	}
	// The second stage would run the packages' scripts. The first one only downloads most of them.
	err = run(debootstrap, "--foreign", "--variant=minbase", "--include="+strings.Join(packages, ","), suite, root, mirror)
	if err != nil {
		return err
	}
	archives := filepath.Join(root, "var/cache/apt/archives")
	files, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := run("dpkg-deb", "--extract", file, root); err != nil {
			return err
		}
	}
	return errors.Join(
		os.RemoveAll(archives),
		os.Mkdir(filepath.Join(root, scratchDir), 0o700),
		os.WriteFile(filepath.Join(root, "etc/hosts"), []byte(loopback+" localhost\n"), 0o644), //nolint:gosec // public
	)
}

// debianMirror returns the URL from which apt-get takes Debian's packages.
func debianMirror(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)",
		"Created-By: Packages", "Origin: Debian", "Label: Debian").Output()
	if err != nil {
		return "", fmt.Errorf("ask apt-get for its mirror: %w", err)
	}
	mirrors := strings.Fields(string(out))
	if len(mirrors) == 0 {
		return "", errors.New("apt-get knows no mirror of Debian: run apt-get update")
	}
	return mirrors[0], nil
}
