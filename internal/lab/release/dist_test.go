//go:build dist

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/stretchr/testify/require"
)

// maxBinary is the largest that a binary may be, in bytes; TestImage of internal/e2e has the same limit.
const maxBinary = 22_000_000

// The tests run on a whole release: make release-snapshot.
var dist = flag.String("dist", "", "the folder of a release")

// only returns the one file of the release that a pattern names.
func only(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(*dist, pattern))
	require.NoError(t, err)
	require.Len(t, files, 1, pattern)
	return files[0]
}

// read returns a file, and its SHA-256.
func read(t *testing.T, file string) (data []byte, sum string) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return data, fmt.Sprintf("%x", sha256.Sum256(data))
}

// run returns what a command prints.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", name, strings.Join(args, " "), text)
	return string(text)
}

// untar returns the sizes of the files in a tar archive.
func untar(t *testing.T, r io.Reader) map[string]int64 {
	t.Helper()
	sizes := map[string]int64{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return sizes
		}
		require.NoError(t, err)
		sizes[strings.TrimPrefix(h.Name, "./")] = h.Size
	}
}

func gunzip(t *testing.T, file string) io.Reader {
	t.Helper()
	data, _ := read(t, file)
	r, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	return r
}

// present requires files of the release beneath a folder.
func present(t *testing.T, sizes map[string]int64, folder string, names ...string) {
	t.Helper()
	for _, name := range names {
		require.Positive(t, sizes[folder+name], "%s in %v", folder+name, sizes)
	}
}

func TestArchives(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			binary, sizes := "perfmq", map[string]int64{}
			if system == "windows" {
				binary = "perfmq.exe"
				r, err := zip.OpenReader(only(t, "*_windows_"+arch+".zip"))
				require.NoError(t, err)
				for _, f := range r.File {
					sizes[f.Name] = int64(f.UncompressedSize64)
				}
				require.NoError(t, r.Close())
			} else {
				sizes = untar(t, gunzip(t, only(t, "*_"+system+"_"+arch+".tar.gz")))
			}
			var folder string
			for name := range sizes {
				folder, _, _ = strings.Cut(name, "/")
			}
			present(t, sizes, folder+"/", binary, strings.Replace(binary, "perfmq", "perfmq-library", 1), "LICENSE", "README.md", "CHANGELOG.md", "THIRD-PARTY-LICENSES.txt",
				"man/perfmq.1", "man/perfmq-amqp-client.1", "completions/perfmq.bash", "completions/_perfmq", "completions/perfmq.fish",
				"completions/perfmq.ps1", "scenarios/smoke/amqp.yaml", "scenarios/smoke/order.json",
				"deploy/grafana-dashboard.json", "deploy/alerts.yml", "deploy/prometheus.yml")
			require.LessOrEqual(t, sizes[folder+"/"+binary], int64(maxBinary), "%s/%s", system, arch)
		}
	}
}

func TestBinary(t *testing.T) {
	binary := only(t, "perfmq_"+runtime.GOOS+"_"+runtime.GOARCH+"_*/perfmq")
	info, err := buildinfo.ReadFile(binary)
	require.NoError(t, err)
	revision := run(t, "git", "rev-parse", "HEAD")
	require.Contains(t, run(t, binary, "version"), revision[:12])

	// Each module of the binary is in its bill of materials.
	var bom struct {
		Metadata   struct{ Component struct{ Version string } }
		Components []struct{ Name, Version string }
	}
	require.NoError(t, readJSON(only(t, "perfmq_*_"+runtime.GOOS+"_"+runtime.GOARCH+".cdx.json"), &bom))
	components := map[string]string{}
	for _, c := range bom.Components {
		components[c.Name] = c.Version
	}
	require.Greater(t, len(info.Deps), 20)
	for _, module := range info.Deps {
		require.Equal(t, module.Version, components[module.Path], module.Path)
	}
	licences, _ := read(t, only(t, "../bin/release/THIRD-PARTY-LICENSES.txt"))
	for _, module := range info.Deps {
		require.Contains(t, string(licences), module.Path+" "+module.Version)
	}
}

