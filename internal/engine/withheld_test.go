package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// Messages of transactions that are rolled back are not missing; those lost beside them are.
func TestWithheldMessagesAreNotMissing(t *testing.T) {
	for _, lose := range []int{0, 100} {
		synctest.Test(t, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Rollback, o.Lose = 10, lose })
			s, _ := run(t, newPlan(b.Factory(), func(p *flat) { p.Count = 1000 }), nil)
			truth := b.Stats()
			require.EqualValues(t, 100, truth.RolledBack)
			require.EqualValues(t, 1000, s.Total[result.Completed])
			require.EqualValues(t, 900-truth.Lost, s.Total[result.Received])
			require.EqualValues(t, 900, s.Expected)
			require.Equal(t, truth.Lost, s.Missing)
			require.Equal(t, lose == 0, s.Success, s.Problems())
		})
	}
}
