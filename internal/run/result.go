package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// describe describes the run as far as it is known before it begins.
func (r *Run) describe() (result.Head, error) {
	described, err := plan.JSON(r.Plan, r.Secrets.Field)
	if err != nil {
		return result.Head{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	var shard *result.Shard
	if own := r.Plan.Shard; !own.IsZero() {
		shard = new(result.Shard(own))
	}
	return result.Head{
		Shard:    shard,
		Plan:     described,
		Versions: result.Versions{Perfmq: r.Version.Number, Revision: r.Version.Revision, Go: runtime.Version()},
		Host: result.Host{
			Name: host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Memory: stats.MachineMemory(),
		},
	}, nil
}

// newResult makes the folder of the result, with the plan.
func (r *Run) newResult(head result.Head) (report.Reporter, error) {
	text, err := plan.YAML(r.Plan, r.Secrets.Field, "perfmq "+r.Version.String(), r.CommandLine)
	if err != nil {
		return nil, err
	}
	to, err := report.NewResult(r.Outputs.Result, r.resultOptions(head))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(r.Outputs.Result, result.PlanFile), text, 0o600); err != nil {
		return nil, fmt.Errorf("write the plan: %w", errors.Join(err, to.Close()))
	}
	return to, nil
}

func (r *Run) resultOptions(head result.Head) report.ResultOptions {
	return report.ResultOptions{
		Head: head, ClientVersion: moduleVersion,
		OnError: r.OnError,
	}
}

// moduleVersion returns the version of the client library of that name, as this program was built with it.
func moduleVersion(library string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if strings.Contains(module.Path+"/", "/"+library+"/") {
			return module.Version
		}
	}
	return ""
}

// Version says which build this is.
type Version struct {
	Number   string // 1.2.3
	Revision string // of the source, if known
	Platform string // compiler, operating system and processor
}

// NewVersion describes the running program, with the number of its version.
func NewVersion(number string) Version {
	v := Version{Number: number, Platform: fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Revision = revision(info)
	}
	return v
}

// revision returns the commit of a build in a checkout, or the commit or version of the module that go install fetched.
func revision(info *debug.BuildInfo) string {
	commit, changes := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			commit = setting.Value[:min(12, len(setting.Value))]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			changes = "+changes"
		}
	}
	if commit != "" {
		return commit + changes
	}
	version := info.Main.Version
	if pseudo := strings.Split(version, "-"); len(pseudo) > 2 { // v0.0.0-TIME-COMMIT
		return pseudo[len(pseudo)-1]
	}
	return strings.TrimPrefix(version, "(devel)")
}

// String returns the version on one line.
func (v Version) String() string {
	text := v.Number
	if v.Revision != "" {
		text += " " + v.Revision
	}
	if v.Platform != "" {
		text += " (" + v.Platform + ")"
	}
	return text
}
