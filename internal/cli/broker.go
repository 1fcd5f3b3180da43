package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/result"
)

// off is the address that disables a listener.
const off = "off"

// brokerSettings are the flags of perfmq broker. Sizes are half of what fits into 64 bits at most.
type brokerSettings struct {
	AMQP         string `set:"listen-amqp" arg:"ADDRESS" default:"127.0.0.1:5672" help:"serve amqp at ADDRESS, or off; :PORT is loopback, port 0 a free one"`
	STOMP        string `set:"listen-stomp" arg:"ADDRESS" default:"127.0.0.1:61613" help:"serve stomp at ADDRESS, or off; :PORT is loopback, port 0 a free one"`
	RocketMQ     string `set:"listen-rocketmq" arg:"ADDRESS" default:"127.0.0.1:9876" help:"serve rocketmq at ADDRESS, or off; :PORT is loopback, port 0 a free one"`
	Control      string `set:"control" arg:"ADDRESS" default:"127.0.0.1:8162" help:"serve the HTTP control at ADDRESS, or off"`
	Faults       string `set:"faults" arg:"LIST" default:"none" check:"faults" help:"begin with these faults"`
	Messages     int64  `set:"max-messages" range:"1.." default:"1000000" help:"messages per queue or subscription"`
	Bytes        int64  `set:"max-bytes" arg:"SIZE" unit:"bytes" range:"1..4611686018427387903" default:"256MB" help:"bytes per queue or subscription"`
	Memory       int64  `set:"max-memory" arg:"SIZE" unit:"bytes" range:"1048576..4611686018427387903" default:"512MiB" help:"bytes of all queues and connections"`
	Reject       bool   `set:"when-full" arg:"POLICY" words:"block,reject" default:"block" help:"senders to a full queue: block or reject"`
	User         string `set:"user" arg:"NAME" check:"credential" none:"anyone" help:"accept only NAME"`
	PasswordFile string `set:"password-file" arg:"FILE" none:"PERFMQ_PASSWORD" help:"FILE with its password"`
}

func (a *app) brokerCommand() *cobra.Command {
	s := &brokerSettings{}
	return a.withSettings(&cobra.Command{
		Use: "broker [flags]", Short: "Serve the embedded broker to other clients until Ctrl-C",
		Args: noArguments,
		Long: strings.Replace(helpText("embedded"), "FAULTS\n", faultHelp(), 1),
	}, s, func(_ []string, errs []error) error { return a.runBroker(s, errs) })
}

// faultHelp describes the faults of the embedded broker.
func faultHelp() string {
	var b strings.Builder
	for _, f := range broker.FaultHelp() {
		writeEntry(&b, f[0], f[1], len("  lose=1000    "))
	}
	return b.String()
}

// config returns the broker of the flags, and their mistakes as a whole.
func (s *brokerSettings) config(environ config.Environment) (cfg broker.Config, errs []error) {
	refuse := func(hint, format string, args ...any) {
		errs = append(errs, plan.Wrong(hint, format, args...))
	}
	cfg = broker.Config{Listen: map[string]string{}, User: s.User, Limits: store.Config{
		Limit: s.Messages, LimitBytes: s.Bytes, Memory: s.Memory,
	}}
	address := func(flag, text string) bool {
		if text == off {
			return false
		}
		if err := listen.Check(text); err != nil {
			refuse("write HOST:PORT, :PORT or off", "--%s %s: %v", flag, config.Quoted(text), err)
		}
		return true
	}
	for i, protocol := range broker.Protocols() {
		if text := []string{s.AMQP, s.STOMP, s.RocketMQ}[i]; address("listen-"+protocol, text) {
			cfg.Listen[protocol] = text
		}
	}
	address("control", s.Control)
	if len(cfg.Listen) == 0 {
		refuse("", "all protocols are off")
	}
	cfg.Faults, _ = broker.ParseFaults(s.Faults) // it was judged
	cfg.Limits.Reject = s.Reject
	var err error
	cfg.Password = environ["PERFMQ_PASSWORD"]
	if s.PasswordFile != "" {
		cfg.Password, err = inputfile.FirstLine(s.PasswordFile, config.MaxPassword)
		if fe, ok := errors.AsType[*inputfile.Error](err); ok {
			refuse(fe.Hint, "--password-file: %v", err)
		}
	}
	if s.User != "" && cfg.Password == "" && err == nil {
		errs = append(errs, plan.Needs("--user", "PERFMQ_PASSWORD or --password-file"))
	}
	if err := config.CheckCredential(cfg.Password); err != nil {
		refuse("", "the password %v", err)
	}
	return cfg, errs
}

func (a *app) runBroker(s *brokerSettings, errs []error) error {
	cfg, more := s.config(a.environ)
	errs = append(errs, more...)
	a.secrets.Add(cfg.User, cfg.Password)
	if len(errs) > 0 {
		return a.usage(errs...)
	}
	if s.Control == off {
		s.Control = ""
	}
	ownLimit := slices.ContainsFunc(a.Environ, func(v string) bool { return strings.HasPrefix(v, "GOMEMLIMIT=") })
	a.work = func() int {
		if err := run.Serve(cfg, s.Control, ownLimit, a.Signals, a.Stdout); err != nil {
			a.errors.print(err)
			return result.StatusConnect
		}
		return result.StatusOK
	}
	return nil
}
