package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
)

const repository = "https://github.com/perfmq/perfmq"

// The statement of in-toto, with the predicate of SLSA: https://slsa.dev/spec/v1.0/provenance.
type (
	statement struct {
		Type          string    `json:"_type"`
		Subject       []subject `json:"subject"`
		PredicateType string    `json:"predicateType"`
		Predicate     predicate `json:"predicate"`
	}
	subject struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest"`
	}
	predicate struct {
		BuildDefinition struct {
			BuildType            string            `json:"buildType"`
			ExternalParameters   map[string]string `json:"externalParameters"`
			InternalParameters   map[string]string `json:"internalParameters"`
			ResolvedDependencies []subject         `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder  map[string]string `json:"builder"`
			Metadata map[string]string `json:"metadata,omitempty"`
		} `json:"runDetails"`
	}
)

// provenance writes from what, by what and where the files of a list of checksums were made. It has no times: they
// would be all that differs between two builds.
func provenance(sums, file string) error {
	list, err := os.ReadFile(sums)
	if err != nil {
		return err
	}
	commit, err := output(nil, "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for line := range strings.Lines(string(list)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			return fmt.Errorf("%s: %q is no checksum", sums, line)
		}
		s.Subject = append(s.Subject, subject{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	build, run := &s.Predicate.BuildDefinition, &s.Predicate.RunDetails
	build.BuildType = repository + "/blob/" + commit + "/CONTRIBUTING.md#release"
	build.ExternalParameters = map[string]string{"repository": repository, "config": ".goreleaser.yaml"}
	build.InternalParameters = map[string]string{"go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH}
	build.ResolvedDependencies = []subject{
		{URI: "git+" + repository + "@" + commit, Digest: map[string]string{"gitCommit": commit}},
	}
	// Outside of GitHub's runners nobody vouches for the builder.
	run.Builder = map[string]string{"id": cmp.Or(os.Getenv("RUNNER_ENVIRONMENT"), "local")}
	if id := os.Getenv("GITHUB_RUN_ID"); id != "" {
		run.Builder["id"] = "https://github.com/actions/runner/" + run.Builder["id"]
		run.Metadata = map[string]string{"invocationId": repository + "/actions/runs/" + id}
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}
