package protocol

import "strings"

// MessageTypeHint returns the hint for a refusal of a message by the type of its topic (message.type), which the
// proxies of RocketMQ 5 check. It is empty for other refusals.
func MessageTypeHint(words string) string {
	_, types, refused := strings.Cut(words, "the expected type is ")
	wanted, sent, named := strings.Cut(types, ", but actual type is ")
	if !refused || !named {
		return ""
	}
	switch wanted {
	case "FIFO":
		return "the topic takes only messages with a group: add --group"
	case "DELAY":
		return "the topic takes only delayed messages: add -o delay or --delivery-delay, or -o delay-level"
	case "TRANSACTION":
		return "the topic takes only transactional messages: add -o transactional=true"
	case "NORMAL":
		return "the topic takes only plain messages, and these are of type " + sent +
			": leave out --group, the delay, or -o transactional"
	}
	return "use a topic of type " + sent
}
