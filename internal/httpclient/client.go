// Package httpclient makes the HTTP clients that ask a broker about itself: its management, its metrics.
package httpclient

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// ParseURL reads the URL of a server. The error does not show the URL, which may have a password.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("it cannot be read")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("it must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("it has no host")
	}
	return u, nil
}

// Client asks one server. It follows no redirects, which would take the password elsewhere. It is safe for concurrent
// use.
type Client struct {
	user, password string
	client         http.Client
	transport      *http.Transport
}

// New returns a client of the server of u, with as many connections at most. User and password of u come before those
// that are given. The error is about the files of the TLS settings.
func New(u *url.URL, user, password string, tls driver.TLS, connections int) (*Client, error) {
	config, err := tls.Config(u.Hostname())
	if err != nil {
		return nil, err
	}
	if u.User != nil {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	transport := &http.Transport{TLSClientConfig: config, MaxConnsPerHost: connections, IdleConnTimeout: 10 * time.Second}
	return &Client{user: user, password: password, transport: transport, client: http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Do sends a request with user and password, as [http.Client.Do] does. An error does not show the URL.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	if c.user != "" || c.password != "" {
		r.SetBasicAuth(c.user, c.password)
	}
	answer, err := c.client.Do(r)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return answer, err
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.transport.CloseIdleConnections() }
