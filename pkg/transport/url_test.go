package transport

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func amqp() *Protocol {
	return &Protocol{
		Title: "AMQP", Schemes: []string{"amqp", "amqps", "amqp+ssl", "tcp", "ssl"},
		Encrypted: []string{"amqps", "amqp+ssl", "ssl"}, PlainPort: "5672", TLSPort: "5671",
	}
}

func TestParseURL(t *testing.T) {
	one := func(host, port string) []Endpoint { return []Endpoint{{host, port}} }
	for url, want := range map[string]Target{
		"amqp://localhost:5672":                  {Hosts: one("localhost", "5672")},
		"amqp://localhost":                       {Hosts: one("localhost", "5672")},
		"amqp://localhost/":                      {Hosts: one("localhost", "5672")},
		"AMQP://Localhost":                       {Hosts: one("Localhost", "5672")},
		"tcp://localhost:61616":                  {Hosts: one("localhost", "61616")},
		"amqps://h":                              {TLS: true, Hosts: one("h", "5671")},
		"amqp+ssl://h:1":                         {TLS: true, Hosts: one("h", "1")},
		"ssl://h":                                {TLS: true, Hosts: one("h", "5671")},
		"amqp://[::1]":                           {Hosts: one("::1", "5672")},
		"amqp://[fe80::1%eth0]:7":                {Hosts: one("fe80::1%eth0", "7")},
		"amqp://10.0.0.1:05672":                  {Hosts: one("10.0.0.1", "5672")},
		"amqp://a,b:1, c:2":                      {Hosts: []Endpoint{{"a", "5672"}, {"b", "1"}, {"c", "2"}}},
		"amqp://user:pass@h":                     {Hosts: one("h", "5672"), User: "user", Password: "pass"},
		"amqp://u%40x:p%3Aq%2F@h":                {Hosts: one("h", "5672"), User: "u@x", Password: "p:q/"},
		"amqp://user:p@ss?w/o#rd@h1,h2":          {Hosts: []Endpoint{{"h1", "5672"}, {"h2", "5672"}}, User: "user", Password: "p@ss?w/o#rd"},
		"amqps://user@[2001:db8::1]:5,broker.de": {TLS: true, Hosts: []Endpoint{{"2001:db8::1", "5"}, {"broker.de", "5671"}}, User: "user"},
	} {
		got, err := amqp().Parse(url)
		require.NoError(t, err, url)
		require.Equal(t, want, got, url)
	}
}

func TestParseURLRefuses(t *testing.T) {
	for url, want := range map[string]string{
		"":                                     "no scheme",
		"localhost:5672":                       "no scheme",
		"stomp://h":                            `unknown scheme "stomp"`,
		"amqp://":                              "in brackets",
		"amqp://h,,i":                          "in brackets",
		"amqp://:5672":                         "in brackets",
		"amqp://h:":                            `port "" is not a number`,
		"amqp://h:0":                           `port "0" is not a number`,
		"amqp://h:65536":                       `port "65536" is not a number`,
		"amqp://h:x":                           `port "x" is not a number`,
		"amqp://::1":                           "in brackets",
		"amqp://[::1":                          "in brackets",
		"amqp://a b":                           "must be a name",
		"amqp://[h]":                           "in brackets",
		"amqp://[1.2.3.4]":                     "in brackets",
		"amqp://[::1]5672":                     "in brackets",
		"amqp://h/vhost":                       "a path (/vhost) is not understood",
		"amqp://%zz:secret@h":                  "not percent-encoded",
		"(tcp://a:1,tcp://b:2)":                "unknown scheme",
		"amqps://u:secret@a,amqp://u:secret@b": "a scheme stands before several hosts",
		"tcp://a:1?confirmationWindowSize=1":   "parameters (?confirmationWindowSize=1) are not understood",
	} {
		_, err := amqp().Parse(url)
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := amqp().Parse("tcp://a:1?confirmationWindowSize=1")
	require.Contains(t, driver.HintOf(err), "-o NAME=VALUE")
	_, err = amqp().Parse("amqp://h:0,i:99999")
	require.ErrorContains(t, err, `port "0"`)
	require.ErrorContains(t, err, `port "99999"`, "all mistakes at once")
}

// The example of a URL in a hint depends on the scheme; the flag that gave the URL is not known.
func TestParseURLHint(t *testing.T) {
	for url, example := range map[string]string{
		"AMQP://h:65536":    "amqp://a:5672,b:5672",
		"tcp://[::1":        "tcp://a:5672,b:5672",
		"amqp+ssl://[::1]5": "amqp+ssl://a:5671,b:5671",
	} {
		_, err := amqp().Parse(url)
		require.ErrorContains(t, err, "read the URL: host ", url)
		require.Contains(t, driver.HintOf(err), "or "+example)
		_, err = amqp().Parse(example)
		require.NoError(t, err, "the example is one")
	}
}

func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{
		"amqp://localhost:5672", "amqps://u:p@a:1,[::1]:2,b", "tcp://x?y#z", "ssl://@,:@[]]:", "amqp://[fe80::1%25eth0]/", "://",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) {
		got, err := amqp().Parse(url)
		if err != nil {
			return
		}
		if len(got.Hosts) == 0 {
			t.Fatal("no hosts")
		}
		var list []string
		for _, e := range got.Hosts {
			host, port, err := net.SplitHostPort(e.String())
			if err != nil || host != e.Host || port != e.Port || host == "" {
				t.Fatalf("%q is not a host and port: %v", e.String(), err)
			}
			list = append(list, e.String())
		}
		scheme := "amqp"
		if got.TLS {
			scheme = "amqps"
		}
		again, err := amqp().Parse(scheme + "://" + strings.Join(list, ","))
		if err != nil {
			t.Fatal(err)
		}
		again.User, again.Password = got.User, got.Password
		require.Equal(t, got, again)
	})
}

func TestCheck(t *testing.T) {
	check := func(opts driver.OpenOptions) (Target, error) {
		s, err := Check(amqp(), opts, struct{}{}, nil)
		return s.Target, err
	}
	good := driver.OpenOptions{URL: "amqps://u:p@h", ConnectTimeout: 1}
	got, err := check(good)
	require.NoError(t, err)
	require.Equal(t, Target{TLS: true, Hosts: []Endpoint{{"h", "5671"}}, User: "u", Password: "p"}, got)
	good.User = "other"
	got, err = check(good)
	require.NoError(t, err)
	require.Equal(t, "other", got.User)
	require.Empty(t, got.Password, "that of another user")

	_, err = check(driver.OpenOptions{URL: "amqps://h", TLS: driver.TLS{CAFile: "missing.pem"}})
	require.ErrorContains(t, err, "connect timeout")
	require.ErrorContains(t, err, "missing.pem", "all mistakes at once")
	_, err = check(driver.OpenOptions{URL: "amqp://h", ConnectTimeout: 1, TLS: driver.TLS{CAFile: "missing.pem"}})
	require.NoError(t, err, "not encrypted")
	_, err = check(driver.OpenOptions{URL: "amqp://h:x", ConnectTimeout: 1})
	require.ErrorContains(t, err, "port")
}
