package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// thirdParty is written by scripts/release-files.sh.
const thirdParty = "bin/release/THIRD-PARTY-LICENSES.txt"

// image writes an OCI layout with an image for each architecture, of the Linux programs that goreleaser left in dist:
// the programs, the licences and Mozilla's root certificates, run by a user without rights.
func image(dist, dir string) error {
	type artifact struct{ Path, Type, Goos, Goarch string }
	var artifacts []artifact
	if err := readJSON(filepath.Join(dist, "artifacts.json"), &artifacts); err != nil {
		return err
	}
	var meta struct{ Version, Commit string }
	if err := readJSON(filepath.Join(dist, "metadata.json"), &meta); err != nil {
		return err
	}
	date, err := output(nil, "git", "log", "-1", "--format=%cI", meta.Commit)
	if err != nil {
		return err
	}
	made, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return err
	}
	made = made.UTC()
	labels := map[string]string{
		"org.opencontainers.image.title":       "perfmq",
		"org.opencontainers.image.description": "load tester for message brokers over AMQP 1.0, STOMP and RocketMQ",
		"org.opencontainers.image.source":      repository,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     meta.Version,
		"org.opencontainers.image.revision":    meta.Commit,
		"org.opencontainers.image.created":     made.Format(time.RFC3339),
	}
	// Builds end in any order.
	slices.SortFunc(artifacts, func(a, b artifact) int { return cmp.Compare(a.Path, b.Path) })
	programs := map[string][]string{} // by architecture
	for _, a := range artifacts {
		if a.Type == "Binary" && a.Goos == "linux" {
			programs[a.Goarch] = append(programs[a.Goarch], a.Path)
		}
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range slices.Sorted(maps.Keys(programs)) {
		one, err := imageOf(programs[arch], arch, made, labels)
		if err != nil {
			return fmt.Errorf("image for %s: %w", arch, err)
		}
		platform := v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: platform})
	}
	index, _ = mutate.Annotations(index, labels).(v1.ImageIndex)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	digest, err := index.Digest()
	fmt.Println("image", digest)
	return err
}

func imageOf(programs []string, arch string, made time.Time, labels map[string]string) (v1.Image, error) {
	layer, err := layerOf(programs, made)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil }
	compressed, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	one, err := mutate.Append(base, mutate.Addendum{
		Layer: compressed, History: v1.History{Created: v1.Time{Time: made}, CreatedBy: "goreleaser"},
	})
	if err != nil {
		return nil, err
	}
	config, err := one.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: made}
	config.Config = v1.Config{User: "65534:65534", Entrypoint: []string{"/perfmq"}, Labels: labels}
	return mutate.ConfigFile(one, config)
}

// layerOf returns a tar archive of the files in an image.
func layerOf(programs []string, made time.Time) ([]byte, error) {
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	others, err := os.ReadFile(thirdParty)
	if err != nil {
		return nil, err
	}
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil { // which PEM cannot express
			continue
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	type file struct {
		name string
		mode int64
		data []byte
	}
	var files []file
	for _, path := range programs {
		program, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, file{filepath.Base(path), 0o755, program})
	}
	files = append(files, []file{
		{"etc/ssl/certs/ca-certificates.crt", 0o644, roots.Bytes()},
		{"licences/LICENSE", 0o644, licence},
		{"licences/THIRD-PARTY-LICENSES.txt", 0o644, others},
	}...)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: made, Typeflag: tar.TypeReg}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return b.Bytes(), err
}

func readJSON(file string, value any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
