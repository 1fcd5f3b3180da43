//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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

func launchArtemisPair(ctx context.Context, way string, opts []ArtemisOption) (primary, backup *Artemis, err error) {
	return launchTwo(ctx, LaunchArtemis, append(slices.Clone(opts), inPair(way, nil)),
		func(primary *Artemis) ArtemisOption { return inPair(way, primary) })
}

// LaunchArtemisReplicated is [LaunchArtemisPair] with a store for each broker. The primary replicates its store to the
// backup, which is in sync when this returns. There is no other broker to vote: a backup that loses its primary takes
// over. The brokers need management.
func LaunchArtemisReplicated(ctx context.Context, opts ...ArtemisOption) (primary, backup *Artemis, err error) {
	primary, backup, err = launchArtemisPair(ctx, replication, opts)
	if err != nil {
		return nil, nil, err
	}
	// The primary accepts no sessions while it replicates the last of its store.
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = poll(ctx, 50*time.Millisecond, func() (bool, error) {
		var now struct {
			ReplicaSync bool `json:"ReplicaSync"`
		}
		read := jolokiaRequest{Type: "read", Bean: brokerBean, Attribute: []string{"ReplicaSync"}}
		err := primary.ask(ctx, read, &now)
		return now.ReplicaSync, err
	})
	if err != nil {
		err = fmt.Errorf("wait for the backup to have all of the primary's store: %w", err)
		return nil, nil, errors.Join(err, backup.Close(), primary.Close())
	}
	return primary, backup, nil
}

// pair returns the broker's part of a pair; nil of a broker alone.
func (a *Artemis) pair() *artemisPair {
	if a.cfg.pairs == "" {
		return nil
	}
	pair := &artemisPair{Role: "primary", Way: a.cfg.pairs, Data: filepath.Join(a.dir, "data"), Self: a.CoreURL()}
	if p := a.cfg.backupOf; p != nil {
		pair.Role, pair.Other = "backup", p.CoreURL()
		if pair.Way == sharedStore {
			pair.Data = filepath.Join(p.dir, "data")
		}
	}
	return pair
}
