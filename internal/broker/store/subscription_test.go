package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

func subscribe(t *testing.T, s *Store, sub Subscription) *Consumer {
	t.Helper()
	c := musttest.Get(s.Subscribe("T", sub, func() {}))(t)
	return c
}

func TestTopics(t *testing.T) {
	s := New(Config{})
	d := s.Destination(driver.Destination{Kind: driver.Topic, Name: "T"})
	sendNumbers(t, d, 1, 1)
	alone := subscribe(t, s, Subscription{})
	durable := subscribe(t, s, Subscription{Name: "d", Durable: true})
	shared1, shared2 := subscribe(t, s, Subscription{Name: "s"}), subscribe(t, s, Subscription{Name: "s"})
	sendNumbers(t, d, 2, 3)

	got, _ := take(alone, 9)
	assert.Equal(t, []string{"2", "3"}, got)
	got, _ = take(shared1, 1)
	assert.Equal(t, []string{"2"}, got)
	got, _ = take(shared2, 9)
	assert.Equal(t, []string{"3"}, got)
	shared1.Close(true)
	got, _ = take(shared2, 9)
	assert.Equal(t, []string{"2"}, got)

	alone.Close(false)
	shared2.Close(false)
	durable.Close(false)
	sendNumbers(t, d, 4, 4)
	stats := d.Stats()
	assert.Equal(t, uint64(1), stats.Unrouted)
	require.Len(t, stats.Queues, 1, "only the durable one is left")
	assert.Equal(t, int64(3), stats.Queues[0].Depth)

	durable = subscribe(t, s, Subscription{Name: "d", Durable: true})
	got, _ = take(durable, 9)
	assert.Equal(t, []string{"2", "3", "4"}, got)
	require.ErrorIs(t, s.FindSubscription("d").Remove(), ErrInUse)
	durable.Close(false)
	require.NoError(t, s.FindSubscription("d").Remove())
	require.Nil(t, s.FindSubscription("d"))
	assert.Empty(t, d.Stats().Queues)
}

func TestSelectorOfASubscription(t *testing.T) {
	s := New(Config{})
	d := s.Destination(driver.Destination{Kind: driver.Topic, Name: "T"})
	is := func(want string) Filter { return func(m *Message) bool { return string(m.Content.Body()) == want } }
	c := subscribe(t, s, Subscription{Name: "d", Durable: true, Selector: "two", Filter: is("2")})
	sendNumbers(t, d, 1, 3)
	assert.Equal(t, int64(1), d.Stats().Queues[0].Depth, "the rest is not stored")
	_, err := s.Subscribe("T", Subscription{Name: "d", Durable: true, Selector: "three", Filter: is("3")}, nil)
	require.ErrorIs(t, err, ErrInUse)
	c.Close(false)
	_, err = s.Subscribe("T", Subscription{Name: "d", Durable: true, Selector: "three", Filter: is("3")}, nil)
	require.NoError(t, err)
	assert.Equal(t, int64(0), d.Stats().Queues[0].Depth, "it is another one")
	require.Len(t, d.Stats().Queues, 1)
}
