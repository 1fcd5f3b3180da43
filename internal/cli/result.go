package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// newResult makes the folder of --result.
func newResult(
	dir string, p *plan.Plan, version Version, secrets *safetext.Secrets, onError func(error),
) (report.Reporter, error) {
	described, err := plan.JSON(p, secrets.Field)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return report.NewResult(dir, report.ResultOptions{
		Head: result.Head{
			Plan:     described,
			Versions: result.Versions{Perfmq: version.Number, Revision: version.Revision, Go: runtime.Version()},
			Host: result.Host{
				Name: host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Memory: stats.MachineMemory(),
			},
		},
		ClientVersion: moduleVersion, Allow: p.Allow, OnError: onError,
	})
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
