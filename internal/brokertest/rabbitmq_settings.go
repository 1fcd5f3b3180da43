//go:build unix

package brokertest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// WithRabbitMQSetting sets a key of rabbitmq.conf. RabbitMQ does not start with one that it does not know; the error
// has its words. Keys of listeners, of the default user and of the console's log are the harness's own.
func WithRabbitMQSetting(key, value string) RabbitMQOption {
	return func(c *rabbitmqConfig) { c.set[key] = value }
}

func (c *rabbitmqConfig) validate() error {
	var errs []error
	own := regexp.MustCompile(`^((stomp\.)?listeners\.|default_(user|pass)$|log\.console)`)
	name := regexp.MustCompile(`^[\w$%&+*/-]+(\.[\w$%&+*/-]+)*$`)
	value := regexp.MustCompile(`^[^\s#'[:cntrl:]]([^#[:cntrl:]]*[^\s#[:cntrl:]])?$`)
	for _, key := range slices.Sorted(maps.Keys(c.set)) {
		switch {
		case !name.MatchString(key):
			errs = append(errs, fmt.Errorf("%q cannot be a key of rabbitmq.conf", key))
		case own.MatchString(key):
			errs = append(errs, fmt.Errorf("setting %s is not for setting: the broker is found and awaited by it", key))
		case !value.MatchString(c.set[key]):
			errs = append(errs, fmt.Errorf("setting %s: %q cannot be written in rabbitmq.conf: it is empty, begins or ends "+
				"with "+
				"a blank, begins with ', or has # or a control character", key, c.set[key]))
		}
	}
	return errors.Join(errs...)
}

// confText is rabbitmq.conf of our keys and the caller's, which replace ours: also one of a group of which only one
// counts, such as vm_memory_high_watermark.absolute and .relative.
func (c *rabbitmqConfig) confText(conf map[string]string) string {
	for key := range c.set {
		if group, ok := strings.CutSuffix(key, ".relative"); ok {
			delete(conf, group+".absolute")
		}
	}
	maps.Copy(conf, c.set)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(conf)) {
		fmt.Fprintf(&text, "%s = %s\n", key, conf[key])
	}
	return text.String()
}

// explain adds to a failed start the broker's messages about its configuration, which it does long before the end of
// its log.
func (r *RabbitMQ) explain(err error) error {
	text, readErr := os.ReadFile(r.LogFile())
	if readErr != nil {
		return err // the start failed before there was a log
	}
	var said []string
	before, _, _ := strings.Cut(string(text), "BOOT FAILED")
	for line := range strings.Lines(before) {
		_, message, _ := strings.Cut(line, " [error] <")
		_, message, _ = strings.Cut(message, "> ") // the Erlang process
		if message = strings.TrimRight(message, " \n"); message != "" && len(said) < 10 {
			said = append(said, message)
		}
	}
	if len(said) == 0 {
		return err
	}
	return fmt.Errorf("RabbitMQ says: %s\n%w", strings.Join(said, "\n"), err)
}
