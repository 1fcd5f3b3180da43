//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
)

// artemisPair is a broker's part in a pair with a shared store; nil of a broker alone.
type artemisPair struct {
	Role  string // primary or backup
	Data  string // folder of the store
	Self  string // URLs of the acceptors for CORE
	Other string // empty: the other one connects to us
}

// withSharedStore makes a broker the primary of a pair, or the backup of primary if that is not nil.
func withSharedStore(primary *Artemis) ArtemisOption {
	return func(c *artemisConfig) { c.shares, c.backupOf = true, primary }
}

// LaunchArtemisPair starts two brokers with a shared store: the primary, and the backup that takes over when the
// primary is gone. The primary's folder has the store: both must be closed, the backup first. The context bounds the
// start only.
func LaunchArtemisPair(ctx context.Context, opts ...ArtemisOption) (primary, backup *Artemis, err error) {
	primary, err = LaunchArtemis(ctx, append(opts, withSharedStore(nil))...)
	if err != nil {
		return nil, nil, fmt.Errorf("start the primary: %w", err)
	}
	backup, err = LaunchArtemis(ctx, append(opts, withSharedStore(primary))...)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the backup: %w", err), primary.Close())
	}
	return primary, backup, nil
}

// pair returns the broker's part of a pair; nil if it has none.
func (a *Artemis) pair() *artemisPair {
	if !a.cfg.shares {
		return nil
	}
	core := func(a *Artemis) string {
		return "tcp://" + net.JoinHostPort(loopback, strconv.Itoa(a.ports.Core))
	}
	if p := a.cfg.backupOf; p != nil {
		return &artemisPair{Role: "backup", Data: filepath.Join(p.dir, "data"), Self: core(a), Other: core(p)}
	}
	return &artemisPair{Role: "primary", Data: filepath.Join(a.dir, "data"), Self: core(a)}
}
