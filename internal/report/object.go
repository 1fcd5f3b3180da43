package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/perfmq/perfmq/pkg/result"
)

// object is a JSON object with its keys in order.
type object struct {
	text bytes.Buffer
	err  error
}

// add adds a key.
func (o *object) add(key string, value any) *object { return o.addIf(true, key, value) }

// addIf adds a key on a condition.
func (o *object) addIf(known bool, key string, value any) *object {
	if !known {
		return o
	}
	if o.text.Len() > 0 {
		o.text.WriteByte(',')
	}
	for i, part := range []any{key, value} {
		if i > 0 {
			o.text.WriteByte(':')
		}
		encoder := json.NewEncoder(&o.text)
		encoder.SetEscapeHTML(false) // keeps "a -> b" in a problem legible
		if err := encoder.Encode(part); err != nil {
			o.err = errors.Join(o.err, fmt.Errorf("%s: %w", key, err))
			return o
		}
		o.text.Truncate(o.text.Len() - 1) // the line feed
	}
	return o
}

// MarshalJSON returns the text.
func (o *object) MarshalJSON() ([]byte, error) { return []byte("{" + o.text.String() + "}"), o.err }

// printed returns the kinds of latencies in the order of the console and of JSON: `artemis perf` has the first.
func printed() (list []result.KindInfo) {
	for _, artemis := range []bool{true, false} {
		for _, k := range result.Kinds() {
			if k.Artemis == artemis {
				list = append(list, k)
			}
		}
	}
	return list
}

// camelCase returns the key of a label: "totalSendTime" of "total send time".
func camelCase(label string) string {
	words := strings.Fields(label)
	for i := range words[1:] {
		words[i+1] = string(unicode.ToUpper(rune(words[i+1][0]))) + words[i+1][1:]
	}
	return strings.Join(words, "")
}
