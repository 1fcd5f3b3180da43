//go:build unix

package brokertest

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJKS has Java's own tool read a store, with the password and so with its check sum, and the key out of it.
func TestJKS(t *testing.T) {
	certs, err := NewCerts(t.TempDir())
	require.NoError(t, err)
	java, err := javaPath()
	require.NoError(t, err)
	store := filepath.Join(t.TempDir(), "store.jks")
	require.NoError(t, writeJKS(store, certs.ServerKeyFile, certs.ServerCertFile, certs.CAFile))
	keytool := func(args ...string) string {
		args = append(args, "-storepass", jksPassword)
		out, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(java), "keytool"), args...).CombinedOutput() //nolint:gosec // the JDK's
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	list := keytool("-list", "-keystore", store)
	require.Contains(t, list, "server, ")
	require.Contains(t, list, "PrivateKeyEntry")
	require.Contains(t, list, "trustedCertEntry")
	keytool("-certreq", "-keystore", store, "-alias", "server") // signs with the key

	require.ErrorContains(t, writeJKS(store, "missing.key", certs.ServerCertFile), "missing.key")
	require.ErrorContains(t, writeJKS(store, "", "", store), "not in PEM form")
}
