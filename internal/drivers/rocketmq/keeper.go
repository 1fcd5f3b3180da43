package rocketmq

import (
	"sync"
	"time"
)

// keeper does the periodic work for the clients of a driver: overdue calls and heartbeats. One timer serves all,
// because timers and two goroutines for each of thousands of clients would take more memory and time than their load.
type keeper struct {
	mu      sync.Mutex
	clients map[*client]time.Time // and when their next heartbeat is due
	conns   []*conn               // connections of one client
	timer   *time.Timer           // nil without clients
}

// add registers a client.
func (k *keeper) add(c *client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.clients == nil {
		k.clients = map[*client]time.Time{}
	}
	k.clients[c] = time.Now().Add(heartbeatEvery)
	if k.timer == nil {
		k.timer = time.AfterFunc(sweepEvery, k.look)
	}
}

// remove removes a client. The timer ends after the last one.
func (k *keeper) remove(c *client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.clients, c)
}

// look performs the due tasks. None of them waits.
func (k *keeper) look() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for c, heartbeat := range k.clients {
		k.conns = c.appendAll(k.conns)
		for _, conn := range k.conns {
			conn.sweep()
		}
		clear(k.conns)
		k.conns = k.conns[:0]
		if now.After(heartbeat) {
			k.clients[c] = now.Add(heartbeatEvery)
			c.wg.Go(c.beatAll)
		}
	}
	if len(k.clients) == 0 {
		k.timer = nil
		return
	}
	k.timer.Reset(min(max(sweepEvery, time.Duration(len(k.clients))*sweepPause), sweepRarely))
}
