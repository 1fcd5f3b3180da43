//go:build !linux

package stats

import "time"

// machineCPU is not known on this system.
func machineCPU() (busy, all time.Duration) { return 0, 0 }
