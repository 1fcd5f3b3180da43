//go:build unix

package brokertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// jolokiaRequest is a read of attributes, a call of an operation, or a search.
type jolokiaRequest struct {
	Type      string   `json:"type"` // read, exec or search
	Bean      string   `json:"mbean"`
	Attribute []string `json:"attribute,omitempty"`
	Operation string   `json:"operation,omitempty"`
	Arguments []any    `json:"arguments,omitempty"`
}

var errNoBean = errors.New("there is no such bean")

// askJolokia asks a broker's JMX beans over HTTP. It adds no connection and no queue to the broker's counts, and does
// not use the clients under test. No connection is left, which tests would take for a leak.
func askJolokia(ctx context.Context, url string, r jolokiaRequest, out any) error {
	if url == "" {
		return errors.New("ask the broker's management: it was started without management")
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	to := strings.TrimRight(url, "/") + "/"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Close = true
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Origin", "http://localhost")
	request.SetBasicAuth(User, Password)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Status int             `json:"status"`
		Error  string          `json:"error"`
		Value  json.RawMessage `json:"value"`
	}
	switch err := json.NewDecoder(response.Body).Decode(&answer); {
	case err != nil:
		return fmt.Errorf("the answer of Jolokia is %s: %w", response.Status, err)
	case answer.Status == http.StatusNotFound:
		return fmt.Errorf("%w: %s", errNoBean, answer.Error)
	case answer.Status != http.StatusOK:
		return fmt.Errorf("the answer of Jolokia is %d: %s", answer.Status, answer.Error)
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer.Value, out)
}

// noBean reports whether nothing has the name asked for.
func noBean(err error) bool { return errors.Is(err, errNoBean) }
