package scenario

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse: no file makes Parse panic, hang, or point outside of the file, and a password in it is in no message.
func FuzzParse(f *testing.F) {
	for _, folder := range []string{"valid", "garbled"} {
		for _, file := range filesOf(f, folder) {
			text, err := os.ReadFile(file)
			require.NoError(f, err)
			if len(text) < 4096 {
				f.Add(text, []byte{})
				f.Add(text[:len(text)/2], text[len(text)/2:])
			}
		}
	}
	f.Add(Skeleton(), []byte{})
	f.Add([]byte("broker:\n  protocol: amqp\n"), []byte("  ulr: x\n"))
	f.Add([]byte("broker: [\n"), []byte("    continued\n  x: {"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		const secret = "s3cr3tvalue"
		whole := bytes.Join([][]byte{before, after}, nil)
		if bytes.Contains(whole, []byte("s3")) {
			return
		}
		check := func(text []byte) {
			got, err := Parse("fuzz.yaml", text, settingsTable(), map[string]string{"a": "1"})
			if err == nil {
				require.NotEmpty(t, got.Steps)
				require.NotEmpty(t, got.Groups)
				return
			}
			require.Nil(t, got)
			var mistakes Mistakes
			require.True(t, errors.As(err, &mistakes))
			requireSound(t, "fuzz.yaml", text, mistakes)
			require.NotContains(t, err.Error(), secret)
			require.LessOrEqual(t, strings.Count(err.Error(), "\n"), 4*maxPrinted+1)
		}
		if !containsTestSecret(whole) {
			check(whole)
			check(bytes.Join([][]byte{before, []byte("\n  password: " + secret + "\n"), after}, nil))
		}
	})
}

// containsTestSecret: requireSound knows the passwords of the files of testdata, which fuzzing puts where nobody can
// know them.
func containsTestSecret(text []byte) bool {
	for _, secret := range testSecrets() {
		if bytes.Contains(text, []byte(secret)) {
			return true
		}
	}
	return false
}
