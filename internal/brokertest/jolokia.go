//go:build unix

package brokertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// jolokia speaks to a broker's JMX beans over HTTP: apart from the messaging
// protocols, so that reading a counter neither adds a connection or a queue to
// the counts nor needs the client library under test.
type jolokia struct {
	url    string
	client *http.Client
}

func newJolokia(url string) *jolokia {
	// One short request at a time: idle connections would only be leaks to a
	// test that looks for them.
	transport := &http.Transport{DisableKeepAlives: true}
	return &jolokia{url: url, client: &http.Client{Transport: transport, Timeout: time.Minute}}
}

// jolokiaRequest is a read of attributes or a call of an operation.
type jolokiaRequest struct {
	Type      string   `json:"type"`
	MBean     string   `json:"mbean"`
	Attribute []string `json:"attribute,omitempty"`
	Operation string   `json:"operation,omitempty"`
	Arguments []any    `json:"arguments,omitempty"`
}

// errNoBean means that nothing has the name asked for.
var errNoBean = errors.New("no such MBean")

// do sends a request and decodes the value that comes back into out.
func (j *jolokia) do(ctx context.Context, r jolokiaRequest, out any) error {
	if j == nil {
		return errors.New("ask the broker's management: it was started without (leave WithoutManagement away)")
	}
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode a management request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, j.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("form a management request: %w", err)
	}
	req.SetBasicAuth(User, Password)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", "http://localhost") // Jolokia checks it strictly
	resp, err := j.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask the broker's management (is it stopped or paused?): %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read the management's answer: %w", err)
	}
	var answer struct {
		Status int             `json:"status"`
		Error  string          `json:"error"`
		Value  json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("read the management's answer (HTTP %s): %w: %s", resp.Status, err, lastLines(string(text), 3))
	}
	switch {
	case answer.Status == http.StatusNotFound:
		return fmt.Errorf("%s %s: %w: %s", r.Type, r.MBean, errNoBean, answer.Error)
	case answer.Status != http.StatusOK:
		return fmt.Errorf("%s %s %s: management says %d: %s", r.Type, r.MBean, r.Operation, answer.Status, answer.Error)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(answer.Value, out); err != nil {
		return fmt.Errorf("decode the management's answer to %s %s %s: %w: %.300s", r.Type, r.MBean, r.Operation, err,
			answer.Value)
	}
	return nil
}

// quoteName quotes a value in a JMX object name.
func quoteName(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `*`, `\*`, `?`, `\?`, "\n", `\n`).Replace(s) + `"`
}
