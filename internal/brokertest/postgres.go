//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// postgresInstall is the error text when the package is missing.
const postgresInstall = "PostgreSQL is not installed: apt-get install --no-install-recommends postgresql"

// postgresUser is the user of the database. On the loopback it needs no password.
const postgresUser = "perfmq"

// Postgres is a running PostgreSQL, for brokers that keep their messages in a database. Its methods may be called
// concurrently, except the methods that start and stop it.
type Postgres struct {
	daemon
	bin  string // folder of its programs
	port int
	as   *syscall.Credential // the user of the process; nil for our own
}

// LaunchPostgres starts a database and waits until it is ready, about three seconds. The Debian package must be
// installed. The caller must Close it. The context bounds the start only.
func LaunchPostgres(ctx context.Context) (*Postgres, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		return nil, errors.New(postgresInstall)
	}
	as, err := postgresCredential()
	if err != nil {
		return nil, err
	}
	dir, owner, err := newBrokerDir("postgres")
	if err != nil {
		return nil, err
	}
	p := &Postgres{
		daemon: daemon{title: "PostgreSQL", dir: dir, log: "postgres.log", owner: owner},
		bin:    filepath.Dir(slices.Max(found)), as: as,
	}
	if err := p.firstStart(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// postgresCredential returns the user of the database's process, which refuses to run as root; nil for our own user.
func postgresCredential() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // no other one
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("find the user of the database: %w (%s)", err, postgresInstall)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

func (p *Postgres) firstStart(ctx context.Context) error {
	if err := os.Mkdir(p.data(), 0o700); err != nil {
		return fmt.Errorf("create the folder of PostgreSQL: %w", err)
	}
	if p.as != nil {
		pass := os.Chmod(p.dir, 0o711) //nolint:gosec // or it cannot get there
		if err := errors.Join(pass, os.Chown(p.data(), int(p.as.Uid), int(p.as.Gid))); err != nil {
			return fmt.Errorf("give PostgreSQL its folder: %w", err)
		}
	}
	args := []string{
		"--pgdata", p.data(), "--auth", "trust", "--username", postgresUser, "--encoding", "UTF8", "--no-locale", "--no-sync",
	}
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "initdb"), args...) //nolint:gosec // the harness's own
	cmd.Dir = p.data()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a database: %w: %s", err, lastLines(string(out), 10))
	}
	for try := 1; ; try++ {
		free, err := p.pickPorts(0)
		if err != nil {
			return err
		}
		p.port = free[0]
		err = p.Start(ctx)
		if err == nil || try == 3 || !strings.Contains(err.Error(), addressTaken) {
			return err
		}
	}
}

// Start starts a stopped or killed database again, with its port and data, and waits until it is ready. Starting a
// running one is an error.
func (p *Postgres) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.startMain(ctx, processSpec{
		name: "postgres", path: filepath.Join(p.bin, "postgres"),
		args: []string{
			"-D", p.data(), "-p", strconv.Itoa(p.port), "-c", "listen_addresses=" + loopback,
			"-c", "unix_socket_directories=", "-c", "shared_buffers=32MB", "-c", "max_connections=100",
			"-c", "dynamic_shared_memory_type=mmap", // in the folder, which is removed in any case
		},
		dir: p.data(), env: []string{"LC_ALL=C"}, logFile: p.LogFile(), as: p.as,
		ready: "database system is ready to accept connections", timeout: time.Minute,
		hint: "its folder is " + p.dir,
	})
}

// Close ends the database and removes its folder. It may be called again. One that is killed would leave a segment of
// shared memory behind.
func (p *Postgres) Close() error {
	if proc := p.process(); proc != nil && proc.alive() {
		_ = proc.signal(syscall.SIGINT) // a fast shutdown: clients are disconnected; else it is killed
		timer := time.NewTimer(stopGrace)
		defer timer.Stop()
		select {
		case <-proc.done:
		case <-timer.C:
		}
	}
	return p.daemon.Close()
}

// Title returns PostgreSQL and its version.
func (p *Postgres) Title() string { return "PostgreSQL " + filepath.Base(filepath.Dir(p.bin)) }

// URL returns the URL for JDBC.
func (p *Postgres) URL() string {
	return fmt.Sprintf("jdbc:postgresql://%s:%d/postgres?user=%s", loopback, p.port, postgresUser)
}
