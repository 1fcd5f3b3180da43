//go:build unix

package main

import (
	"context"
	"errors"

	"github.com/perfmq/perfmq/internal/brokertest"
)

func launchActiveMQJDBC(ctx context.Context, _ *failure) (*cluster, error) {
	db, err := brokertest.LaunchPostgres(ctx)
	if err != nil {
		return nil, err
	}
	master, slave, err := brokertest.LaunchActiveMQJDBCPair(ctx, db, brokertest.WithActiveMQHeap(smallHeap),
		brokertest.WithActiveMQManagement())
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	c := activemqPair("master and slave, JDBC on "+db.Title(), master, slave)
	c.close = func() error { return errors.Join(slave.Close(), master.Close(), db.Close()) }
	return c, nil
}

func launchActiveMQJournaled(ctx context.Context, _ *failure) (*cluster, error) {
	db, err := brokertest.LaunchPostgres(ctx)
	if err != nil {
		return nil, err
	}
	a, err := brokertest.LaunchActiveMQ(ctx, brokertest.WithActiveMQHeap(smallHeap), brokertest.WithActiveMQManagement(),
		brokertest.WithActiveMQJDBC(db, true))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	c := activemqAlone("journaled JDBC on "+db.Title(), a)
	c.close = func() error { return errors.Join(a.Close(), db.Close()) }
	return c, nil
}
