package compare

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRefused: of many differences between plans the first are told, that of the protocol before all, and the number of
// the others.
func TestRefused(t *testing.T) {
	t.Parallel()
	var list []Difference
	for i := range 6 {
		list = append(list, Difference{Name: fmt.Sprint("options.", i), Values: []string{"", "x"}})
	}
	list = append(list, Difference{Name: "broker.protocol", Values: []string{"amqp", "stomp"}})
	var texts []string
	for _, err := range refused(list) {
		texts = append(texts, err.Error())
	}
	assert.Equal(t, []string{
		"the plans differ in broker.protocol: amqp | stomp", "the plans differ in options.0: none | x",
		"the plans differ in options.1: none | x", "the plans differ in options.2: none | x",
		"the plans differ in 3 more settings",
	}, texts)
	assert.Len(t, refused(list[:5]), 5)
}
