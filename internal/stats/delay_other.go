//go:build !linux

package stats

import "time"

// processDelay is not known here.
func processDelay() (time.Duration, bool) { return 0, false }
