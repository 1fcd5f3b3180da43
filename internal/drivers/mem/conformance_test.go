package mem_test

import (
	"testing"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/drivers/mem/memtest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

func TestConformance(t *testing.T) {
	drivertest.Run(t, memtest.Config(mem.New()))
}
