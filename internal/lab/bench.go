//go:build unix

package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// benchHead explains the tables.
//
//go:embed bench.md
var benchHead string

// bench is one call of the command bench.
type bench struct {
	*session
	duration, warmup, repeat int // seconds, seconds, runs
	runs                     int // so far
}

// benchmark is a contest for each load, or a list of other contests, on the same brokers.
type benchmark struct {
	name, title string
	kinds       []string // of brokers
	loads       []traffic
	sides       []side
	aims        []aim
	warm, pairs bool // as those of a contest
	contests    func(ctx context.Context, b *bench, on map[string]*server) ([]contest, error)
}

func benchCommand(ctx context.Context, args []string) (err error) {
	var b bench
	b.session, err = open("bench", args, func(fs *flag.FlagSet) {
		fs.IntVar(&b.duration, "duration", 15, "seconds per run, warm-up included")
		fs.IntVar(&b.warmup, "warmup", 5, "seconds of warm-up per run, not measured")
		fs.IntVar(&b.repeat, "repeat", 3, "runs of each side, in turn; medians are printed")
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if b.warmup < 0 || b.duration <= b.warmup || b.repeat < 1 {
		return errors.New("-duration must exceed -warmup, and -repeat be 1 or more")
	}
	from, err := b.circumstances(ctx)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s\n%s 1024-byte messages; %d runs of %d s each (%d s warm-up), in turn, medians.\n\n",
		benchHead, from, b.repeat, b.duration, b.warmup)
	for _, m := range benchmarks() {
		if !b.only.MatchString(m.name) {
			continue
		}
		tables, err := b.tables(ctx, &m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		text += tables
	}
	return write(b.out, text)
}

// tables holds the contests of a benchmark on fresh brokers.
func (b *bench) tables(ctx context.Context, m *benchmark) (text string, err error) {
	on := map[string]*server{"": {}} // "" is no broker, for the driver mem
	text = "## " + m.title + "\n\n"
	for _, kind := range m.kinds {
		s, err := b.serve(ctx, kind)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		on[kind] = s
		text += fmt.Sprintf("Broker: %s.\n\n", s.title)
	}
	var contests []contest
	for _, l := range m.loads {
		c := contest{title: l.String(), aims: m.aims, warm: m.warm, pairs: m.pairs}
		for _, side := range m.sides {
			c.columns = append(c.columns, b.column(on[side.kind], l, side))
		}
		contests = append(contests, c)
	}
	if m.contests != nil {
		if contests, err = m.contests(ctx, b, on); err != nil {
			return "", err
		}
	}
	for i := range contests {
		table, err := contests[i].hold(ctx, b.repeat)
		if err != nil {
			return "", err
		}
		fmt.Fprint(os.Stderr, table)
		text += table
	}
	return text, nil
}

// traffic is the part of a load that is the same for all sides.
type traffic struct {
	pending, rate int // rate 0: as fast as possible
	persistent    bool
}

func (l traffic) String() string {
	mode, speed := "non-persistent", "as fast as possible"
	if l.persistent {
		mode = "persistent"
	}
	if l.rate > 0 {
		speed = strconv.Itoa(l.rate) + " msg/s"
	}
	return fmt.Sprintf("max-pending %d, %s, %s", l.pending, mode, speed)
}

// side is a tool on a kind of broker, with the flags of `artemis perf client`.
type side struct {
	name, kind string
	protocol   string   // of perfmq
	peer       string   // the protocol of artemis perf, which runs in the place of perfmq
	args       []string // further arguments
}

// command returns the tool with arguments.
func (d *side) command(ctx context.Context, b *bench, s *server, args ...string) *exec.Cmd {
	switch {
	case d.peer == "CORE": // without the window, each send waits for a reply of its own
		args = append([]string{"--url", s.artemis.CoreURL() + "?confirmationWindowSize=1048576"}, args...)
		return s.artemis.PerfCommand(ctx, "client", args...)
	case d.peer != "":
		return s.artemis.PerfCommand(ctx, "client", append([]string{"--protocol", d.peer}, args...)...)
	}
	own := append([]string{d.protocol, "client", "--url", cmp.Or(s.urls[d.protocol], "mem://local")}, d.args...)
	return b.command(ctx, append(own, args...)...)
}

// column returns the runs of a side, each with a queue of its own. Artemis's own count of the messages must be the
// tool's.
func (b *bench) column(s *server, l traffic, d side) column {
	return column{name: d.name, run: func(ctx context.Context) (measured, error) {
		b.runs++
		queue := fmt.Sprintf("BENCH-%d", b.runs)
		m, err := b.once(ctx, s, l, d, "queue://"+queue)
		if err != nil || s.artemis == nil {
			return m, err
		}
		if q, err := s.artemis.Queue(ctx, queue); err == nil && float64(q.MessagesAdded) != m.sent {
			fmt.Fprintf(os.Stderr, "note: %s counted %.0f sent, the broker %d\n", d.name, m.sent, q.MessagesAdded)
		}
		_ = s.artemis.DeleteQueue(ctx, queue) // it may be gone
		return m, nil
	}}
}

// once runs a tool to its end. Opening thousands of connections takes a while.
func (b *bench) once(ctx context.Context, s *server, l traffic, d side, queues ...string) (measured, error) {
	file := filepath.Join(b.dir, fmt.Sprintf("run-%d.json", b.runs))
	args := []string{
		"--duration", strconv.Itoa(b.duration), "--warmup", strconv.Itoa(b.warmup), "--max-pending", strconv.Itoa(l.pending),
		"--json", file, "--silent",
	}
	if l.persistent {
		args = append(args, "--persistent")
	}
	if l.rate > 0 {
		args = append(args, "--rate", strconv.Itoa(l.rate))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(b.duration)*time.Second+hangLimit)
	defer cancel()
	return account(ctx, s, func() (measured, []*os.ProcessState, error) {
		cmd := d.command(ctx, b, s, append(args, queues...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return measured{}, nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, tail(string(out)))
		}
		m, err := readMeasured(file)
		return m, []*os.ProcessState{cmd.ProcessState}, err
	})
}
