//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
)

const (
	socketPrefix = "control."       // and the harness's process id: the name of the socket in a broker's folder
	verbLimit    = 10 * time.Second // to read a verb
	workLimit    = 5 * time.Minute  // to carry it out: more than a broker may take to start
)

// The verbs are flags of the command line, too.
const (
	kill    = "kill"
	restart = "restart"
	stop    = "stop"
)

// request is a verb from another process of this program, which waits for the answer.
type request struct {
	verb string
	conn net.Conn
}

// answer ends a request. Its reader may have gone.
func (r *request) answer(err error) {
	if err != nil {
		_, _ = fmt.Fprint(r.conn, err)
	}
	_ = r.conn.Close()
}

// listen opens the socket of a detached broker.
func listen(ctx context.Context, dir string) (<-chan request, error) {
	path := filepath.Join(dir, fmt.Sprint(socketPrefix, os.Getpid()))
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for -kill, -restart and -stop: %w (a shorter TMPDIR may help)", err)
	}
	requests := make(chan request)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.SetReadDeadline(time.Now().Add(verbLimit))
			if verb, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				requests <- request{strings.TrimSpace(verb), conn}
			} else {
				_ = conn.Close()
			}
		}
	}()
	return requests, nil
}

// serve runs a broker until its end is asked for. It returns the request that did, if any, and whether the broker ended
// by itself.
func serve(ctx context.Context, b running, requests <-chan request) (last *request, died bool) {
	ended := b.Done()
	for {
		select {
		case <-ctx.Done():
			return nil, false
		case <-ended:
			return nil, true
		case r := <-requests:
			if r.verb == stop {
				return &r, false
			}
			ended = nil // it is to end now
			r.answer(carryOut(ctx, b, r.verb))
			if b.Alive() {
				ended = b.Done()
			}
		}
	}
}

// carryOut kills or restarts a broker. One that was killed is only started.
func carryOut(ctx context.Context, b running, verb string) error {
	switch {
	case verb == restart:
		_ = b.Stop() // or Kill, if it takes too long
		return b.Start(ctx)
	case verb != kill:
		return fmt.Errorf("unknown request %q", verb)
	case !b.Alive():
		return errors.New("it is not running: -restart starts it again")
	}
	b.Kill()
	return nil
}

// harness is a process that runs a detached broker.
type harness struct{ kind, pid, socket string }

// detached returns the running harnesses of a kind of broker, or of all kinds.
func detached(ctx context.Context, kind string) (list []harness, err error) {
	pattern := brokertest.DirPrefix + "*"
	if kind != "" {
		pattern = brokertest.DirPrefix + kind + "-*"
	}
	sockets, err := filepath.Glob(filepath.Join(os.TempDir(), pattern, socketPrefix+"*"))
	if err != nil {
		return nil, fmt.Errorf("look for detached brokers: %w", err)
	}
	for _, path := range sockets {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err != nil {
			continue // the harness was killed
		}
		_ = conn.Close()
		dir, pid := filepath.Split(path)
		kind, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), brokertest.DirPrefix), "-")
		list = append(list, harness{kind, strings.TrimPrefix(pid, socketPrefix), path})
	}
	return list, nil
}

// command carries out a verb on the detached brokers of these processes, or on the only one of the kind.
func command(ctx context.Context, kind, verb string, pids []string, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, workLimit)
	defer cancel()
	list, err := detached(ctx, kind)
	switch {
	case err != nil:
		return err
	case len(pids) > 0:
	case len(list) > 1:
		text := fmt.Sprintf("several brokers are running; name the process of one after -%s:", verb)
		for _, h := range list {
			text += fmt.Sprintf("\n  %s %s", h.pid, h.kind)
		}
		return errors.New(text)
	case len(list) == 1:
		pids = []string{list[0].pid}
	case verb == stop:
		_, err := fmt.Fprintln(stdout, "no detached broker is running")
		return err
	default:
		return fmt.Errorf("no detached %s is running: start one with -detach", kind)
	}
	var errs []error
	for _, pid := range pids {
		i := slices.IndexFunc(list, func(h harness) bool { return h.pid == pid })
		if i < 0 {
			errs = append(errs, fmt.Errorf("process %s runs no detached broker: use the HARNESS_PID of -detach", pid))
			continue
		}
		h := list[i]
		if err := h.ask(ctx, verb); err != nil {
			errs = append(errs, fmt.Errorf("%s the %s of process %s: %w", verb, h.kind, pid, err))
			continue
		}
		_, _ = fmt.Fprintf(stdout, "%s of process %s: %s\n", h.kind, pid,
			map[string]string{kill: "killed", restart: "restarted, ready", stop: "stopped"}[verb])
	}
	return errors.Join(errs...)
}

// ask sends a verb and waits for the answer.
func (h *harness) ask(ctx context.Context, verb string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", h.socket)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := fmt.Fprintln(conn, verb); err != nil {
		return err
	}
	switch text, err := io.ReadAll(io.LimitReader(conn, 64<<10)); {
	case err != nil:
		return err
	case len(text) > 0:
		return errors.New(string(text))
	}
	return nil
}
