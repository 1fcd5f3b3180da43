package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// TestListingIsShared: users that ask during a question share the answer to the next one.
func TestListingIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listing{turn: make(chan struct{}, 1)}
		questions := 0
		question := func() ([]string, error) {
			questions++
			n := questions
			<-time.After(turnPatience / 4)
			return []string{fmt.Sprint(n)}, nil
		}
		var asking sync.WaitGroup
		ask := func(want string) {
			asking.Go(func() {
				require.Equal(t, []string{want}, musttest.Get(l.ask(t.Context(), question))(t))
			})
		}
		ask("1")
		synctest.Wait()
		for range 100 {
			ask("2") // the first began before they asked
		}
		asking.Wait()
		require.Equal(t, 2, questions)
		ask("3")
		asking.Wait()
	})
}

// TestListingOfOneThatHangs: if the question of one member hangs or fails, the other members ask themselves.
func TestListingOfOneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listing{turn: make(chan struct{}, 1)}
		lost := errors.New("lost")
		hang, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var asking sync.WaitGroup
		asking.Go(func() {
			_, err := l.ask(hang, func() ([]string, error) {
				<-hang.Done()
				return nil, lost
			})
			require.ErrorIs(t, err, lost)
		})
		synctest.Wait()
		began := time.Now()
		answer := func() ([]string, error) { return []string{"a"}, nil }
		for range 3 {
			asking.Go(func() {
				require.Equal(t, []string{"a"}, musttest.Get(l.ask(t.Context(), answer))(t))
				require.LessOrEqual(t, time.Since(began), turnPatience)
			})
		}
		short, cancel := context.WithTimeout(t.Context(), turnPatience/2)
		defer cancel()
		_, err := l.ask(short, answer)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, driver.ClassTimeout, driver.ClassOf(err))
		require.NotEmpty(t, driver.HintOf(err))
		asking.Wait()
		got, err := l.ask(t.Context(), answer)
		require.NoError(t, err, "the failure was the other's")
		require.Equal(t, []string{"a"}, got)
	})
}

// TestKeeperGoesWithItsClients: clients are looked after by one timer, and by none without clients.
func TestKeeperGoesWithItsClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDriver(transport.Settings[Options]{})
		for range 2 {
			var clients []*client
			for range 3 {
				clients = append(clients, newClient(d, driver.Connection{Name: "c"}))
			}
			due := func() time.Time {
				d.keeper.mu.Lock()
				defer d.keeper.mu.Unlock()
				return d.keeper.clients[clients[0]]
			}
			first := due()
			<-time.After(heartbeatEvery + 2*sweepEvery)
			synctest.Wait()
			require.Equal(t, heartbeatEvery, due().Sub(first).Truncate(time.Second))
			for _, c := range clients {
				c.End(t.Context())
			}
			require.Empty(t, d.keeper.clients)
			<-time.After(sweepRarely)
			synctest.Wait()
			require.Nil(t, d.keeper.timer)
		}
	})
}
