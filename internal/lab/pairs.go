//go:build unix

package main

import (
	"context"
	"errors"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// counting is a broker that tells how many messages a queue has.
type counting interface{ Alive() bool }

// active asks those brokers of a pair that are alive: one that waits for the store has no queues.
func active[B counting](brokers []B, depth func(context.Context, B, string) (int64, error)) func(context.Context,
	string) (int64, error) {
	return func(ctx context.Context, queue string) (sum int64, err error) {
		for _, b := range brokers {
			if !b.Alive() {
				continue
			}
			n, err := depth(ctx, b, queue)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	}
}

func launchArtemisPair(ctx context.Context, _ *failure) (*cluster, error) {
	primary, backup, err := brokertest.LaunchArtemisPair(ctx, brokertest.WithHeap(smallHeap))
	return artemisPair("shared store", primary, backup, err)
}

func launchArtemisReplicated(ctx context.Context, _ *failure) (*cluster, error) {
	primary, backup, err := brokertest.LaunchArtemisReplicated(ctx, brokertest.WithHeap(smallHeap))
	return artemisPair("replication", primary, backup, err)
}

func artemisPair(way string, primary, backup *brokertest.Artemis, err error) (*cluster, error) {
	if err != nil {
		return nil, err
	}
	depth := active([]*brokertest.Artemis{primary, backup}, artemisDepth)
	return &cluster{
		title: primary.Title() + ", primary and backup, " + way, primary: primary, backup: backup,
		close:  func() error { return errors.Join(backup.Close(), primary.Close()) },
		stored: depth, left: depth,
		endpoints: []endpoint{
			{protocol: "amqp", hosts: []string{hostOf(primary.AMQPURL()), hostOf(backup.AMQPURL())}, settings: login()},
			{protocol: "stomp", hosts: []string{hostOf(primary.STOMPURL()), hostOf(backup.STOMPURL())}, settings: login()},
		},
	}, nil
}

func launchActiveMQPair(ctx context.Context, _ *failure) (*cluster, error) {
	master, slave, err := brokertest.LaunchActiveMQPair(ctx, brokertest.WithActiveMQHeap(smallHeap),
		brokertest.WithActiveMQManagement())
	if err != nil {
		return nil, err
	}
	return activemqPair("master and slave, shared file system", master, slave), nil
}

// launchActiveMQNetwork starts two brokers that pass messages on to each other. Clients connect to the first one.
func launchActiveMQNetwork(ctx context.Context, _ *failure) (*cluster, error) {
	first, second, err := brokertest.LaunchActiveMQNetwork(ctx, brokertest.WithActiveMQHeap(smallHeap),
		brokertest.WithActiveMQManagement())
	if err != nil {
		return nil, err
	}
	return activemqPair("network of two", first, second), nil
}

func activemqPair(way string, master, slave *brokertest.ActiveMQ) *cluster {
	depth := active([]*brokertest.ActiveMQ{master, slave}, activemqDepth)
	return &cluster{
		title: master.Title() + ", " + way, primary: master, backup: slave,
		close:  func() error { return errors.Join(slave.Close(), master.Close()) },
		stored: depth, left: depth,
		endpoints: []endpoint{
			{protocol: "amqp", hosts: []string{hostOf(master.AMQPURL()), hostOf(slave.AMQPURL())}, settings: login()},
			{protocol: "stomp", hosts: []string{hostOf(master.STOMPURL()), hostOf(slave.STOMPURL())}, settings: login()},
		},
	}
}
