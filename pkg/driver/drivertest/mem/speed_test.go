package mem_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
)

func TestNoAllocationPerMessage(t *testing.T) {
	r := newRig(t, mem.Options{})
	defer r.stop()
	done := 0
	p, err := r.driver.Producer(t.Context(), producerSpec(driver.Destination{Name: "q"}, strings.Repeat("x", 1024)),
		driver.DoneFunc(func(driver.Slot, driver.Outcome) { done++ }))
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close(context.Background())) }()
	m := &driver.Message{}
	got := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() { r.result <- r.consumer.Run(ctx, accept(func(*driver.Delivery) { got <- struct{}{} })) }()
	allocs := testing.AllocsPerRun(1000, func() {
		if err := p.Send(t.Context(), m); err != nil {
			panic(err)
		}
		<-got
	})
	require.Zero(t, allocs)
	require.Equal(t, 1001, done)
}
