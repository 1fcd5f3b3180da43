package gostomp_test

import (
	"testing"

	"github.com/perfmq/perfmq/internal/drivers/library/gostomp"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	librarytest.Probe(t, gostomp.Factory())
}
