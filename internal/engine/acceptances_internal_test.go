package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestAcceptances: the last broker that was waited for counts; the first of all if none was.
func TestAcceptances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := func(url string) *Endpoint {
			return &Endpoint{Broker: &plan.Broker{Protocol: "mem", OpenOptions: driver.OpenOptions{URL: url}}}
		}
		var a acceptances
		start := time.Now()
		require.Zero(t, a.last())
		a.accepted(at("mem://a"))
		<-time.After(time.Second)
		a.accepted(at("mem://b"))
		a.accepted(at("mem://a"))
		require.Equal(t, start, a.last())
		a.refused(at("mem://c"))
		a.refused(at("mem://d"))
		<-time.After(time.Second)
		a.accepted(at("mem://d"))
		<-time.After(time.Second)
		a.accepted(at("mem://c"))
		<-time.After(time.Second)
		a.accepted(at("mem://c"))
		a.accepted(at("mem://e"))
		require.Equal(t, start.Add(3*time.Second), a.last())
	})
}
