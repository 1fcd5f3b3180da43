//go:build !linux

package stats

import "time"

// cpuWait is not known on this system.
func cpuWait() (time.Duration, bool) { return 0, false }
