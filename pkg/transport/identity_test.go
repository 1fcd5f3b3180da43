package transport

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/perfmq/perfmq/pkg/driver"
)

var _ driver.Identified = (*Identity)(nil)

func TestIdentity(t *testing.T) {
	var i Identity
	product, version := i.Broker()
	assert.Empty(t, product+version)
	i.Tell("RabbitMQ", "4.0.5")
	i.Tell("", "9")
	product, version = i.Broker()
	assert.Equal(t, "RabbitMQ 4.0.5", product+" "+version, "a broker that says nothing changes nothing")
	i.Tell(strings.Repeat("x", 1000), strings.Repeat("é", 1000))
	product, version = i.Broker()
	assert.Len(t, product, driver.MaxBrokerText)
	assert.Len(t, version, driver.MaxBrokerText)
	i.Tell("a"+strings.Repeat("é", 1000), "")
	product, _ = i.Broker()
	assert.Equal(t, "a"+strings.Repeat("é", 99), product, "no half of a letter")
}
