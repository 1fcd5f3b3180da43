package rocketmqgo

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// TestRefusal: the texts are those of the library, ProcessSendResponse in internal/client.go and sendSync in
// producer/producer.go.
func TestRefusal(t *testing.T) {
	for text, want := range map[string]struct {
		state driver.State
		class driver.Class
	}{
		"CODE: 2, DESC: [TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while":         {driver.Failed, driver.ClassFull},
		"CODE: 13, DESC: the message is illegal, maybe msg body or properties length not matched": {driver.Rejected, driver.ClassTooLarge},
		"CODE: 14, DESC: service not available now":                                               {driver.Failed, driver.ClassClosedByBroker},
		"CODE: 16, DESC: the broker[127.0.0.1] sending message is forbidden":                      {driver.Rejected, driver.ClassAuth},
		"CODE: 1, DESC: create mapped file failed":                                                {driver.Failed, driver.ClassOther},
		"topic=T route info not found":                                                            {driver.Failed, driver.ClassConnect},
	} {
		state, class, hint := refusal(errors.New(text))
		require.Equal(t, want.state, state, text)
		require.Equal(t, want.class, class, text)
		require.NotEmpty(t, hint, text)
	}
}

func TestNames(t *testing.T) {
	for name, legal := range map[string]bool{"a-b_C1": true, "a.b": false, "a:b": false, string(make([]byte, 101)): false} {
		require.Equal(t, legal, rules().Legal(name), name)
	}
}

// TestRemoveOffsets: those of other consumers stay.
func TestRemoveOffsets(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	dir := filepath.Join(home, ".rocketmq_client_go")
	for _, name := range []string{"10.0.0.1@mine", "10.0.0.1@other"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "group", name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "group", name, "offset.json"), nil, 0o600))
	}
	require.NoError(t, removeOffsets("group", "mine"))
	require.NoDirExists(t, filepath.Join(dir, "group", "10.0.0.1@mine"))
	require.FileExists(t, filepath.Join(dir, "group", "10.0.0.1@other", "offset.json"))
	require.NoError(t, removeOffsets("group", "other"))
	require.NoDirExists(t, dir)
}

// TestRemoveOffsetsWhileTheyAreWritten: the library may write them once more after its shutdown. One round in twenty or
// so meets a file that was written between the removal of the files and that of the directory.
func TestRemoveOffsetsWhileTheyAreWritten(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	dir := filepath.Join(home, ".rocketmq_client_go", "group", "10.0.0.1@mine")
	for range 200 {
		require.NoError(t, os.MkdirAll(dir, 0o700))
		var library sync.WaitGroup
		for n := range 4 {
			library.Go(func() {
				for range 20 {
					_ = os.WriteFile(filepath.Join(dir, strconv.Itoa(n)), nil, 0o600)
				}
			})
		}
		require.NoError(t, removeOffsets("group", "mine"))
		library.Wait()
		require.NoDirExists(t, dir)
	}
}
