//go:build unix

package brokertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// QueueDepth returns the number of messages in a queue of a broker with [WithQpidManagement]; 0 if the queue does not
// exist.
func (q *Qpid) QueueDepth(ctx context.Context, name string) (int64, error) {
	var list []struct {
		Statistics struct {
			Depth int64 `json:"queueDepthMessages"`
		} `json:"statistics"`
	}
	if err := q.manage(ctx, http.MethodGet, "queue/default/default?name="+url.QueryEscape(name), &list); err != nil {
		return 0, fmt.Errorf("read the depth of queue %s: %w", name, err)
	}
	if len(list) == 0 {
		return 0, nil
	}
	return list[0].Statistics.Depth, nil
}

// CloseAllConnections closes all connections of clients, as an operator would on the console of a broker with
// [WithQpidManagement], and returns their number.
func (q *Qpid) CloseAllConnections(ctx context.Context) (int, error) {
	var list []struct {
		ID string `json:"id"`
	}
	if err := q.manage(ctx, http.MethodGet, "connection", &list); err != nil {
		return 0, fmt.Errorf("list the connections: %w", err)
	}
	for _, c := range list {
		if err := q.manage(ctx, http.MethodDelete, "connection?id="+url.QueryEscape(c.ID), nil); err != nil {
			return 0, fmt.Errorf("close a connection: %w", err)
		}
	}
	return len(list), nil
}

// manage sends a request to the management, and decodes the answer into out, unless it is nil.
func (q *Qpid) manage(ctx context.Context, method, path string, out any) error {
	if q.web == 0 {
		return errors.New("ask the broker's management: it was started without (see WithQpidManagement)")
	}
	req, err := http.NewRequestWithContext(ctx, method, hostURL("http", q.web)+"/api/latest/"+path, http.NoBody)
	if err != nil {
		return err
	}
	req.SetBasicAuth(User, Password)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask the broker's management (is it stopped or paused?): %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return fmt.Errorf("read the management's answer: %w", err)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("the management answers HTTP %s: %.300s", resp.Status, text)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("decode the management's answer: %w: %.300s", err, text)
	}
	return nil
}
