//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// artemisPair is a broker's part in a pair; nil of a broker alone.
type artemisPair struct {
	Role  string // primary or backup
	Way   string // shared-store or replication
	Data  string // folder of the store
	Self  string // URLs of the acceptors for CORE
	Other string // empty: the other one connects to us
}

const (
	sharedStore = "shared-store"
	replication = "replication"
)

// inPair makes a broker the primary of a pair, or the backup of primary if that is not nil.
func inPair(way string, primary *Artemis) ArtemisOption {
	return func(c *artemisConfig) { c.pairs, c.backupOf = way, primary }
}

// LaunchArtemisPair starts two brokers with a shared store: the primary, and the backup that takes over when the
// primary is gone. The primary's folder has the store: both must be closed, the backup first. The context bounds the
// start only.
func LaunchArtemisPair(ctx context.Context, opts ...ArtemisOption) (primary, backup *Artemis, err error) {
	return launchArtemisPair(ctx, sharedStore, opts)
}

// LaunchArtemisReplicated is [LaunchArtemisPair] with a store for each broker. The primary replicates its store to the
// backup, which is in sync when this returns. There is no other broker to vote: a backup that loses its primary takes
// over. The brokers need management.
func LaunchArtemisReplicated(ctx context.Context, opts ...ArtemisOption) (primary, backup *Artemis, err error) {
	primary, backup, err = launchArtemisPair(ctx, replication, opts)
	if err != nil {
		return nil, nil, err
	}
	if primary.jolo == nil {
		err = errors.New("a replicated pair needs management: it tells when the backup is in sync")
		return nil, nil, errors.Join(err, backup.Close(), primary.Close())
	}
	// The primary accepts no sessions while it replicates the last of its store.
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = poll(ctx, 50*time.Millisecond, func() (bool, error) {
		var now struct {
			ReplicaSync bool `json:"ReplicaSync"`
		}
		read := jolokiaRequest{Type: "read", MBean: brokerBean, Attribute: []string{"ReplicaSync"}}
		err := primary.jolo.do(ctx, read, &now)
		return now.ReplicaSync, err
	})
	if err != nil {
		err = fmt.Errorf("wait for the backup to have all of the primary's store: %w", err)
		return nil, nil, errors.Join(err, backup.Close(), primary.Close())
	}
	return primary, backup, nil
}

func launchArtemisPair(ctx context.Context, way string, opts []ArtemisOption) (primary, backup *Artemis, err error) {
	opts = slices.Clip(opts)
	primary, err = LaunchArtemis(ctx, append(opts, inPair(way, nil))...)
	if err != nil {
		return nil, nil, fmt.Errorf("start the primary: %w", err)
	}
	backup, err = LaunchArtemis(ctx, append(opts, inPair(way, primary))...)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the backup: %w", err), primary.Close())
	}
	return primary, backup, nil
}

// pair returns the broker's part of a pair; nil if it has none.
func (a *Artemis) pair() *artemisPair {
	if a.cfg.pairs == "" {
		return nil
	}
	core := func(a *Artemis) string {
		return "tcp://" + net.JoinHostPort(loopback, strconv.Itoa(a.ports.Core))
	}
	pair := &artemisPair{Role: "primary", Way: a.cfg.pairs, Data: filepath.Join(a.dir, "data"), Self: core(a)}
	if p := a.cfg.backupOf; p != nil {
		pair.Role, pair.Other = "backup", core(p)
		if pair.Way == sharedStore {
			pair.Data = filepath.Join(p.dir, "data")
		}
	}
	return pair
}
