package goamqp_test

import (
	"testing"

	"github.com/perfmq/perfmq/internal/drivers/library/goamqp"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	librarytest.Probe(t, goamqp.Factory())
}
