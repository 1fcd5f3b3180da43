package brokerside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// CheckURL finds mistakes in the URL of a server.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

// parseURL returns the URL of a server. The error does not show the URL, which may have a password.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("it must begin with http://HOST or https://HOST")
	}
	return u, nil
}

// CheckManagement finds mistakes in a management URL, as CheckURL does.
func CheckManagement(text string) error {
	u, err := parseURL(text)
	if err != nil {
		return err
	}
	for key := range u.Query() {
		if key != "vhost" { // a mistyped one would count another queue of that name
			return errors.New("only ?vhost=NAME may follow its path")
		}
	}
	return nil
}

// client asks one server. It follows no redirects: they would take the password elsewhere.
type client struct {
	http           http.Client
	url            *url.URL // without user
	user, password string
	limit          int64 // bytes of an answer
}

// newClient returns a client of the server of a URL. User and password of the URL take precedence over the arguments.
func newClient(text, user, password string, tls driver.TLS, limit int64) (*client, error) {
	const op = "check the URL of the broker"
	u, err := parseURL(text)
	if err != nil {
		return nil, driver.Errorf(driver.ClassOther, op, "", "%w", err)
	}
	config, err := tls.Config(u.Hostname())
	if err != nil {
		return nil, &driver.Error{Class: driver.ClassTLS, Op: op, Err: err}
	}
	if u.User != nil {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	u.User = nil
	return &client{url: u, user: user, password: password, limit: limit, http: http.Client{
		Transport:     &http.Transport{TLSClientConfig: config, MaxConnsPerHost: 2, IdleConnTimeout: 10 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// name is the URL without the parts that may be secret: user, password and query.
func (c *client) name() string {
	return (&url.URL{Scheme: c.url.Scheme, Host: c.url.Host, Path: c.url.Path}).String()
}

// fetch sends a request and returns the body of the answer. Errors do not show the URL.
func (c *client) fetch(ctx context.Context, method, to string, body []byte, headers ...string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	if c.user != "" || c.password != "" {
		request.SetBasicAuth(c.user, c.password)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return nil, failure(ctx, driver.ClassConnect, err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if answer.StatusCode != http.StatusOK {
		class, hint, status := statusClass(answer.StatusCode), "", answer.Status
		if class == driver.ClassAuth {
			hint = "check user and password, and what the user may do"
		}
		if to := answer.Header.Get("Location"); to != "" {
			status += ": " + to
		}
		return nil, driver.Errorf(class, "", hint, "the server answers %.200q", status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, c.limit+1))
	switch {
	case err != nil:
		return nil, failure(ctx, driver.ClassConnectionLost, fmt.Errorf("read the answer: %w", err))
	case int64(len(text)) > c.limit:
		return nil, driver.Errorf(driver.ClassTooLarge, "", "", "the answer has more than %d bytes", c.limit)
	}
	return text, nil
}

// statusClass returns the class of an answer that is no success.
func statusClass(status int) driver.Class {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return driver.ClassAuth
	case http.StatusNotFound:
		return driver.ClassNotFound
	}
	return driver.ClassOther
}

// failure is a time-out if the context has ended.
func failure(ctx context.Context, class driver.Class, err error) error {
	if ctx.Err() != nil {
		class = driver.ClassTimeout
	}
	return driver.Errorf(class, "", "", "%w", err)
}

// close closes the connections that are not in use.
func (c *client) close() { c.http.CloseIdleConnections() }

// repeat calls do after each wait, until it returns false or ctx ends.
func repeat(ctx context.Context, wait func() time.Duration, do func() bool) {
	for {
		select {
		case <-time.After(wait()):
		case <-ctx.Done():
			return
		}
		if !do() {
			return
		}
	}
}
