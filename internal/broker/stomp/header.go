package stomp

// header classifies the headers of SEND.
type header uint8

const (
	property header = iota // any other header: the user's
	// Headers of the message.
	persistent
	priority
	expires
	group
	// Headers of the frame and for the broker, not passed on.
	destination
	receipt
	inTransaction
	contentLength
	scheduledDelay
	framing // headers of other frames
	numHeaders
)

func headerOf[T string | []byte](key T) header {
	switch string(key) { // does not allocate
	case "persistent":
		return persistent
	case "priority":
		return priority
	case "expires":
		return expires
	case "JMSXGroupID":
		return group
	case "destination":
		return destination
	case "receipt":
		return receipt
	case "transaction":
		return inTransaction
	case "content-length":
		return contentLength
	case "AMQ_SCHEDULED_DELAY":
		return scheduledDelay
	case "message-id", "subscription", "ack", "redelivered":
		return framing
	}
	return property
}
