package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
)

// A process that was stopped for a minute has not heard anything; that says nothing about the broker.
func TestSilenceOfTheTesterIsNotTheBrokers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &run{clock: load.NewClock()}
		g := &group{producers: []*producer{{rec: stats.NewProducerRecorder(false, nil)}}}
		r.step = &step{plan: &plan.Step{}, uses: []*use{{group: g, plan: &plan.Group{Count: 10}, to: &Endpoint{}}}}
		r.plan = &plan.Plan{}
		r.clock.Begin()
		s := r.listen()
		<-time.After(time.Minute)
		require.NoError(t, s.broken())
		for range 7 {
			<-time.After(sampleInterval)
			require.NoError(t, s.broken())
		}
		<-time.After(sampleInterval)
		require.ErrorContains(t, s.broken(), "for 10s it took")
	})
}
