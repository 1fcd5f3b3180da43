package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
)

func TestServer(t *testing.T) {
	for header, want := range map[string][2]string{
		"ActiveMQ-Artemis/2.40.0 ActiveMQ Artemis Messaging Engine": {"ActiveMQ-Artemis", "2.40.0"},
		"ActiveMQ/5.18.3":                   {"ActiveMQ", "5.18.3"},
		"RabbitMQ/3.10.8":                   {"RabbitMQ", "3.10.8"},
		"perfmq embedded broker/v1.2+dirty": {"perfmq embedded broker", "v1.2+dirty"},
		"name/1\tcomment/2":                 {"name", "1"},
		"name":                              {"name", ""},
		"name/":                             {"name", ""},
		"/1":                                {"", "1"},
		"":                                  {"", ""},
	} {
		name, version := protocol.STOMPServer(header)
		assert.Equal(t, want, [2]string{name, version}, header)
	}
}
