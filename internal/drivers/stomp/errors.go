package stomp

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// maxWords bounds the quotation of a broker's words, in bytes.
	maxWords = 400
	// maxWordsRead is how many bytes of the body of an ERROR are looked at for that.
	maxWordsRead = 16 << 10
	// lookAtBroker is the hint where nothing better is known.
	lookAtBroker = "look into the broker's log; see also whether a proxy on the way changes its messages"
)

// clip shortens a text from a broker that should have been short.
func clip(text []byte) string { return transport.Clip(string(text), 40) }

// wordsOf returns the text of an ERROR frame: its message, and its body as far as it adds to that. Of a Java stack
// trace in the body only the first line counts.
func wordsOf(f *wire.Received) string {
	message := strings.TrimSpace(unescape(string(f.Get("message"))))
	message, _, _ = strings.Cut(message, " CoreMessage[") // Artemis shows all of it
	body := strings.TrimSpace(string(f.Body[:min(len(f.Body), maxWordsRead)]))
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

// meaning is a kind of failure as brokers word it.
type meaning struct {
	class driver.Class
	words []string // any of them, in lower case
	hint  string
}

// meanings are looked through in order. STOMP has no error codes: failures are known by the brokers' words.
func meanings() []meaning {
	return []meaning{
		{
			driver.ClassConnectionLost,
			[]string{"connection is not valid"},
			"see the first error: Artemis takes no more after one",
		},
		{driver.ClassOther, []string{artemisUnsaid}, "Artemis does not say why over STOMP: look for a full address " +
			"(max-size-bytes, max-size-messages, address-full-policy), or a permission, in its console and log"},
		{driver.ClassTooLarge, []string{
			"too large", "too big", "maximum frame size", "max frame size", "larger than", "maxdatalength", "max_data_length",
		}, "send smaller messages or raise the broker's limit"},
		{driver.ClassFull, []string{
			"is full", "amq229102", "amq229119", "resourceallocation", "limit reached", "usage manager", "quota", "disk full",
			"disk capacity", "no space left",
		}, "look for a full address or a quota on the broker (Artemis: max-size-bytes, address-full-policy)"},
		{driver.ClassAuth, []string{
			"amq229031", "amq229032", "amq229213", "security", "not authorized", "not authorised", "unauthorized",
			"access denied",
			"access refused", "access_refused", "password is invalid", "authentication", "bad connect", "not_allowed",
		}, "check --user and --password and the user's permissions on the broker"},
		{driver.ClassNotFound, []string{
			"does not exist", "not_found", "not found", "no such", "unknown destination",
		}, ""}, // see missing
		{
			driver.ClassUnsupported,
			[]string{"selector", "filter expression", "invalid filter"},
			"check the syntax of --selector",
		},
		{driver.ClassUnsupported, []string{
			"not supported", "unsupported", "not implemented", "routing type", "supported protocol versions", "version mismatch",
		}, ""},
		{driver.ClassClosedByBroker, []string{
			"disconnected by server", "server cancelled", "subscription cancelled", "connection_forced", "shutdown",
		}, "it was closed on the broker, or its queue was removed"},
		{driver.ClassProtocol, []string{
			"invalid", "malformed", "parse", "unknown command", "unknown stomp", "frame", "header",
		}, ""},
	}
}

// artemisUnsaid is the code, in lower case, with which Artemis says that it could not take a message, but not why.
const artemisUnsaid = "amq339011"

// errUnsaid is in the error of a frame that does not say why.
var errUnsaid = errors.New("it does not say why")

// full is err, which [errUnsaid] is in, for a destination that took messages before: neither its kind nor a
// permission is the reason then, but a limit.
func full(err *driver.Error) *driver.Error {
	return driver.Errorf(driver.ClassFull, "",
		"Artemis does not say so over STOMP, but it took messages here before: look for a full address "+
			"(max-size-bytes, max-size-messages, address-full-policy) or disk in its console and log", "%w", err.Err)
}

// missing returns the hint for a destination that is not there.
func (d dialect) missing() string {
	switch d {
	case artemis:
		return "create it on the broker, or let the broker create it: auto-create-addresses and auto-create-queues"
	case rabbitmq:
		return "declare it on the broker first: RabbitMQ makes no queue by its use that is named by /amq/queue, and no " +
			"exchange"
	default:
		return "create it on the broker, or let the broker create it"
	}
}

// errorFrame returns the error that an ERROR frame reports.
func errorFrame(d dialect, f *wire.Received) *driver.Error {
	words := wordsOf(f)
	lower := strings.ToLower(words)
	e := &driver.Error{
		Class: driver.ClassOther, Hint: "look into the broker's log",
		Err: fmt.Errorf("%s: %s", d.says(), words),
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
					e.Hint = "does the broker have the virtual host, and may the user use it? -o virtual-host=NAME names another one"
				case m.class == driver.ClassNotFound:
					e.Hint = d.missing()
				}
				return e
			}
		}
	}
	return e
}

func (d dialect) says() string {
	if d == "" || d == generic {
		return "the broker says"
	}
	return d.title() + " says"
}

// errCannotCarry is for a header that this version of the protocol has no way to write.
func errCannotCarry(v wire.Version, key, value string) error {
	return driver.Errorf(driver.ClassUnsupported, "", "leave out special characters and blanks around it",
		"STOMP %s cannot carry %q as %s", v, value, key)
}

func silentError(d time.Duration) error {
	return driver.Errorf(driver.ClassConnectionLost, "", "is the broker paused or the network down? See -o heart-beat",
		"nothing was heard from the broker for %s", d)
}
