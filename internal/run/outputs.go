package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/pkg/result"
)

// The formats of the console.
const (
	Artemis  = "artemis"
	RocketMQ = "rocketmq"
	Short    = "short"
)

// Standard as the file of the JSON is standard output; the console is then on standard error.
const Standard = "-"

// usualRemoteInterval is the interval of --remote-write.
const usualRemoteInterval = 5 * time.Second

// Outputs say where the metrics of a run go.
type Outputs struct {
	// VerifyFile is named by the user; empty for none.
	VerifyFile  string        `set:"verify-file,output" section:"Verification" arg:"FILE" help:"as --verify, with this process' side in a file for perfmq verify"`
	Format      string        `set:"format" section:"Output" words:"artemis,rocketmq,short" default:"artemis" help:"console output: as artemis perf, as RocketMQ's benchmark, or short"`
	Interval    time.Duration `set:"interval" least:"1s" none:"that of the format" help:"interval of the console's blocks or lines, at least 1s"`
	ShowLatency bool          `set:"show-latency,daily" help:"print latencies every second, not only at the end"`
	JSON        string        `set:"json,daily,output" arg:"FILE" help:"write every second and the summary as JSON; - is standard output"`
	HDR         string        `set:"hdr,output" arg:"FILE" help:"write every second's latencies as an HdrHistogram log, in microseconds"`
	Result      string        `set:"result,daily,output" arg:"DIR" help:"write the whole result into a new folder"`
	Continue    bool          `set:"result-continue" needs:"result" help:"write into a new folder run-1, run-2, ... of --result: a run that is started again continues there"`
	Metrics     string        `set:"metrics" arg:"[HOST]:PORT" help:"serve Prometheus metrics during the run; :9400 is on loopback"`
	Linger      time.Duration `set:"metrics-linger" needs:"metrics" help:"serve the final values for this time"`
	MetricsWeb  string        `set:"metrics-web-config" needs:"metrics" arg:"FILE" help:"TLS and login by a web configuration file of Prometheus"`
	// Remote is a receiver of remote write, with the secret in RemoteTokenFile as RemoteSecret.
	Remote          brokerside.Endpoint `set:"remote-write" arg:"URL" help:"write the Prometheus metrics to a receiver of remote write, such as http://HOST:9090"`
	RemoteInterval  time.Duration       `set:"remote-write-interval" needs:"remote-write" least:"1s" none:"5s" help:"interval of these writes"`
	RemoteTokenFile string              `set:"remote-write-token-file" needs:"remote-write" arg:"FILE" help:"FILE with the password of the URL's user, or without a user with a bearer token"`
	RemoteHeaders   []string            `set:"remote-write-header" needs:"remote-write" arg:"NAME=VALUE" help:"add a header, such as X-Scope-OrgID=TENANT; may be repeated"`
	RemoteCA        string              `set:"remote-write-ca" needs:"remote-write" arg:"FILE" none:"--tls-ca, or the system's" help:"PEM file of authorities trusted for the receiver"`
	RemoteSecret    string
	Web             string `set:"web,daily" arg:"[HOST]:PORT" help:"serve a live page; :8080 is on loopback"`
	Silent          bool   `set:"silent" help:"print nothing but errors"`
}

// SetFolder sets the folder of a plan's result; empty for none. The verification goes there, too, unless it has a file.
func (o *Outputs) SetFolder(dir string, p *plan.Plan) {
	o.Result = dir
	if !p.Verify || o.VerifyFile != "" {
		return
	}
	p.VerifyFile = ""
	if dir != "" {
		p.VerifyFile = filepath.Join(dir, result.VerifyFile)
	}
}

// openReporters opens the outputs. If one cannot be opened, the opened ones are closed again.
func (r *Run) openReporters(stdout io.Writer) (*report.Fan, error) {
	o := &r.Outputs
	var list []report.Reporter
	var errs []error
	add := func(reporter report.Reporter, err error) {
		if err != nil {
			errs = append(errs, err)
			return
		}
		list = append(list, reporter)
	}
	if !o.Silent {
		add(r.newConsole(stdout), nil)
	}
	head, err := r.describe()
	if err != nil {
		errs = append(errs, err)
	}
	switch o.JSON {
	case "":
	case Standard:
		add(report.NewJSONStream("standard output", stdout, r.resultOptions(head)), nil)
	default:
		add(report.NewJSON(o.JSON, r.resultOptions(head)))
	}
	if o.HDR != "" {
		add(report.NewHDR(o.HDR))
	}
	if o.Result != "" {
		add(r.newResult(head))
	}
	if o.Metrics != "" || o.Remote.URL != "" {
		r.metrics, err = r.newMetrics(head.Host.Name)
		add(r.metrics, err)
	}
	if o.Web != "" {
		var w *report.Result
		w, r.page, err = report.NewWeb(o.Web, r.resultOptions(head))
		add(w, err)
	}
	fan := report.NewFan(list...)
	if len(errs) > 0 {
		errs = append(errs, fan.Close())
		return nil, errors.Join(errs...)
	}
	fan.OnError, fan.Secrets = r.OnError, r.Secrets
	return fan, nil
}

