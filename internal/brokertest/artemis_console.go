//go:build unix

package brokertest

import (
	"context"
	"encoding/json"
	"fmt"
)

// Connection is a connection as the operator's console lists it.
type Connection struct {
	ID            string `json:"connectionID"`
	RemoteAddress string `json:"remoteAddress"` // host:port of the client
	Protocol      string `json:"protocol"`      // AMQP, STOMP, CORE...
	ClientID      string `json:"clientID"`      // AMQP: the container id; STOMP: client-id
}

// Consumer is a consumer as the operator's console lists it.
type Consumer struct {
	ClientID string `json:"clientID"`
	Queue    string `json:"queue"`
}

// ProducerInfo is a producer as the operator's console lists it.
type ProducerInfo struct {
	ClientID string `json:"clientID"`
	Address  string `json:"address"`
}

// Connections returns the connections that the broker has, in no order. Ours to
// its management is not one of them.
func (a *Artemis) Connections(ctx context.Context) ([]Connection, error) {
	var list []Connection
	err := a.list(ctx, "listConnections", &list)
	return list, err
}

// Consumers returns the consumers that the broker has, in no order.
func (a *Artemis) Consumers(ctx context.Context) ([]Consumer, error) {
	var list []Consumer
	err := a.list(ctx, "listConsumers", &list)
	return list, err
}

// Producers returns the producers that the broker has, in no order.
func (a *Artemis) Producers(ctx context.Context) ([]ProducerInfo, error) {
	var list []ProducerInfo
	err := a.list(ctx, "listProducers", &list)
	return list, err
}

// CloseConnections makes the broker close every connection of a client id, as an operator does, and returns their
// number.
func (a *Artemis) CloseConnections(ctx context.Context, clientID string) (int, error) {
	list, err := a.Connections(ctx)
	if err != nil {
		return 0, err
	}
	closed := 0
	for _, c := range list {
		if c.ClientID != clientID {
			continue
		}
		var done bool
		if err := a.exec(ctx, &done, "closeConnectionWithID(java.lang.String)", c.ID); err != nil {
			return closed, fmt.Errorf("close connection %s of %s: %w", c.ID, clientID, err)
		}
		if done {
			closed++
		}
	}
	return closed, nil
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
