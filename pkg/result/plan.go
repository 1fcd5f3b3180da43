package result

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// Hash returns the SHA-256 of a plan in hexadecimal. White space, the order of keys and the escaping of characters make
// no difference. The hash of no plan is empty.
func Hash(plan json.RawMessage) (string, error) {
	if len(plan) == 0 {
		return "", nil
	}
	decoder := json.NewDecoder(bytes.NewReader(plan))
	decoder.UseNumber() // keep the digits of numbers
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", fmt.Errorf("read the plan: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return "", fmt.Errorf("read the plan: something follows it")
	}
	text, err := json.Marshal(value) // keys are sorted
	if err != nil {
		return "", fmt.Errorf("read the plan: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// digest returns [Result.Digest] of a result.json with any digest, given the SHA-256 of the rows. It is a [Hash]: white
// space makes no difference.
func digest(text []byte, rows string) (string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return "", err
	}
	fields["digest"] = json.RawMessage(strconv.Quote(rows))
	whole, err := json.Marshal(fields)
	if err != nil {
		return "", err
	}
	return Hash(whole)
}
