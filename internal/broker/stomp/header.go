package stomp

// header is a header of SEND with a meaning of its own.
type header uint8

const (
	property header = iota // any other: the user's
	// Headers of the message, which are passed on.
	persistent
	priority
	expires
	group
	standard // the store's own fields, see content.Header
	// Headers of the frame, and those that only the broker obeys.
	destination
	destinationType
	receipt
	inTransaction
	contentLength
	scheduledDelay
	scheduledTime
	framing // of frames of other kinds
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
	case "JMSMessageID", "correlation-id", "reply-to", "content-type", "type", "timestamp":
		return standard
	case "destination":
		return destination
	case "destination-type":
		return destinationType
	case "receipt":
		return receipt
	case "transaction":
		return inTransaction
	case "content-length":
		return contentLength
	case "AMQ_SCHEDULED_DELAY":
		return scheduledDelay
	case "AMQ_SCHEDULED_TIME":
		return scheduledTime
	case "message-id", "subscription", "ack", "redelivered":
		return framing
	}
	return property
}
