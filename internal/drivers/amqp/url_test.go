package amqp

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func TestParseURL(t *testing.T) {
	one := func(host, port string) []endpoint { return []endpoint{{host, port}} }
	for url, want := range map[string]target{
		"amqp://localhost:5672":                  {hosts: one("localhost", "5672")},
		"amqp://localhost":                       {hosts: one("localhost", "5672")},
		"amqp://localhost/":                      {hosts: one("localhost", "5672")},
		"AMQP://Localhost":                       {hosts: one("Localhost", "5672")},
		"tcp://localhost:61616":                  {hosts: one("localhost", "61616")},
		"amqps://h":                              {tls: true, hosts: one("h", "5671")},
		"amqp+ssl://h:1":                         {tls: true, hosts: one("h", "1")},
		"ssl://h":                                {tls: true, hosts: one("h", "5671")},
		"amqp://[::1]":                           {hosts: one("::1", "5672")},
		"amqp://[fe80::1%eth0]:7":                {hosts: one("fe80::1%eth0", "7")},
		"amqp://10.0.0.1:05672":                  {hosts: one("10.0.0.1", "5672")},
		"amqp://a,b:1, c:2":                      {hosts: []endpoint{{"a", "5672"}, {"b", "1"}, {"c", "2"}}},
		"amqp://user:pass@h":                     {hosts: one("h", "5672"), user: "user", password: "pass"},
		"amqp://u%40x:p%3Aq%2F@h":                {hosts: one("h", "5672"), user: "u@x", password: "p:q/"},
		"amqp://user:p@ss?w/o#rd@h1,h2":          {hosts: []endpoint{{"h1", "5672"}, {"h2", "5672"}}, user: "user", password: "p@ss?w/o#rd"},
		"amqps://user@[2001:db8::1]:5,broker.de": {tls: true, hosts: []endpoint{{"2001:db8::1", "5"}, {"broker.de", "5671"}}, user: "user"},
	} {
		got, err := parseURL(url)
		require.NoError(t, err, url)
		require.Equal(t, want, got, url)
	}
}

func TestParseURLRefuses(t *testing.T) {
	for url, want := range map[string]string{
		"":                                   "no scheme",
		"localhost:5672":                     "no scheme",
		"stomp://h":                          `unknown scheme "stomp"`,
		"amqp://":                            "name is missing",
		"amqp://h,,i":                        "name is missing",
		"amqp://:5672":                       "name is missing",
		"amqp://h:":                          `port "" is not a number`,
		"amqp://h:0":                         `port "0" is not a number`,
		"amqp://h:65536":                     `port "65536" is not a number`,
		"amqp://h:x":                         `port "x" is not a number`,
		"amqp://::1":                         "in brackets",
		"amqp://[::1":                        "no closing bracket",
		"amqp://[h]":                         "want an IPv6 address",
		"amqp://[1.2.3.4]":                   "want an IPv6 address",
		"amqp://[::1]5672":                   "a colon and a port",
		"amqp://h/vhost":                     "a path (/vhost) is not understood",
		"amqp://%zz:secret@h":                "not percent-encoded",
		"(tcp://a:1,tcp://b:2)":              "unknown scheme",
		"tcp://a:1?confirmationWindowSize=1": "parameters (?confirmationWindowSize=1) are not understood",
	} {
		_, err := parseURL(url)
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := parseURL("tcp://a:1?confirmationWindowSize=1")
	require.Contains(t, driver.HintOf(err), "confirmationWindowSize are not needed")
	_, err = parseURL("amqp://h:0,i:99999")
	require.ErrorContains(t, err, `port "0"`)
	require.ErrorContains(t, err, `port "99999"`, "all mistakes at once")
}

func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{
		"amqp://localhost:5672", "amqps://u:p@a:1,[::1]:2,b", "tcp://x?y#z", "ssl://@,:@[]]:", "amqp://[fe80::1%25eth0]/", "://",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) {
		got, err := parseURL(url)
		if err != nil {
			return
		}
		if len(got.hosts) == 0 {
			t.Fatal("no hosts")
		}
		var list []string
		for _, e := range got.hosts {
			host, port, err := net.SplitHostPort(e.String())
			if err != nil || host != e.host || port != e.port || host == "" {
				t.Fatalf("%q is not a host and port: %v", e.String(), err)
			}
			list = append(list, e.String())
		}
		scheme := "amqp"
		if got.tls {
			scheme = "amqps"
		}
		again, err := parseURL(scheme + "://" + strings.Join(list, ","))
		if err != nil {
			t.Fatal(err)
		}
		again.user, again.password = got.user, got.password
		require.Equal(t, got, again)
	})
}
