package rocketmq

import (
	"sync"
	"time"
)

// keeper does the periodic work for the clients of a driver: overdue calls and heartbeats. One goroutine serves
// all, because timers and two goroutines for each of thousands of clients would take more memory and time than their
// load.
type keeper struct {
	mu      sync.Mutex
	clients map[*client]time.Time // and when their next heartbeat is due
	conns   []*conn               // connections of one client
	stop    chan struct{}         // ends the goroutine; nil without one
	done    chan struct{}         // closed when it has ended
}

// add registers a client.
func (k *keeper) add(c *client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.clients == nil {
		k.clients = map[*client]time.Time{}
	}
	k.clients[c] = time.Now().Add(heartbeatEvery)
	if k.stop == nil {
		k.stop, k.done = make(chan struct{}), make(chan struct{})
		go k.run(k.stop, k.done)
	}
}

// remove removes a client. The goroutine ends with the last one.
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
	sweep := time.NewTimer(sweepEvery)
	defer sweep.Stop()
	for {
		select {
		case <-stop:
			return
		case <-sweep.C:
			n := k.look(time.Now())
			sweep.Reset(min(max(sweepEvery, time.Duration(n)*sweepPause), sweepRarely))
		}
	}
}

// look performs the due tasks, and returns the number of clients. None of the tasks waits.
func (k *keeper) look(now time.Time) int {
	k.mu.Lock()
	defer k.mu.Unlock()
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
	return len(k.clients)
}
