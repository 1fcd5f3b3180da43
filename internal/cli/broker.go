package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/internal/run"
)

// off is the address that disables a listener.
const off = "off"

// brokerSettings are the flags of perfmq broker.
type brokerSettings struct {
	listen             map[string]*string
	control, faults    string
	messages, bytes    string
	memory, whenFull   string
	user, passwordFile string
}

func (a *app) brokerCommand() *cobra.Command {
	s := &brokerSettings{listen: map[string]*string{}}
	cmd := &cobra.Command{
		Use: "broker [flags]", Short: "Serve the embedded broker to other clients until Ctrl-C", GroupID: groupOther,
		Args:                  noArguments,
		Long:                  "Serve a broker in memory over AMQP 1.0, STOMP and RocketMQ.\n\n" + brokerHelp(),
		DisableFlagsInUseLine: true,
		RunE:                  func(*cobra.Command, []string) error { return a.runBroker(s) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	ports := map[string]string{broker.AMQP: "5672", broker.STOMP: "61613", broker.RocketMQ: "9876"}
	for _, protocol := range broker.Protocols() {
		s.listen[protocol] = flags.String("listen-"+protocol, "127.0.0.1:"+ports[protocol], "serve "+protocol+
			" at `ADDRESS`, or off; :PORT is on loopback, port 0 a free one")
	}
	flags.StringVar(&s.control, "control", "127.0.0.1:8162",
		"serve the HTTP control at `ADDRESS`, or off")
	flags.StringVar(&s.faults, "faults", "none", "begin with the faults of `LIST`")
	flags.StringVar(&s.messages, "max-messages", "1000000", "let a queue or subscription hold `N` messages")
	flags.StringVar(&s.bytes, "max-bytes", "256MB", "let a queue or subscription hold `SIZE` bytes")
	flags.StringVar(&s.memory, "max-memory", "512MiB",
		"let all queues and connections together hold `SIZE` bytes")
	flags.StringVar(&s.whenFull, "when-full", "block", "`POLICY` for senders to a full queue: block or reject")
	flags.StringVar(&s.user, "user", "", "accept only `NAME` (default: anyone)")
	flags.StringVar(&s.passwordFile, "password-file", "",
		"`FILE` with its password (default: PERFMQ_PASSWORD)")
	suggestWords(cmd, "faults", config.SuggestFaults)
	suggestWords(cmd, "when-full", func(string) []string { return []string{"block", "reject"} })
	return cmd
}

func brokerHelp() string {
	var b strings.Builder
	b.WriteString("Faults, joined by commas, such as --faults lose=1000,delay=5ms:\n")
	for _, f := range broker.FaultHelp() {
		fmt.Fprintf(&b, "  %-12s %s\n", f[0], f[1])
	}
	b.WriteString("\nControl, with the header Perfmq-Control: 1: " +
		"GET /stats, PUT /faults, POST /stall?for=2s, POST /drop.")
	return b.String()
}

// config reads the flags and reports all mistakes at once.
//
//nolint:gocyclo // one setting after the other
func (s *brokerSettings) config(environ config.Environment) (cfg broker.Config, errs []error) {
	refuse := func(hint, format string, args ...any) {
		errs = append(errs, plan.Wrong(hint, format, args...))
	}
	address := func(flag, addr string) bool {
		if addr == off {
			return false
		}
		if err := listen.Check(addr); err != nil {
			refuse("write HOST:PORT, :PORT or off", "--%s %s: %v", flag, config.Quoted(addr), err)
		}
		return true
	}
	cfg = broker.Config{Listen: map[string]string{}, User: s.user}
	for _, protocol := range broker.Protocols() {
		if addr := *s.listen[protocol]; address("listen-"+protocol, addr) {
			cfg.Listen[protocol] = addr
		}
	}
	if len(cfg.Listen) == 0 {
		refuse("", "all protocols are off")
	}
	address("control", s.control)
	var err error
	if cfg.Faults, err = broker.ParseFaults(s.faults); err != nil {
		refuse("perfmq broker --help lists them", "--faults: %v", err)
	}
	if cfg.Limits.Limit, err = quantity.Whole(s.messages, 1, math.MaxInt64); err != nil {
		refuse("", "--max-messages %s: %v", config.Quoted(s.messages), err)
	}
	for _, f := range []struct {
		flag, text string
		least      int64
		to         *int64
	}{
		{"max-bytes", s.bytes, 1, &cfg.Limits.LimitBytes},
		{"max-memory", s.memory, 1 << 20, &cfg.Limits.Memory},
	} {
		size, err := quantity.Bytes(f.text, math.MaxInt64/2)
		if err == nil && size < f.least {
			err = fmt.Errorf("must be at least %d bytes", f.least)
		}
		if err != nil {
			refuse("write bytes such as 64MiB", "--%s %s: %v", f.flag, config.Quoted(f.text), err)
		}
		*f.to = size
	}
	switch s.whenFull {
	case "block":
	case "reject":
		cfg.Limits.Full = store.Reject
	default:
		refuse("", "--when-full %s: block or reject", config.Quoted(s.whenFull))
	}
	cfg.Password, err = environ["PERFMQ_PASSWORD"], nil
	if s.passwordFile != "" {
		cfg.Password, err = inputfile.FirstLine(s.passwordFile, config.MaxPassword)
		var fe *inputfile.Error
		if errors.As(err, &fe) {
			refuse(fe.Hint, "--password-file: %v", err)
		}
	}
	if s.user != "" && cfg.Password == "" && err == nil {
		refuse("set PERFMQ_PASSWORD or --password-file", "--user %s has no password", config.Quoted(s.user))
	}
	for what, text := range map[string]string{"user name": s.user, "password": cfg.Password} {
		if err := config.CheckCredential(text); err != nil {
			refuse("", "the %s %v", what, err)
		}
	}
	return cfg, errs
}

func (a *app) runBroker(s *brokerSettings) error {
	cfg, errs := s.config(a.environ)
	a.secrets.Add(cfg.User, cfg.Password)
	if len(errs) > 0 {
		return a.usage(errs...)
	}
	if s.control == off {
		s.control = ""
	}
	ownLimit := slices.ContainsFunc(a.Environ, func(v string) bool { return strings.HasPrefix(v, "GOMEMLIMIT=") })
	a.work = func() int {
		if err := run.Serve(cfg, s.control, ownLimit, a.Signals, a.Stdout); err != nil {
			a.errors.print(err)
			return exitConnect
		}
		return exitOK
	}
	return nil
}
