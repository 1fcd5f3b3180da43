//go:build unix

package brokertest

import (
	"context"
	"os/exec"
)

// ArtemisPerf returns `artemis perf ROLE ARGS...` as [Artemis.PerfCommand] does, for a broker that is not an Artemis:
// the distribution is fetched if need be, no broker is started. --url is to be among the arguments.
func ArtemisPerf(ctx context.Context, role string, args ...string) (*exec.Cmd, error) {
	home, err := mavenUnpacked(ctx, ArtemisCoordinates)
	if err != nil {
		return nil, err
	}
	return (&Artemis{home: home}).PerfCommand(ctx, role, args...), nil
}
