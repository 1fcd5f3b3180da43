package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestClientIsNamed: outputs name the client of a run; the console names only libraries.
func TestClientIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ choice, client, line string }{
		{"", "native", ""},
		{"native", "native", ""},
		{"library", "memlib", "--- client:               memlib\n"},
		{"memlib", "memlib", "--- client:               memlib\n"},
	} {
		t.Run(c.choice, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "run.json")
			got := call([]string{"PERFMQ_CLIENT=" + c.choice}, "mem", "client", "--message-count", "10", "--json", file)
			require.Equal(t, result.StatusOK, got.status, got.stderr)
			if c.line == "" {
				require.NotContains(t, got.stdout, "--- client")
			}
			require.Contains(t, got.stdout, c.line)
			text := musttest.Get(os.ReadFile(file))(t)
			var records []struct{ Details result.Result }
			require.NoError(t, json.Unmarshal(text, &records))
			for _, client := range records[len(records)-1].Details.Versions.Clients {
				require.Equal(t, c.client, client.Name)
			}
		})
	}
}

func TestClientInPlanAndHelp(t *testing.T) {
	got := call(nil, "alpha", "client", "--client", "library", "-o", "tag=x", "--dry-run")
	require.Equal(t, result.StatusOK, got.status, got.stderr)
	require.Contains(t, got.stdout, "  client: alphalib\n  options:\n    tag: x\n")
	got = call(nil, "alpha", "client", "--dry-run")
	require.NotContains(t, got.stdout, "  client:")

	got = call(nil, "alpha", "client", "--help-all")
	require.Contains(t, got.stdout, "--client NAME")
	require.Contains(t, call(nil, "__complete", "alpha", "client", "--client", "").stdout, "native\nlibrary\n")
}

// TestLibraryOnly: a protocol without a native driver needs no --client.
func TestLibraryOnly(t *testing.T) {
	only := mem.Factory()
	only.Name, only.Client = "only", "onlylib"
	with := func(args ...string) ended {
		return callAs(Env{Args: append([]string{"only", "client", "--message-count", "3"}, args...), Factories: append(testFactories(), only)})
	}
	for _, args := range [][]string{nil, {"--client", "library"}, {"--client", "onlylib"}} {
		got := with(append(args, "--dry-run")...)
		require.Equal(t, result.StatusOK, got.status, got.stderr)
		require.Contains(t, got.stdout, "  client: onlylib\n")
	}
	got := with()
	require.Equal(t, result.StatusOK, got.status, got.stderr)
	got = with("--client", "alphalib")
	require.Equal(t, result.StatusUsage, got.status)
	require.Contains(t, got.stderr, "error: --client alphalib: must be one of onlylib\n")
}

// TestEachLibraryHasItsProtocol: a library belongs to a native driver, with its title and URLs.
func TestEachLibraryHasItsProtocol(t *testing.T) {
	native, libraries := config.ByClient(mem.With(drivers.All()))
	for _, l := range libraries {
		var own *driver.Factory
		for i := range native {
			if native[i].Name == l.Name {
				own = &native[i]
			}
		}
		require.NotNil(t, own, l.Client)
		require.Subset(t, own.Schemes, l.Schemes)
		if slices.Contains(l.Schemes, own.Schemes[0]) { // not of RocketMQ's proxy, whose schemes are among those of remoting
			require.Equal(t, own.Title, l.Title)
			require.Equal(t, own.DefaultURL, l.DefaultURL)
		}
		require.True(t, own.Capabilities.TLS || !l.Capabilities.TLS)
	}
}
