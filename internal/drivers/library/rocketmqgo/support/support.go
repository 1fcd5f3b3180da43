package support

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/library"
	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	maxName    = 100             // the largest length of a name, so that names of groups derived from it are legal
	writeGrace = 5 * time.Second // how long the library may go on to write offsets
)

// CheckName refuses names of topics that brokers do not allow, in addition to the names that all drivers on libraries
// refuse.
func CheckName(op string, dest driver.Destination) error {
	if len(dest.Name) > maxName || strings.ContainsAny(dest.Name, ".:") {
		return library.Unsupported(op, "use letters, digits, - and _, at most 100 of them",
			dest.Name+" is not a legal name of a topic")
	}
	return nil
}

// Refusal returns the outcome of a send that the broker refused, or for which the library knows no broker. The library
// puts the code of an answer only at the beginning of the error's text.
func Refusal(err error) (state driver.State, class driver.Class, hint string) {
	var code int
	if n, _ := fmt.Sscanf(err.Error(), "CODE: %d", &code); n == 0 {
		return driver.Failed, driver.ClassConnect, "does the name server know a broker of the topic?"
	}
	return protocol.RocketMQRefusal(code, err.Error())
}

// RemoveOffsets removes the files in which the library keeps the offsets of a broadcasting consumer
// (consumer/offset_store.go). A goroutine of the library may still write them after the consumer was shut down, and a
// directory with a new file cannot be removed: RemoveOffsets tries again for as long as writeGrace.
func RemoveOffsets(group, instance string) error {
	dir := os.Getenv("rocketmq.client.localOffsetStoreDir")
	if dir == "" {
		dir = filepath.Join(os.Getenv("HOME"), ".rocketmq_client_go")
	}
	list, err := filepath.Glob(filepath.Join(dir, group, "*@"+instance))
	for _, path := range list {
		failed := os.RemoveAll(path)
		for begin := time.Now(); failed != nil && time.Since(begin) < writeGrace; failed = os.RemoveAll(path) {
			<-time.After(10 * time.Millisecond)
		}
		err = errors.Join(err, failed)
	}
	_, _ = os.Remove(filepath.Join(dir, group)), os.Remove(dir) // only removed if empty
	return err
}

// Silence is a logger that discards everything: the library's own writes to standard error.
type Silence struct{}

// Debug does nothing, like the others.
func (Silence) Debug(string, map[string]any) {}

// Info does nothing.
func (Silence) Info(string, map[string]any) {}

// Warning does nothing.
func (Silence) Warning(string, map[string]any) {}

// Error does nothing.
func (Silence) Error(string, map[string]any) {}

// Fatal does nothing.
func (Silence) Fatal(string, map[string]any) {}

// Level does nothing.
func (Silence) Level(string) {}

// OutputPath does nothing.
func (Silence) OutputPath(string) error { return nil }
