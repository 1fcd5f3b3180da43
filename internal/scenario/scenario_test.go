package scenario

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// TestGarbled: each file of testdata/garbled is refused with the messages beside it.
func TestGarbled(t *testing.T) {
	t.Parallel()
	files := filesOf(t, "garbled")
	require.GreaterOrEqual(t, len(files), 60)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name := file[strings.LastIndexByte(file, '/')+1:]
		got, err := Parse(name, text, settingsTable(), setFor(text))
		require.Nil(t, got, file)
		var mistakes Mistakes
		require.ErrorAs(t, err, &mistakes, file)
		require.NotEmpty(t, mistakes, file)
		requireSound(t, name, text, mistakes)
		golden(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
	}
}

// requireSound: mistakes are within the file, in order, without control characters, and hold no secret of the test
// files.
func requireSound(t *testing.T, name string, text []byte, mistakes Mistakes) {
	t.Helper()
	lines := strings.Split(strings.TrimPrefix(string(text), "\ufeff"), "\n")
	last := Pos{Line: 1}
	for i := range mistakes {
		m := &mistakes[i]
		require.Equal(t, name, m.Pos.File)
		require.GreaterOrEqual(t, m.Pos.Line, 1)
		require.LessOrEqual(t, m.Pos.Line, len(lines))
		require.GreaterOrEqual(t, m.Pos.Column, 1)
		if utf8.Valid(text) {
			require.LessOrEqual(t, m.Pos.Column, utf8.RuneCountInString(lines[m.Pos.Line-1])+1)
		}
		require.False(t, m.Pos.Line < last.Line || m.Pos.Line == last.Line && m.Pos.Column < last.Column, "in order")
		last = m.Pos
		require.NotEmpty(t, m.Text)
		for _, shown := range []string{m.Text, m.Hint, m.Line} {
			require.False(t, strings.ContainsFunc(shown, unicode.IsControl), "%q", shown)
			require.Less(t, len(shown), 2000)
			for _, secret := range testSecrets() {
				require.NotContains(t, shown, secret)
			}
		}
	}
}

func testSecrets() []string {
	return []string{"hunter", "swordfish", "letmein", "opensesame", "secret1"}
}

// TestValid: the trees of the files of testdata/valid are as beside them.
func TestValid(t *testing.T) {
	t.Parallel()
	for _, file := range filesOf(t, "valid") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		got, err := Parse(file[strings.LastIndexByte(file, '/')+1:], text, settingsTable(), setFor(text))
		require.NoError(t, err, file)
		tree, err := json.MarshalIndent(got, "", " ")
		require.NoError(t, err)
		golden(t, strings.TrimSuffix(file, ".yaml")+".json", string(tree)+"\n")
	}
}
