//go:build unix

package brokertest

import (
	"context"
	"encoding/json"
	"fmt"
)

// Connection is a connection as the operator's console lists it.
type Connection struct {
	Protocol string `json:"protocol"` // AMQP, STOMP, CORE...
	ClientID string `json:"clientID"` // AMQP: the container id; STOMP: client-id
}

// Connections returns the connections that the broker has, in no order. Ours to
// its management is not one of them.
func (a *Artemis) Connections(ctx context.Context) ([]Connection, error) {
	var list []Connection
	err := a.list(ctx, "listConnections", &list)
	return list, err
}

// Workers returns the number of consumers and producers that the broker has.
func (a *Artemis) Workers(ctx context.Context) (n int, err error) {
	for _, operation := range []string{"listConsumers", "listProducers"} {
		var list []json.RawMessage
		if err := a.list(ctx, operation, &list); err != nil {
			return 0, err
		}
		n += len(list)
	}
	return n, nil
}

// list calls one of the console's listings. They answer with JSON in a text, in
// which consumers' numbers are texts again.
func (a *Artemis) list(ctx context.Context, operation string, out any) error {
	const everything = 1 << 30
	var text string
	filter := `{"field":"","operation":"","value":"","sortField":"","sortOrder":""}`
	err := a.exec(ctx, &text, operation+"(java.lang.String,int,int)", filter, 1, everything)
	if err != nil {
		return fmt.Errorf("ask the broker for %s: %w", operation, err)
	}
	var page struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		return fmt.Errorf("read the broker's answer to %s: %w: %.300s", operation, err, text)
	}
	if err := json.Unmarshal(page.Data, out); err != nil {
		return fmt.Errorf("read the broker's answer to %s: %w: %.300s", operation, err, page.Data)
	}
	return nil
}