func TestChecksumsAndProvenance(t *testing.T) {
	list, _ := read(t, filepath.Join(*dist, "SHA256SUMS"))
	sums := map[string]string{}
	for line := range strings.Lines(string(list)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		_, got := read(t, filepath.Join(*dist, name))
		require.Equal(t, sum, got, name)
		sums[name] = sum
	}
	require.Len(t, sums, 6+6+2*6+1, "archives, packages, bills of materials of two programs, provenance")
	var s statement
	require.NoError(t, readJSON(only(t, "*.provenance.json"), &s))
	require.Len(t, s.Subject, len(sums)-1)
	for _, file := range s.Subject {
		require.Equal(t, sums[file.Name], file.Digest["sha256"], file.Name)
	}
	require.Equal(t, strings.TrimSpace(run(t, "git", "rev-parse", "HEAD")),
		s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"])

	cask, _ := read(t, only(t, "homebrew/Casks/perfmq.rb"))
	scoop, _ := read(t, only(t, "scoop/bucket/perfmq.json"))
	for name, sum := range sums {
		if strings.HasSuffix(name, ".tar.gz") {
			require.Contains(t, string(cask), sum, name)
		}
		if strings.HasSuffix(name, ".zip") {
			require.Contains(t, string(scoop), sum, name)
		}
	}
	require.True(t, json.Valid(scoop))
}

// installed lists files of a package beneath /.
var installed = []string{
	"usr/bin/perfmq", "usr/bin/perfmq-library", "usr/share/man/man1/perfmq.1", "usr/share/man/man1/perfmq-run.1", "usr/share/doc/perfmq/copyright",
	"usr/share/doc/perfmq/THIRD-PARTY-LICENSES.txt", "usr/share/bash-completion/completions/perfmq",
	"usr/share/doc/perfmq/scenarios/smoke/amqp.yaml", "usr/share/doc/perfmq/deploy/alerts.yml",
}

// A package is installed into a folder as the root of a system, works there, and leaves nothing when it is removed.
func TestPackages(t *testing.T) {
	rpmArch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	for _, kind := range []struct {
		name            string
		install, remove []string
	}{
		{"deb", []string{"dpkg", "--root=ROOT", "--install", only(t, "perfmq_*_"+runtime.GOARCH+".deb")}, []string{"dpkg", "--root=ROOT", "--purge", "perfmq"}},
		{"rpm", []string{"rpm", "--root=ROOT", "--install", only(t, "perfmq-*."+rpmArch+".rpm")}, []string{"rpm", "--root=ROOT", "--erase", "perfmq"}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			root := t.TempDir()
			for _, dir := range []string{"updates", "info", "triggers"} {
				require.NoError(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755))
			}
			require.NoError(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644))
			do := func(command []string) {
				args := strings.Split(strings.ReplaceAll(strings.Join(command, "|"), "ROOT", root), "|")
				run(t, args[0], args[1:]...)
			}
			do(kind.install)
			for _, file := range installed {
				require.FileExists(t, filepath.Join(root, file))
			}
			require.Contains(t, run(t, filepath.Join(root, "usr/bin/perfmq"), "scenario", "list"), "@smoke/amqp")
			do(kind.remove)
			for _, file := range installed {
				require.NoFileExists(t, filepath.Join(root, file))
			}
			require.NoDirExists(t, filepath.Join(root, "usr/share/doc/perfmq"))
		})
	}
	for _, arch := range []string{"x86_64", "aarch64"} { // apk itself is not in Debian
		sizes := untar(t, gunzip(t, only(t, "perfmq_*_"+arch+".apk")))
		present(t, sizes, "", append(installed, ".PKGINFO", "usr/share/zsh/site-functions/_perfmq")...)
	}
}

