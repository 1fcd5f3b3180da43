package rocketmq

import (
	"sync"
	"time"
)

// keeper looks after the clients of a driver from time to time: overdue calls, heartbeats, routes. One goroutine does
// it for all, as timers and two goroutines for each of thousands of clients would take more than their load does.
type keeper struct {
	mu      sync.Mutex
	clients map[*client]*duties
	conns   []*conn       // of one of them
	stop    chan struct{} // ends the goroutine; nil without one
	done    chan struct{} // closed when it has ended
}

// duties are when something is due for a client.
type duties struct{ heartbeat, refresh time.Time }

// add begins to look after a client.
func (k *keeper) add(c *client) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.clients == nil {
		k.clients = map[*client]*duties{}
	}
	k.clients[c] = &duties{heartbeat: now.Add(heartbeatEvery), refresh: now.Add(c.d.refreshEvery)}
	if k.stop == nil {
		k.stop, k.done = make(chan struct{}), make(chan struct{})
		go k.run(k.stop, k.done)
	}
}

// remove ends that. The goroutine goes with the last client.
func (k *keeper) remove(c *client) {
	k.mu.Lock()
	delete(k.clients, c)
	var done chan struct{}
	if len(k.clients) == 0 && k.stop != nil {
		close(k.stop)
		done, k.stop = k.done, nil
	}
	k.mu.Unlock()
	if done != nil {
		<-done
	}
}

func (k *keeper) run(stop, done chan struct{}) {
	defer close(done)
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		select {
		case <-stop:
			return
		case <-sweep.C:
			k.look(time.Now())
		}
	}
}

// look does what is due. Nothing of it waits.
func (k *keeper) look(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c, due := range k.clients {
		k.conns = c.appendAll(k.conns)
		for _, conn := range k.conns {
			conn.sweep()
		}
		clear(k.conns)
		k.conns = k.conns[:0]
		if now.After(due.heartbeat) {
			due.heartbeat = now.Add(heartbeatEvery)
			c.wg.Go(c.beatAll)
		}
		if now.After(due.refresh) && c.refreshing.CompareAndSwap(false, true) {
			due.refresh = now.Add(c.d.refreshEvery)
			c.wg.Go(func() {
				defer c.refreshing.Store(false)
				c.refresh()
			})
		}
	}
}
