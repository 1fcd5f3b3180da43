package rocketmqgo

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// TestRefusal: the texts come from the library: ProcessSendResponse in internal/client.go and sendSync in
// producer/producer.go.
func TestRefusal(t *testing.T) {
	for text, want := range map[string]struct {
		state driver.State
		class driver.Class
	}{
		"CODE: 2, DESC: [TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while":         {driver.Failed, driver.ClassFull},
		"CODE: 13, DESC: the message is illegal, maybe msg body or properties length not matched": {driver.Rejected, driver.ClassTooLarge},
		"CODE: 14, DESC: service not available now":                                               {driver.Failed, driver.ClassClosedByBroker},
		"CODE: 16, DESC: the broker[127.0.0.1] sending message is forbidden":                      {driver.Rejected, driver.ClassAuth},
		"CODE: 1, DESC: create mapped file failed":                                                {driver.Failed, driver.ClassOther},
		"topic=T route info not found":                                                            {driver.Failed, driver.ClassConnect},
	} {
		state, class, hint := refusal(errors.New(text))
		require.Equal(t, want.state, state, text)
		require.Equal(t, want.class, class, text)
		require.NotEmpty(t, hint, text)
	}
}

func TestNames(t *testing.T) {
	for name, legal := range map[string]bool{"a-b_C1": true, "a.b": false, "a:b": false, string(make([]byte, 101)): false} {
		require.Equal(t, legal, rules().Legal(name), name)
	}
}
