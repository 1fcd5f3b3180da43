package stomp

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// outcomes collects the arguments of Done.
type outcomes struct {
	mu      sync.Mutex
	by      map[driver.Slot]driver.Outcome
	changed chan struct{}
}

func newOutcomes() *outcomes {
	return &outcomes{by: map[driver.Slot]driver.Outcome{}, changed: make(chan struct{}, 1000)}
}

// Done implements [driver.Completions].
func (o *outcomes) Done(s driver.Slot, out driver.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, twice := o.by[s]; twice {
		panic(fmt.Sprintf("Done was called twice for slot %d", s))
	}
	o.by[s] = out
	o.changed <- struct{}{}
}

// DoneAll implements [driver.Completions].
func (o *outcomes) DoneAll(slots []driver.Slot, out driver.Outcome) {
	for _, s := range slots {
		o.Done(s, out)
	}
}

// wait waits for n of them.
func (o *outcomes) wait(t *testing.T, n int) map[driver.Slot]driver.Outcome {
	t.Helper()
	deadline := time.After(patience)
	for {
		o.mu.Lock()
		if len(o.by) >= n {
			defer o.mu.Unlock()
			require.Len(t, o.by, n)
			return o.by
		}
		o.mu.Unlock()
		select {
		case <-o.changed:
		case <-deadline:
			require.FailNow(t, "timeout", "%d of %d sends have ended", len(o.by), n)
		}
	}
}
