package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	apache, err := os.ReadFile("../../../LICENSE")
	require.NoError(t, err)
	for _, c := range []struct{ name, body, want string }{
		{"Apache-2.0", string(apache), ""},
		{"none", "", "an unknown licence"},
		{"a text that grants nothing", "All rights reserved. " + strings.Repeat("Ask us. ", 50), "an unknown licence"},
		{"more than a licence", string(apache) + strings.Repeat("Beyond that, nothing may be used in ships. ", 300), "an unknown licence"},
		{"GPL", "SPDX-License-Identifier: GPL-3.0-only", "an unknown licence"},
	} {
		require.Equal(t, c.want, judge([]byte(c.body)), c.name)
	}
	gpl := "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as " +
		"published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version."
	require.Contains(t, judge([]byte(gpl)), "is not among the compatible licences")
}

func TestLicencesIn(t *testing.T) {
	dir := t.TempDir()
	_, err := licencesIn("example.org/m v1.0.0", []string{dir})
	require.ErrorContains(t, err, "example.org/m v1.0.0 has no licence")
	apache, err := os.ReadFile("../../../LICENSE")
	require.NoError(t, err)
	sub := filepath.Join(dir, "sub")
	require.NoError(t, os.Mkdir(sub, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "LICENSE.md"), apache, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "NOTICE"), []byte("by us"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "license.go"), []byte("package m"), 0o644))
	texts, err := licencesIn("m", []string{sub, dir})
	require.NoError(t, err)
	require.Equal(t, []string{"LICENSE.md", "NOTICE"}, []string{texts[0].file, texts[1].file})
	require.NoError(t, os.WriteFile(filepath.Join(sub, "COPYING"), []byte("Ask us."), 0o644))
	_, err = licencesIn("m", []string{sub, dir})
	require.EqualError(t, err, "an unknown licence: COPYING of m")
}

func TestProvenance(t *testing.T) {
	dir := t.TempDir()
	sums, file := filepath.Join(dir, "SHA256SUMS"), filepath.Join(dir, "p.json")
	require.NoError(t, os.WriteFile(sums, []byte("0a1b  perfmq.zip\n2c3d  perfmq.deb\n"), 0o644))
	t.Setenv("GITHUB_RUN_ID", "")
	t.Setenv("RUNNER_ENVIRONMENT", "")
	require.NoError(t, provenance(sums, file))
	var s statement
	require.NoError(t, readJSON(file, &s))
	require.Equal(t, []subject{{Name: "perfmq.zip", Digest: map[string]string{"sha256": "0a1b"}}, {Name: "perfmq.deb", Digest: map[string]string{"sha256": "2c3d"}}}, s.Subject)
	require.Equal(t, "local", s.Predicate.RunDetails.Builder["id"])
	require.Len(t, s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"], 40)
	t.Setenv("GITHUB_RUN_ID", "17")
	t.Setenv("RUNNER_ENVIRONMENT", "github-hosted")
	require.NoError(t, provenance(sums, file))
	require.NoError(t, readJSON(file, &s))
	require.Equal(t, "https://github.com/actions/runner/github-hosted", s.Predicate.RunDetails.Builder["id"])
	require.Equal(t, repository+"/actions/runs/17", s.Predicate.RunDetails.Metadata["invocationId"])
	require.NoError(t, os.WriteFile(sums, []byte("nothing\n"), 0o644))
	require.ErrorContains(t, provenance(sums, file), "is no checksum")
}
