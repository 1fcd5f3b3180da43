package protocol

import (
	"errors"
	"fmt"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	// maxWords bounds a quotation of the broker's text, in bytes.
	maxWords = 400
	// maxRead is the largest part of the body of an ERROR frame that is used, in bytes.
	maxRead = 16 << 10
)

// STOMPServer reads the server header of a CONNECTED frame: name ["/" version] *(comment), where the name may have
// spaces and the version ends at the first of them ("CONNECTED Frame"). The version is empty without one.
func STOMPServer(header string) (name, version string) {
	name, version, _ = strings.Cut(header, "/")
	version, _, _ = strings.Cut(strings.ReplaceAll(version, "\t", " "), " ")
	return strings.TrimSpace(name), version
}

// STOMPTextWithNUL is the error about a message of text that cannot be sent, of the operation op.
func STOMPTextWithNUL(op string) error {
	return driver.Errorf(driver.ClassUnsupported, op, HintBytes,
		"STOMP ends a text at its first NUL, and the body has one")
}

// wordsOf returns the text of an ERROR frame: its message, and its body as far as it adds to the message. Of a Java
// stack trace in the body, only the first line counts.
func wordsOf(header string, text []byte) string {
	message, _, _ := strings.Cut(strings.TrimSpace(header), " CoreMessage[") // Artemis appends the whole message
	body := strings.TrimSpace(string(text[:min(len(text), maxRead)]))
	if at := strings.Index(body, "\n\tat "); at >= 0 {
		body = body[:at]
	}
	body = strings.Join(strings.Fields(body), " ")
	switch {
	case message == "" && body == "":
		return "no reason given"
	case message == "" || strings.Contains(body, message):
		message = body
	case body != "" && !strings.Contains(message, body):
		message += ": " + body
	}
	return transport.Clip(message, maxWords)
}

// meaning is a kind of failure with the brokers' texts for it.
type meaning struct {
	class driver.Class
	words []string // any of these texts, in lower case
	hint  string
}

// meanings are tried in order. STOMP has no error codes: the brokers' texts identify failures.
func meanings() []meaning {
	row := func(class driver.Class, hint string, words ...string) meaning { return meaning{class, words, hint} }
	return []meaning{
		row(driver.ClassConnectionLost, "see the first error: Artemis takes no more after one",
			"connection is not valid"),
		row(driver.ClassConnectionLost, "give -o heart-beat=15s, below the broker's connection TTL",
			"connection ttl", "did not receive data", "channel was inactive"),
		row(driver.ClassOther, "look for a full address or a permission in its log", artemisUnsaid),
		row(driver.ClassTooLarge, HintSmaller, "too large", "too big", "maximum frame size", "max frame size",
			"larger than", "maxdatalength", "max_data_length"),
		row(driver.ClassFull, transport.HintFull, "is full", "amq229102", "amq229119", "resourceallocation",
			"limit reached", "usage manager", "quota", "disk full", "disk capacity", "no space left"),
		row(driver.ClassAuth, "check --user, --password and the user's permissions", "amq229031", "amq229032",
			"amq229213", "security", "not authorized", "not authorised", "unauthorized", "access denied",
			"access refused", "access_refused", "password is invalid", "authentication", "bad connect", "not_allowed"),
		row(driver.ClassNotFound, "", // see STOMPError
			"does not exist", "not_found", "not found", "no such", "unknown destination"),
		row(driver.ClassUnsupported, HintSelector, "selector", "filter expression", "invalid filter"),
		row(driver.ClassUnsupported, "", "not supported", "unsupported", "not implemented", "routing type",
			"supported protocol versions", "version mismatch"),
		row(driver.ClassClosedByBroker, "it was closed on the broker, or its queue was removed",
			"disconnected by server", "server cancelled", "subscription cancelled", "connection_forced", "shutdown"),
		row(driver.ClassProtocol, "",
			"invalid", "malformed", "parse", "unknown command", "unknown stomp", "frame", "header"),
	}
}

// artemisUnsaid is the code, in lower case, with which Artemis reports that it could not take a message, without a
// reason.
const artemisUnsaid = "amq339011"

// errUnsaid is in the error of a frame without a reason.
var errUnsaid = errors.New("it does not say why")

// STOMPError returns the error that an ERROR frame of a broker reports by its message header and its body.
func STOMPError(broker, header string, body []byte) *driver.Error {
	words := wordsOf(header, body)
	lower := strings.ToLower(words)
	e := &driver.Error{
		Class: driver.ClassOther, Hint: transport.HintLog,
		Err: fmt.Errorf("%s says: %s", Title(broker), words),
	}
	for _, m := range meanings() {
		for _, w := range m.words {
			if strings.Contains(lower, w) {
				if e.Class = m.class; m.hint != "" {
					e.Hint = m.hint
				}
				switch {
				case w == artemisUnsaid:
					e.Err = fmt.Errorf("%w; %w", e.Err, errUnsaid)
				case strings.Contains(lower, "virtual host"):
					e.Hint = "-o virtual-host=NAME names another one"
				case m.class == driver.ClassNotFound:
					e.Hint = Missing(broker)
				}
				return e
			}
		}
	}
	return e
}

// STOMPRefused returns the outcome of messages that the broker has answered with an ERROR frame; err is its
// [STOMPError]. taken: the broker accepted messages to this destination before.
func STOMPRefused(op string, err error, taken bool) driver.Outcome {
	var known *driver.Error
	if errors.Is(err, errUnsaid) && errors.As(err, &known) && taken { // the reason is a limit, no kind or permission
		err = driver.Errorf(driver.ClassFull, "", transport.HintFull, "%w", known.Err)
	}
	e := transport.Explain(op, err)
	o := driver.Outcome{State: driver.Failed, Class: driver.ClassOf(e), Err: e}
	switch o.Class {
	case driver.ClassAuth, driver.ClassFull, driver.ClassTooLarge, driver.ClassNotFound:
		o.State = driver.Rejected
	}
	return o
}
