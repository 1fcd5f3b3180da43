package scenario

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// settingsTable has settings such as the command line's.
func settingsTable() []Key {
	producers, consumers := InProducerGroup, InConsumerGroup
	groups := producers | consumers
	return []Key{
		{Name: "verify", Scopes: InRun, Switch: true, Help: "number the messages and check each"},
		{Name: "drain-timeout", Scopes: InRun, Arg: "TIME", Default: "30s", Help: "limit for the rest to arrive", Check: duration},
		{Name: "threads", Scopes: InRun, Arg: "N", Check: whole},
		{Name: "protocol", Scopes: InBroker, Words: []string{"amqp", "stomp", "rocketmq"}, Help: "protocol"},
		{Name: "client", Scopes: InBroker, Words: []string{"native", "library"}},
		{Name: "url", Scopes: InBroker, Arg: "URL", Default: "amqp://localhost:5672", Help: "where the broker listens"},
		{Name: "user", Scopes: InBroker, Arg: "NAME"},
		{Name: "password", Scopes: InBroker, Arg: "TEXT", Secret: true, Check: func(text string) error {
			if strings.Contains(text, " ") {
				return errors.New(`a blank in "` + text + `"`)
			}
			return nil
		}},
		{Name: "password-file", Scopes: InBroker, Arg: "FILE"},
		{Name: "clientID", Aliases: []string{"client-id"}, Scopes: InBroker, Arg: "PREFIX"},
		{Name: "tls-insecure", Scopes: InBroker, Switch: true},
		{Name: "option", Scopes: InBroker, Arg: "KEY=VALUE", List: true, Pairs: true, Help: "option of the protocol"},
		{Name: "producers", Scopes: producers, Arg: "N", Default: "1", Help: "producers per destination", Check: whole},
		{Name: "consumers", Scopes: consumers, Arg: "N", Default: "1", Help: "consumers per destination", Check: whole},
		{Name: "rate", Scopes: producers, Arg: "RATE", Join: ", ", Relative: true, Help: "messages per second"},
		{Name: "max-pending", Scopes: producers, Arg: "N", Check: whole},
		{Name: "message-size", Scopes: producers | InMessage, Arg: "SIZE", Default: "1024", Help: "size of the body"},
		{Name: "body-file", Scopes: producers | InMessage, Arg: "FILE"},
		{Name: "fill", Scopes: producers | InMessage, Words: []string{"random", "compressible", "zeros"}},
		{Name: "weight", Scopes: InMessage, Arg: "N", Default: "1", Help: "share of the messages", Check: func(text string) error {
			if n, err := strconv.Atoi(text); err != nil || n < 1 || n > 1_000_000 {
				return errors.New("want a whole number from 1 to 1000000")
			}
			return nil
		}},
		{Name: "property", Scopes: producers | InMessage, Arg: "KEY=VALUE", List: true, Pairs: true, Check: func(text string) error {
			if !strings.Contains(text, "=") {
				return errors.New("want key=value")
			}
			return nil
		}},
		{Name: "persistent", Scopes: producers, Switch: true},
		{Name: "group", Scopes: producers, Arg: "NAME", Help: "message group"},
		{Name: "credit", Scopes: consumers, Arg: "N", Check: whole},
		{Name: "selector", Scopes: consumers, Arg: "TEXT"},
		{Name: "num-destinations", Scopes: groups, Arg: "N", Check: whole},
		{Name: "duration", Scopes: InStep, Arg: "TIME", Help: "length of the load", Check: duration},
		{Name: "warmup", Scopes: InStep, Arg: "TIME", Check: duration},
		{Name: "message-count", Scopes: InStep, Arg: "N", Check: whole},
		{Name: "idle-time", Scopes: InStep, Arg: "TIME", Default: "3s", Check: duration},
		{Name: "threshold", Help: "demand", Check: func(text string) error {
			if len(strings.Fields(text)) < 3 {
				return errors.New("want METRIC OPERATOR VALUE")
			}
			return nil
		}},
		{Name: "destination", Help: "queue://NAME or topic://NAME"},
	}
}

func whole(text string) error {
	if _, err := strconv.ParseUint(text, 0, 32); err != nil {
		return errors.New("must be a whole number")
	}
	return nil
}

func duration(text string) error {
	if _, err := time.ParseDuration(text); err != nil {
		return errors.New("must be a time such as 20s")
	}
	return nil
}

// setFor returns the variables that a file is parsed with: its comments "# set NAME=VALUE".
func setFor(text []byte) map[string]string {
	set := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "# set "); ok {
			name, value, _ := strings.Cut(strings.TrimSpace(rest), "=")
			set[name] = value
		}
	}
	return set
}

// golden compares a text with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with -update to write it")
	require.Equal(t, string(want), got, "run the test with -update to write it")
}

func filesOf(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}
