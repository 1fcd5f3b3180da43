//go:build !linux

package brokerside

import (
	"context"

	"github.com/shirou/gopsutil/v4/process"
)

// began returns when a process began, by the system's own record.
func began(ctx context.Context, p *process.Process) (int64, error) {
	return p.CreateTimeWithContext(ctx)
}
