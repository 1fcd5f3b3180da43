package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// MaxLatency is the largest latency of a distribution. Larger ones are recorded as this one and counted as out of
// range.
const MaxLatency = result.MaxLatency * time.Microsecond
