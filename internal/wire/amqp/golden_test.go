package amqp_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

//go:generate go test . -short -count=1 -update

// Golden files have a line for each case: its name, and bytes in hexadecimal. Qpid Proton confirmed them. `go test
// -update` writes them, and a test compares the messages with go-amqp.
var update = flag.Bool("update", false, "write the golden files anew")

type golden struct {
	name  string
	bytes []byte
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b := musttest.Get(hex.DecodeString(strings.Join(strings.Fields(text), "")))(t)
	return b
}

// checkGolden compares the cases with a golden file, or writes it.
func checkGolden(t *testing.T, file string, cases []golden) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		var b bytes.Buffer
		for _, c := range cases {
			fmt.Fprintf(&b, "%s: %x\n", c.name, c.bytes)
		}
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	}
	want := readGolden(t, file)
	require.Len(t, cases, len(want))
	for i, c := range cases {
		assert.Equal(t, want[i].name, c.name)
		assert.Equal(t, fmt.Sprintf("%x", want[i].bytes), fmt.Sprintf("%x", c.bytes), c.name)
	}
}

func readGolden(t testing.TB, file string) (list []golden) {
	t.Helper()
	text := musttest.Get(os.ReadFile(filepath.Join("testdata", file)))(t)
	for line := range strings.Lines(string(text)) {
		name, digits, ok := strings.Cut(strings.TrimSpace(line), ": ")
		require.True(t, ok, line)
		list = append(list, golden{name, unhex(t, digits)})
	}
	return list
}