// newMetrics serves metrics, or writes them, as those of an instance.
func (r *Run) newMetrics(instance string) (*report.Prometheus, error) {
	o := &r.Outputs
	web, err := listen.ReadWeb(o.MetricsWeb)
	if err != nil {
		return nil, err
	}
	m, err := report.NewPrometheus(o.Metrics, r.Version.Number, web, r.Listen)
	if err != nil || o.Remote.URL == "" {
		return m, err
	}
	if n := r.Plan.Shard.Number; n > 0 {
		instance = fmt.Sprintf("%s/%d", instance, n)
	}
	w, err := report.NewRemoteWrite(&report.Receiver{
		URL: o.Remote.URL, Secret: o.RemoteSecret, Headers: o.RemoteHeaders, TLS: o.Remote.TLS,
		Version: r.Version.Number, Every: cmp.Or(o.RemoteInterval, usualRemoteInterval), Instance: instance, Say: r.Say,
	})
	m.WriteTo(w)
	return m, err
}

// newConsole returns the reporter that prints to the standard output.
func (r *Run) newConsole(stdout io.Writer) (c report.Reporter) {
	o := &r.Outputs
	terminal := r.Stdout
	if o.JSON == Standard {
		stdout, terminal = r.Stderr, r.Stderr
	}
	options := report.ConsoleOptions{URL: brokerURLs(r.Plan), ShowLatency: o.ShowLatency}
	file := Terminal(terminal)
	format, every := o.Format, o.Interval
	if format == "" && file != nil {
		format = Short
	}
	switch format {
	case RocketMQ:
		c = report.NewRocketMQ(stdout, options)
		every = cmp.Or(every, report.BenchmarkPeriod)
	case Short:
		options.Lines, options.Length, options.ASCII = o.Interval > 0, r.Plan.Length(), !UTF8(r.Environ)
		if file != nil && Variable(r.Environ, "TERM") != "dumb" {
			r.told = true
			options.Terminal, options.Color = true, Variable(r.Environ, "NO_COLOR") == ""
			options.Columns = func() int {
				width, _, _ := term.GetSize(int(file.Fd())) //nolint:gosec // small
				return width
			}
		}
		c = report.NewShort(stdout, options)
	default:
		c = report.NewConsole(stdout, options)
	}
	if every > 0 {
		c = report.Paced(c, every)
	}
	return c
}

// Terminal returns the terminal to which a writer writes; nil if it does not.
func Terminal(w io.Writer) *os.File {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) { //nolint:gosec // small
		return nil
	}
	return file
}

// Variable returns the first of some variables of an environment, as of os.Environ, that is not empty.
func Variable(environ []string, names ...string) string {
	for _, name := range names {
		for _, v := range environ {
			if text, ok := strings.CutPrefix(v, name+"="); ok && text != "" {
				return text
			}
		}
	}
	return ""
}

// UTF8 reports whether the locale of an environment has the characters that perfmq draws.
func UTF8(environ []string) bool {
	locale := strings.ToUpper(Variable(environ, "LC_ALL", "LC_CTYPE", "LANG"))
	return strings.Contains(strings.ReplaceAll(locale, "-", ""), "UTF8") || runtime.GOOS == "windows"
}

// brokerURLs returns the URLs for the console: the broker's of a command line, or all brokers' of a scenario.
func brokerURLs(p *plan.Plan) string {
	var urls []string
	for _, g := range p.Groups() {
		for _, e := range g.Brokers() {
			if u := plan.RedactURL(e.URL); !slices.Contains(urls, u) && (g.Name != "" || len(urls) == 0) {
				urls = append(urls, u)
			}
		}
	}
	return strings.Join(urls, " ")
}
