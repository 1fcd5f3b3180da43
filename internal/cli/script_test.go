package cli

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/scenarios"
)

// TestMain makes the command "perfmq" available to the scripts: the same wiring as in cmd/perfmq.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(2)                                  // as in the golden files
	if err := flag.Set("test.parallel", "8"); err != nil { // they wait more than they compute
		panic(err)
	}
	testscript.Main(m, map[string]func(){
		"perfmq": func() {
			signals := make(chan os.Signal, 3)
			signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			signal.Ignore(syscall.SIGPIPE)
			os.Exit(Main(Env{ //nolint:forbidigo // this is the main function of a process
				Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr,
				Signals: signals, Factories: mem.With(drivers.All()), Scenarios: scenarios.FS(), Version: run.Version{Number: "v0.0.0"},
			}))
		},
	})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status": scriptStatus,
			"await":  scriptAwait,
			"signal": scriptSignal,
			"ended":  scriptEnded,
		},
		Setup: func(env *testscript.Env) error {
			env.Values[signalled{}] = new(*exec.Cmd)
			return nil
		},
	})
}

// scriptStatus is "status N command...": the command ends with exit status N.
func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}

// scriptAwait is "await FILE TEXT": it waits until a command in the background has written the text into the file.
func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE TEXT")
	}
	path := ts.MkAbs(args[0])
	deadline := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		content, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(content), args[1]) {
			return
		}
		select {
		case <-deadline:
			ts.Fatalf("%s does not hold %q after a minute: %s", args[0], args[1], content)
		case <-tick.C:
		}
	}
}

// signalled is the key of the process that received the last signal.
type signalled struct{}

// scriptSignal is "signal INT|TERM|HUP": it sends the signal to the only command in the background.
func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}
	cmds := ts.BackgroundCmds()
	if neg || len(args) != 1 || signals[args[0]] == nil || len(cmds) != 1 {
		ts.Fatalf("usage: signal INT|TERM|HUP, with one command in the background")
	}
	*ts.Value(signalled{}).(**exec.Cmd) = cmds[0]
	ts.Check(cmds[0].Process.Signal(signals[args[0]]))
}

// scriptEnded is "ended N": the signalled command ends with exit status N.
func scriptEnded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ended N")
	}
	cmd := *ts.Value(signalled{}).(**exec.Cmd)
	if cmd == nil || cmd.ProcessState == nil {
		ts.Fatalf("no command was signalled and waited for")
	}
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("status %s, want %s", got, args[0])
	}
}
