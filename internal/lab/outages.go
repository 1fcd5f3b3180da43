//go:build unix

package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// probing is how much longer than a cut an outage may be: one attempt each 0.25 s, and the time to connect.
	probing = 600 * time.Millisecond
	// between is the time from one cut to the next.
	between = 5 * time.Second
)

// outagesHead says what the table of outages is.
//
//go:embed outages.md
var outagesHead string

// cut is a time in which no client had a way to its broker.
type cut struct {
	planned     time.Duration
	first, last time.Time // the first connection was ended, and the last one
	over        time.Time // connections are accepted again
}

// cutLoad is a run during the cuts.
type cutLoad struct {
	*load
	row   row
	cells []string // by cut: the length of the outage
}

// cutLengths returns the planned lengths of the cuts.
func cutLengths(longest time.Duration) (list []time.Duration) {
	for _, d := range []float64{0.5, 1, 2, 4, 6, 10, 15, 20, 30, 45} {
		if length := time.Duration(d * float64(time.Second)); length <= longest {
			list = append(list, length)
		}
	}
	return list
}

func outagesCommand(ctx context.Context, args []string) (err error) {
	var longest time.Duration
	s, err := open("outages", args, func(fs *flag.FlagSet) {
		fs.DurationVar(&longest, "longest", 45*time.Second, "leave out cuts that are longer")
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if s.only.String() == "" {
		s.only = regexp.MustCompile("^(artemis|rocketmq)$")
	}
	lengths := cutLengths(longest)
	var loads []*cutLoad
	for _, d := range deployments() {
		if !s.only.MatchString(d.name) {
			continue
		}
		of, err := s.cutWays(ctx, d, lengths)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		loads = append(loads, of...)
	}
	rows := make([]row, len(loads))
	for i, l := range loads {
		rows[i] = l.row
	}
	return errors.Join(write(s.out, outagesPage(loads, rows, lengths)), mistakes(rows))
}

// cutWays cuts the ways to a deployment, under a load over each protocol and client.
func (s *session) cutWays(ctx context.Context, d *deployment, lengths []time.Duration) (loads []*cutLoad, err error) {
	whole := time.Duration(len(lengths)+6) * between // with some time for a slow start, and slow consumers
	for _, length := range lengths {
		whole += length
	}
	ctx, cancel := context.WithTimeout(ctx, whole+2*hangLimit)
	defer cancel()
	from, err := originNow(ctx, d.name)
	if err != nil {
		return nil, err
	}
	c, err := d.launch(ctx, &failure{name: "outages"})
	if err != nil {
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	defer func() {
		for _, l := range loads {
			l.stop()
		}
		for _, p := range c.proxies {
			p.Close()
		}
		err = errors.Join(err, c.close())
	}()
	if err := c.throughProxies(); err != nil {
		return nil, err
	}
	for i := range c.endpoints {
		for _, client := range []string{"native", "library"} {
			e := &c.endpoints[i]
			if e.protocol == "rocketmq" && client == "library" { // it refuses --reconnect
				continue
			}
			l, err := s.cutLoad(ctx, d, e, client, whole)
			if err != nil {
				return nil, err
			}
			l.row = row{Deployment: c.title, Failure: "cuts", Protocol: e.protocol + ", " + client, origin: from}
			loads = append(loads, l)
		}
	}
	cuts, err := c.cutEach(ctx, loads, lengths)
	for _, l := range loads {
		if err == nil {
			err = l.compare(ctx, cuts)
		}
	}
	return loads, err
}

// cutLoad starts a run over a protocol.
func (s *session) cutLoad(
	ctx context.Context, d *deployment, e *endpoint, client string, whole time.Duration,
) (*cutLoad, error) {
	name := strings.Join([]string{"outages", d.name, e.protocol, client}, "-")
	l := &cutLoad{load: &load{protocol: e.protocol, dir: filepath.Join(s.dir, name), ended: make(chan struct{})}}
	if err := errors.Join(os.RemoveAll(l.dir), os.MkdirAll(l.dir, 0o700)); err != nil {
		return nil, err
	}
	queue := e.prefix + name
	if e.declare != nil {
		if err := e.declare(ctx, queue); err != nil {
			return nil, fmt.Errorf("declare the queue %s: %w", queue, err)
		}
	}
	args := []string{
		e.protocol, "client", "--url", e.url(), "--client", client, "--reconnect", "--verify", "--rate", "200",
		"--producers", "2", "--consumers", "2", "--max-pending", "50", "--duration", whole.String(), "--result", l.results(),
	}
	if !e.durable {
		args = append(args, "--persistent")
	}
	if e.settings["user"] != nil {
		args = append(args, "--user", brokertest.User, "--password", brokertest.Password)
	}
	l.cmd = s.command(ctx, append(args, "queue://"+queue)...)
	return l, l.begin()
}

// connected reports whether messages came to consumers in the last second, and all workers were connected.
func (l *cutLoad) connected() bool {
	r, err := result.Read(l.results())
	if err != nil || len(r.Rows) == 0 {
		return false
	}
	last := &r.Rows[len(r.Rows)-1]
	return last.Disconnected == 0 && last.Consumers != nil && last.Consumers.Received > 0
}

// cutEach cuts all ways for each of the lengths.
func (c *cluster) cutEach(ctx context.Context, loads []*cutLoad, lengths []time.Duration) (cuts []cut, err error) {
	for _, length := range lengths {
		if err := wait(ctx, between); err != nil {
			return nil, err
		}
		for _, l := range loads {
			if err := l.until(ctx, "all workers are connected", 500*time.Millisecond, l.connected); err != nil {
				return nil, err
			}
		}
		made := cut{planned: length, first: time.Now()}
		for _, p := range c.proxies {
			p.Cut()
		}
		made.last = time.Now()
		if err := wait(ctx, length); err != nil {
			return nil, err
		}
		var g errgroup.Group
		for _, p := range c.proxies {
			g.Go(p.Restore)
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		made.over = time.Now()
		cuts = append(cuts, made)
		fmt.Fprintf(os.Stderr, "cut for %v\n", made.over.Sub(made.last).Round(time.Millisecond))
	}
	return cuts, nil
}

// compare waits for the end of a run, and compares the outages in its result with the cuts.
func (l *cutLoad) compare(ctx context.Context, cuts []cut) error {
	o := &observation{}
	if err := l.finish(ctx, o); err != nil {
		return err
	}
	j := judgement{observation: o}
	if o.hung || o.status != 0 {
		j.wrong("it ended with status %d: %s", o.status, l.tail())
	}
	if n := len(o.result.Outages); n != len(cuts) {
		j.wrong("%d outages instead of %d", n, len(cuts))
	}
	for i := range o.result.Outages[:min(len(o.result.Outages), len(cuts))] {
		out, of := &o.result.Outages[i], &cuts[i]
		length, lasted := micros(out.Length), of.over.Sub(of.last)
		text := fmt.Sprintf("%.2f s", length.Seconds())
		if began := off(out.Time, of.first, of.last); began.Abs() > onTime {
			j.wrong("an outage of %s began %v from the cut", text, began)
		}
		if length < lasted-onTime || length > lasted+probing {
			j.wrong("an outage of %s, where the way was cut for %.2f s", text, lasted.Seconds())
			text = "**" + text + "**"
		}
		l.cells = append(l.cells, text)
	}
	l.row.State, l.row.Mistakes = promiseKept, j.mistakes
	if len(j.mistakes) > 0 {
		l.row.State = perfmqWrong
	}
	l.row.Version, l.row.Revision = o.result.Versions.Perfmq, o.result.Versions.Revision
	if why := j.unfit(); why != "" {
		l.row.State, l.row.Mistakes = notJudged, nil
		fmt.Fprintf(os.Stderr, "%s is not judged: %s\n", l.row.Protocol, why)
	}
	return nil
}

// outagesPage returns the table as Markdown: cuts by protocols and clients.
func outagesPage(loads []*cutLoad, rows []row, lengths []time.Duration) string {
	head, rest := cutHead(outagesHead)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\nBrokers and perfmq ran on one machine with %d processors%s\n\n", head, rest,
		runtime.NumCPU(), madeBy(rows))
	header := []string{"cut for"}
	for _, l := range loads {
		header = append(header, l.row.Protocol+": "+l.row.Deployment)
	}
	tableRow(&b, header...)
	b.WriteString("|" + strings.Repeat(" --- |", len(header)) + "\n")
	for i, length := range lengths {
		line := []string{fmt.Sprintf("%.1f s", length.Seconds())}
		for _, l := range loads {
			cell := "none"
			if i < len(l.cells) {
				cell = l.cells[i]
			}
			line = append(line, cell)
		}
		tableRow(&b, line...)
	}
	return b.String()
}
