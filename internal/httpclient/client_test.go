package httpclient_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/httpclient"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestParseURL(t *testing.T) {
	for text, wrong := range map[string]string{
		"http://h": "", "https://u:p@h:1/x?y#z": "", "h:1": "it must begin with http", "amqp://h": "it must begin with http", "http://": "it has no host",
		"http://u:pa%zz@h/": "it cannot be read",
	} {
		u, err := httpclient.ParseURL(text)
		if wrong == "" {
			require.NoError(t, err, text)
			require.Equal(t, text, u.String())
			continue
		}
		require.ErrorContains(t, err, wrong, text)
		require.NotContains(t, err.Error(), "pa%zz")
	}
}

// User and password go to the server, those of the URL rather than others, and with no redirect to another one.
func TestPassword(t *testing.T) {
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen = append(seen, "redirected") }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		seen = append(seen, user+":"+password)
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	defer server.Close()
	for _, with := range []string{"", "u:s3cret@"} {
		u, err := httpclient.ParseURL("http://" + with + server.Listener.Addr().String())
		require.NoError(t, err)
		c, err := httpclient.New(u, "given", "pw", driver.TLS{}, 1)
		require.NoError(t, err)
		u.User = nil
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u.String(), nil)
		require.NoError(t, err)
		answer, err := c.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusFound, answer.StatusCode)
		c.Close()
	}
	require.Equal(t, []string{"given:pw", "u:s3cret"}, seen)
}

// An error shows no URL: there may be a secret in its query.
func TestErrorWithoutURL(t *testing.T) {
	u, err := httpclient.ParseURL("http://127.0.0.1:1/?token=s3cret") // where nobody listens
	require.NoError(t, err)
	c, err := httpclient.New(u, "", "", driver.TLS{}, 1)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u.String(), nil)
	require.NoError(t, err)
	answer, err := c.Do(r) //nolint:bodyclose // there is none
	require.Nil(t, answer)
	require.Equal(t, driver.ClassConnect, driver.ClassOf(err))
	require.NotContains(t, err.Error(), "s3cret")
}
