package library

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Unsupported returns the error about a setting that a library, or the driver on it, does not support.
func Unsupported(op, hint, text string) error {
	return driver.Errorf(driver.ClassUnsupported, op, hint, "%s", text)
}

// TooLarge returns the error about a received body of size bytes that is larger than limit.
func TooLarge(op string, size, limit int) error {
	return transport.TooLarge(op, "a body of", size, limit)
}

// Rules are the rules of a driver beside its capabilities, for libraries and native drivers.
type Rules struct {
	Signs string // in names of destinations, beside letters and digits
	Most  int    // the largest length of a name; 0 for any
	Only  bool   // there is no other, native driver of the protocol
}

// PlainNames are the rules of libraries that pass names on, to brokers that take some signs for something else.
func PlainNames() Rules { return Rules{Signs: "._-:"} }

// Legal reports whether a destination can have that name.
func (r Rules) Legal(name string) bool {
	odd := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(r.Signs, c)
	}
	return name != "" && (r.Most == 0 || len(name) <= r.Most) && !strings.ContainsFunc(name, odd)
}

// Names describes the legal names.
func (r Rules) Names() string {
	text := "letters, digits and " + strings.Join(strings.Split(r.Signs, ""), " ")
	if r.Most > 0 {
		text += fmt.Sprintf(", at most %d of them", r.Most)
	}
	return text
}

// wish is a feature that a producer or consumer asks for, and whether it is supported. The native driver may have it if
// native is true.
type wish struct {
	asked, can bool
	hint       string
	native     bool
	text       string
}

// refuse returns an error for the first unsupported wish. The client library is the cause of only some refusals: the
// native driver may lack the feature, too.
func (r Rules) refuse(op string, f *driver.Factory, dest driver.Destination, wishes []wish) error {
	names := r.Names()
	wishes = append(wishes,
		wish{true, f.Capabilities.Of(dest.Kind).Exists, "use another destination", true, dest.Kind.String() + "s"},
		wish{!r.Legal(dest.Name), false, "use a name of " + names, true, "names with other signs than " + names})
	for _, w := range wishes {
		if !w.asked || w.can {
			continue
		}
		hint := w.hint
		if w.native && !r.Only {
			hint += ", or use --client native"
		}
		title := f.Title
		if f.Client != driver.Native {
			title += " over " + f.Client
		}
		return driver.Errorf(driver.ClassUnsupported, op, hint, "%s: not supported: %s", title, w.text)
	}
	return nil
}

// CheckProducer refuses features that the capabilities of f exclude, and names that the rules exclude.
func (r Rules) CheckProducer(op string, f *driver.Factory, spec *driver.ProducerSpec) error {
	can := f.Capabilities.Of(spec.Destination.Kind)
	wishes := []wish{
		{spec.CommitInterval > 0, can.Transactions, "leave out --commit-interval", true, "transactions"},
		{spec.Persistent, can.Persistent, "leave out --persistent", false, "a choice of the delivery mode"},
		{spec.TTL > 0, can.TTL, "leave out --ttl", false, "a time to live"},
		{spec.Delay > 0, can.Delay, protocol.HintNoDelay, true, "delayed messages"},
	}
	for i := range spec.Variants {
		v := &spec.Variants[i]
		wishes = append(wishes,
			wish{v.Text, can.Text, protocol.HintBytes, false, "messages of text"},
			wish{v.Priority >= 0, can.Priority, "leave out --priority", false, "priorities"},
			wish{v.Group != "", can.Group, "leave out --group", false, "groups"},
			wish{len(v.Properties) > 0, can.Properties, "leave out --property", false, "properties"})
	}
	return r.refuse(op, f, spec.Destination, wishes)
}

// CheckConsumer refuses features that the capabilities of f exclude, and names that the rules exclude.
func (r Rules) CheckConsumer(op string, f *driver.Factory, spec *driver.ConsumerSpec) error {
	can, kinds := f.Capabilities.Of(spec.Destination.Kind), spec.Destination.Kind.String()+"s"
	return r.refuse(op, f, spec.Destination, []wish{
		{spec.TransactionSize > 0, can.TransactedReceive, "leave out --tx", true, "receiving in transactions"},
		{spec.Durable, can.DurableSubscription, "leave out --durable", false, "durable subscriptions of " + kinds},
		{spec.Shared, can.SharedSubscription, "leave out --shared", false, "shared subscriptions of " + kinds},
		{
			spec.Durable && !spec.Shared, spec.Connection.ClientID != "", "give --clientID", false,
			"durable subscriptions without a client ID",
		},
		{spec.Selector != "", can.Selector, "leave out --selector", false, "selectors"},
		{spec.Credit > 0, can.Credit, "leave out --credit", false, "a choice of the receive window"},
		{spec.Failing == driver.Reject, can.Reject, "leave out --consumer-fail", true, "rejecting messages"},
		{spec.Failing == driver.Release, can.Release, "leave out --consumer-fail", true, "giving messages back"},
		{spec.Concurrency > 1, can.Concurrency, "leave out --concurrency", false, "several deliveries at once"},
	})
}

// Properties returns the application properties common to all messages of a variant: the user's, and the origin.
func Properties(spec *driver.ProducerSpec, v *driver.Variant) map[string]any {
	m := map[string]any{}
	for _, property := range v.Properties {
		m[property.Key] = property.Value
	}
	if spec.Origin != (driver.ID{}) {
		m[driver.IDProperty] = string(spec.Origin.Append(nil))
	}
	return m
}

// ReadText sets d's time and ID from the texts of the properties [driver.TimeProperty] and [driver.IDProperty]; a text
// is empty if the message lacks the property.
func ReadText(d *driver.Delivery, sent, id string) {
	var err error
	d.Time, err = strconv.ParseInt(sent, 10, 64)
	d.HasTime = err == nil
	if id != "" {
		d.ID = ID(id)
	}
}

// ID returns the message ID in value, which is the value of the property [driver.IDProperty]: none for nil, a garbled
// one if value is not the text of an ID.
func ID(value any) driver.ID {
	switch text := value.(type) {
	case nil:
		return driver.ID{}
	case string:
		return driver.ParseID(text)
	default:
		return driver.GarbledID()
	}
}