// TestImage starts the image by runc: rootless, by a user who is root only inside, and as the image's own user, who is
// mapped to one without rights. The test runs as root, to become the one and to map the other.
func TestImage(t *testing.T) {
	index, err := layout.ImageIndexFromPath(filepath.Join(*dist, "image"))
	require.NoError(t, err)
	manifests, err := index.IndexManifest()
	require.NoError(t, err)
	var own v1.Image
	var archs []string
	for _, m := range manifests.Manifests {
		one, err := index.Image(m.Digest)
		require.NoError(t, err)
		config, err := one.ConfigFile()
		require.NoError(t, err)
		require.Equal(t, "65534:65534", config.Config.User)
		require.Equal(t, []string{"/perfmq"}, config.Config.Entrypoint)
		require.Equal(t, "Apache-2.0", config.Config.Labels["org.opencontainers.image.licenses"])
		require.Equal(t, strings.TrimSpace(run(t, "git", "rev-parse", "HEAD")), config.Config.Labels["org.opencontainers.image.revision"])
		require.Equal(t, m.Platform.Architecture, config.Architecture)
		archs = append(archs, config.Architecture)
		if config.Architecture == runtime.GOARCH {
			own = one
		}
	}
	require.ElementsMatch(t, []string{"amd64", "arm64"}, archs)

	dir, err := os.MkdirTemp("", "perfmq-image") //nolint:usetesting // another user enters it
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	archive, err := os.Create(filepath.Join(dir, "rootfs.tar"))
	require.NoError(t, err)
	layers := mutate.Extract(own)
	_, err = io.Copy(archive, layers)
	require.NoError(t, err)
	require.NoError(t, errors.Join(layers.Close(), archive.Close()))
	for _, as := range []struct {
		name                  string
		user, first, size     int // inside; host's number of the first user inside, and how many are mapped
		runtimeUser, hostUser int
	}{
		{"rootless", 0, 65534, 1, 65534, 65534},
		{"own user", 65534, 100000, 65536, 0, 165534},
	} {
		t.Run(as.name, func(t *testing.T) {
			work := filepath.Join(dir, as.name)
			results := filepath.Join(work, "results")
			for _, sub := range []string{"rootfs", "state", "results"} {
				require.NoError(t, os.MkdirAll(filepath.Join(work, sub), 0o755))
			}
			run(t, "tar", "-C", filepath.Join(work, "rootfs"), "-xf", archive.Name())
			run(t, "chown", "-R", fmt.Sprint(as.first), work)
			run(t, "chown", fmt.Sprint(as.hostUser), results)
			runc := func(args ...string) (string, error) {
				cmd := exec.CommandContext(t.Context(), "runc", append([]string{"--root", filepath.Join(work, "state")}, args...)...)
				cmd.Dir, cmd.Env = work, append(os.Environ(), "XDG_RUNTIME_DIR="+work, "HOME="+work)
				id := uint32(as.runtimeUser)
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
				text, err := cmd.CombinedOutput()
				return string(text), err
			}
			start := func(args ...string) (string, error) {
				file := filepath.Join(work, "config.json")
				_ = os.Remove(file)
				text, err := runc("spec", "--rootless")
				require.NoError(t, err, text)
				bundle := map[string]any{}
				require.NoError(t, readJSON(file, &bundle))
				process, _ := bundle["process"].(map[string]any)
				process["terminal"] = false
				process["args"] = append([]string{"/perfmq"}, args...)
				process["user"] = map[string]int{"uid": as.user, "gid": as.user}
				linux, _ := bundle["linux"].(map[string]any)
				mapping := []map[string]int{{"containerID": 0, "hostID": as.first, "size": as.size}}
				linux["uidMappings"], linux["gidMappings"] = mapping, mapping
				mounts, _ := bundle["mounts"].([]any)
				mounts = slices.DeleteFunc(mounts, func(m any) bool {
					mount, _ := m.(map[string]any)
					return mount["destination"] == "/dev/pts" // its group is not mapped
				})
				bundle["mounts"] = append(mounts, map[string]any{
					"destination": "/results", "type": "bind", "source": results, "options": []string{"bind", "rw"},
				})
				data, err := json.Marshal(bundle)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(file, data, 0o644))
				return runc("run", "perfmq")
			}
			text, err := start("version")
			require.NoError(t, err, text)
			require.Contains(t, text, "perfmq ")
			load := []string{"amqp", "client", "--embedded", "--message-count", "100", "--result", "/results/run", "queue://TEST"}
			text, err = start(load...)
			require.NoError(t, err, text)
			require.FileExists(t, filepath.Join(results, "run", "result.json"))
			// A folder of somebody else is refused in words.
			require.NoError(t, os.RemoveAll(filepath.Join(results, "run")))
			run(t, "chown", "1", results)
			text, err = start(load...)
			require.Error(t, err)
			require.Contains(t, text, "permission denied")
		})
	}
}
