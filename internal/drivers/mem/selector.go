package mem

import (
	"fmt"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

// selector is the supported part of JMS selectors: name = 'value', joined by AND. All must match.
type selector []driver.Property

func parseSelector(s string) (selector, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	var sel selector
	for term := range strings.SplitSeq(s, " AND ") {
		name, value, ok := strings.Cut(term, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.ContainsAny(name, " <>'") || len(value) < 2 || value[0] != '\'' ||
			value[len(value)-1] != '\'' || strings.Contains(value[1:len(value)-1], "'") {
			return nil, fmt.Errorf("selector %q: only name = 'value', joined by AND, is understood", s)
		}
		sel = append(sel, driver.Property{Key: name, Value: value[1 : len(value)-1]})
	}
	return sel, nil
}

func (s selector) matches(properties []driver.Property) bool {
	for _, want := range s {
		found := false
		for _, have := range properties {
			if have.Key == want.Key {
				found = have.Value == want.Value
			}
		}
		if !found {
			return false
		}
	}
	return true
}
