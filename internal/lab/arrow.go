//go:build unix

package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// arrowSource is a sender and receiver of ours on Qpid Proton's C library.
//
//go:embed peers/arrow.c
var arrowSource []byte

// arrowContests compare perfmq with the arrow: a process a side, rate from the first message received to the last.
func arrowContests(ctx context.Context, b *bench, on map[string]*server) (list []contest, _ error) {
	s := on["artemis"]
	source, binary := filepath.Join(b.dir, "arrow.c"), filepath.Join(b.dir, "arrow")
	if err := os.WriteFile(source, arrowSource, 0o600); err != nil {
		return nil, err
	}
	flags, err := exec.CommandContext(ctx, "pkg-config", "--cflags", "--libs", "libqpid-proton").Output()
	if err != nil {
		return nil, fmt.Errorf("find Qpid Proton's C library (Debian: apt-get install gcc pkg-config "+
			"libqpid-proton11-dev): %w", err)
	}
	args := append([]string{"-O2", "-o", binary, source}, strings.Fields(string(flags))...)
	compile := exec.CommandContext(ctx, "cc", args...) //nolint:gosec // pkg-config's flags
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile arrow.c: %w\n%s", err, out)
	}
	for _, l := range []traffic{{pending: inFlight}, {pending: inFlight, persistent: true}} {
		count := 100_000 // as many as perfmq received, so that both run for as long
		ours := b.column(s, l, side{name: "perfmq", protocol: "amqp", args: []string{"--credit", strconv.Itoa(inFlight)}})
		run := ours.run
		ours.run = func(ctx context.Context) (measured, error) {
			m, err := run(ctx)
			count = max(count, int(m.messages))
			return m, err
		}
		theirs := column{name: "arrow", run: func(ctx context.Context) (measured, error) {
			return account(ctx, s, func() (measured, []*os.ProcessState, error) { return b.arrow(ctx, binary, s, count, l) })
		}}
		list = append(list, contest{
			title: l.String(), columns: []column{ours, theirs},
			aims: []aim{ratioAim(receivedRate, "perfmq", "arrow", 0.95, true), ratioAim(toolCPU, "perfmq", "arrow", 1.3, false)},
		})
	}
	return list, nil
}

// arrow sends and receives messages over a queue of its own, by a process each.
func (b *bench) arrow(
	ctx context.Context, binary string, s *server, count int, l traffic,
) (m measured, ended []*os.ProcessState, err error) {
	b.runs++
	queue := fmt.Sprintf("ARROW.%d", b.runs)
	// by itself, Artemis would make a topic of it
	if err := s.artemis.CreateQueue(ctx, queue, queue, "ANYCAST"); err != nil {
		return m, nil, err
	}
	defer s.artemis.DeleteQueue(ctx, queue) //nolint:errcheck // it is harmless
	ctx, cancel := context.WithTimeout(ctx, time.Duration(b.duration)*time.Second+hangLimit)
	defer cancel()
	durable := map[bool]string{false: "0", true: "1"}[l.persistent]
	host, port, _ := strings.Cut(hostOf(s.urls["amqp"]), ":")
	command := func(role string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, binary, role, host, port, queue, //nolint:gosec // ours
			strconv.Itoa(count), "1024", strconv.Itoa(l.pending), durable)
		cmd.Stderr = os.Stderr
		return cmd
	}
	var said bytes.Buffer
	receiver, sender := command("receive"), command("send")
	receiver.Stdout = &said
	if err := receiver.Start(); err != nil {
		return m, nil, err
	}
	sent := sender.Run()
	if sent != nil {
		cancel()
	}
	if err := receiver.Wait(); err != nil || sent != nil {
		return m, nil, fmt.Errorf("sender: %w, receiver: %w", sent, err)
	}
	var n, first, last, latency float64
	if _, err := fmt.Sscan(said.String(), &n, &first, &last, &latency); err != nil {
		return m, nil, fmt.Errorf("read the output of the arrow, %q: %w", said.String(), err)
	}
	m.received, m.messages = n/(last-first)*1e6, n
	return m, []*os.ProcessState{receiver.ProcessState, sender.ProcessState}, nil
}
