//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// postgresDriverCoordinates is PostgreSQL's driver for JDBC.
const postgresDriverCoordinates = "org.postgresql:postgresql:42.7.4"

// WithActiveMQJDBC keeps the messages in a database. Journaled, they are written to a journal in the broker's folder
// first, and moved to the database in batches: then no other broker can take over.
func WithActiveMQJDBC(db *Postgres, journaled bool) ActiveMQOption {
	return func(c *activemqConfig) { c.db, c.journaled = db, journaled }
}

// LaunchActiveMQJDBCPair starts two brokers with one database: the master, and the slave that waits for the lock of the
// database. Both must be closed, and then the database. The context bounds the start only.
func LaunchActiveMQJDBCPair(
	ctx context.Context, db *Postgres, opts ...ActiveMQOption,
) (master, slave *ActiveMQ, err error) {
	opts = append(slices.Clip(opts), WithActiveMQJDBC(db, false))
	master, err = LaunchActiveMQ(ctx, opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("start the master: %w", err)
	}
	slave, err = LaunchActiveMQ(ctx, append(slices.Clip(opts), func(c *activemqConfig) { c.slaveOf = master })...)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the slave: %w", err), master.Close())
	}
	return master, slave, nil
}

// addDriver puts the driver where the broker looks for more classes.
func (a *ActiveMQ) addDriver(ctx context.Context) error {
	jar, err := MavenJar(ctx, postgresDriverCoordinates)
	if err != nil {
		return err
	}
	lib := filepath.Join(a.dir, "lib")
	if err := errors.Join(os.MkdirAll(lib, 0o700), os.Symlink(jar, filepath.Join(lib, filepath.Base(jar)))); err != nil {
		return fmt.Errorf("give ActiveMQ the driver of its database: %w", err)
	}
	return nil
}
