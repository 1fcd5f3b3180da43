//go:build unix && !race

package rocketmqgo_test

import (
	"testing"

	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/internal/drivers/library/rocketmqgo"
)

func TestProbe(t *testing.T) {
	if testing.Short() {
		t.Skip("the library waits for 20 seconds")
	}
	t.Parallel()
	librarytest.Probe(t, rocketmqgo.Factory())
}
