package brokercount

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/httpclient"
	"github.com/perfmq/perfmq/pkg/driver"
)

// maxAnswer is the largest answer that is read, in bytes.
const maxAnswer = 4 << 20

// Management is where a broker is managed over HTTP.
type Management struct {
	// URL is http or https, with or without user and password, and with or without a path: "http://localhost:8161",
	// "http://localhost:8161/console/jolokia", "http://localhost:15672". Of RabbitMQ, ?vhost=NAME names the virtual host;
	// default "/".
	URL string
	// User and Password are used if the URL has none.
	User, Password string
	TLS            driver.TLS
	// RocketMQ: the destinations are those of RocketMQ, which a perfmq broker keeps in topics of the same name.
	RocketMQ bool
}

// console is a broker's way to be asked over HTTP.
type console interface {
	inspect(ctx context.Context, destinations []driver.Destination) ([]driver.DestinationCount, error)
	lag() time.Duration
}

// HTTP asks a broker for its counters over HTTP. It finds out by itself which broker it is: Artemis or ActiveMQ Classic
// by Jolokia, RabbitMQ by its management plugin, a perfmq broker by its control. It is a [driver.Inspector].
type HTTP struct {
	base    *url.URL // without user and query
	logs    bool     // the destinations are topics of RocketMQ
	vhost   string
	client  *httpclient.Client
	console console // nil until it is known
}

// CheckURL finds mistakes in a management URL.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

func parseURL(text string) (*url.URL, error) {
	u, err := httpclient.ParseURL(text)
	switch {
	case err != nil:
		return nil, err
	case u.Fragment != "":
		return nil, errors.New("it must not have a fragment")
	}
	for key := range u.Query() {
		if key != "vhost" {
			return nil, errors.New("only ?vhost=NAME may follow its path")
		}
	}
	return u, nil
}

// Open returns an inspector. It does not connect yet.
func Open(m Management) (*HTTP, error) {
	u, err := parseURL(m.URL)
	if err != nil {
		return nil, driver.Errorf(driver.ClassOther, "check the management URL", "", "%w", err)
	}
	client, err := httpclient.New(u, m.User, m.Password, m.TLS, 2)
	if err != nil {
		return nil, &driver.Error{Class: driver.ClassTLS, Op: "check the management URL", Err: err}
	}
	h := &HTTP{
		base: &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}, vhost: "/",
		client: client, logs: m.RocketMQ,
	}
	if vhost := u.Query().Get("vhost"); vhost != "" {
		h.vhost = vhost
	}
	return h, nil
}

// Lag tells how old counters may be.
func (h *HTTP) Lag() time.Duration {
	if h.console == nil {
		return 0
	}
	return h.console.lag()
}

// Close closes the connections.
func (h *HTTP) Close() { h.client.Close() }

// Inspect implements [driver.Inspector].
func (h *HTTP) Inspect(ctx context.Context, destinations []driver.Destination) ([]driver.DestinationCount, error) {
	if h.console == nil {
		found, err := h.find(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask the broker's management at %s: %w", h.base.Redacted(), err)
		}
		h.console = found
	}
	list, err := h.console.inspect(ctx, destinations)
	if err != nil {
		return nil, fmt.Errorf("ask the broker's management at %s: %w", h.base.Redacted(), err)
	}
	return list, nil
}

// find finds the kind of management that answers. An error of refused access takes precedence over one of a missing
// page.
func (h *HTTP) find(ctx context.Context) (console, error) {
	var refused error
	for _, try := range []func(context.Context) (console, error){h.findRabbitMQ, h.findJolokia, h.findPerfmq} {
		found, err := try(ctx)
		if err == nil {
			return found, nil
		}
		class := driver.ClassOf(err)
		if class != driver.ClassNotFound && class != driver.ClassProtocol && class != driver.ClassOther {
			if class != driver.ClassAuth {
				return nil, err // no server answers
			}
			refused = err
		} else if refused == nil || driver.ClassOf(refused) != driver.ClassAuth && class == driver.ClassOther {
			refused = err
		}
	}
	if driver.ClassOf(refused) == driver.ClassNotFound || driver.ClassOf(refused) == driver.ClassProtocol {
		return nil, driver.Errorf(driver.ClassNotFound, "", hintManagement,
			"neither Jolokia nor RabbitMQ's management answers there")
	}
	return nil, refused
}

const hintManagement = "give the URL of Jolokia, such as http://HOST:8161/console/jolokia (Artemis) or " +
	"http://HOST:8161/api/jolokia " +
	"(ActiveMQ Classic), or of RabbitMQ's management plugin, such as http://HOST:15672"

// do makes a request and decodes the answer, JSON.
func (h *HTTP) do(ctx context.Context, method, path string, query url.Values, body, out any, headers ...string) error {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(text)
	}
	at := *h.base
	at.RawPath = path
	at.Path, _ = url.PathUnescape(path)
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, at.String(), reader)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := h.client.Do(request)
	if err != nil {
		class := driver.ClassConnect
		if ctx.Err() != nil {
			class = driver.ClassTimeout
		}
		return driver.Errorf(class, "", "", "%w", err)
	}
	defer func() { _ = response.Body.Close() }()
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return driver.Errorf(driver.ClassAuth, "", "check user and password of --management-url, and what the user may do",
			"%s", response.Status)
	case status == http.StatusNotFound:
		return driver.Errorf(driver.ClassNotFound, "", "", "%s", response.Status)
	case status >= 300 && status < 400:
		return driver.Errorf(driver.ClassOther, "", "give that address", "it redirects to %.200q",
			response.Header.Get("Location"))
	case status != http.StatusOK:
		return driver.Errorf(driver.ClassOther, "", "", "%.100q", response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return driver.Errorf(driver.ClassTimeout, "", "", "read the answer: %w", err)
	case err != nil:
		return driver.Errorf(driver.ClassConnectionLost, "", "", "read the answer: %w", err)
	case len(text) > maxAnswer:
		return driver.Errorf(driver.ClassTooLarge, "", "", "the answer has more than %d bytes", maxAnswer)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return driver.Errorf(driver.ClassProtocol, "", "", "the answer is not what was asked for: %w", err)
	}
	return nil
}

// get is do with GET.
func (h *HTTP) get(ctx context.Context, path string, query url.Values, out any) error {
	return h.do(ctx, http.MethodGet, path, query, nil, out)
}

// under returns the path of something below that of the URL.
func (h *HTTP) under(parts ...string) string {
	path := h.base.EscapedPath()
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// each asks for destinations one by one.
func each(
	destinations []driver.Destination, ask func(driver.Destination) (driver.DestinationCount, error),
) ([]driver.DestinationCount, error) {
	list := make([]driver.DestinationCount, 0, len(destinations))
	for _, d := range destinations {
		n, err := ask(d)
		if driver.ClassOf(err) == driver.ClassNotFound {
			n, err = driver.NoDestination(), nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}
