package library

import (
	"fmt"
	"strconv"
	"strings"

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

// CheckProducer refuses features that the capabilities of f exclude, and names that the rules exclude.
func (r Rules) CheckProducer(op string, f *driver.Factory, spec *driver.ProducerSpec) error {
	return r.refuse(op, f, spec.Destination, spec.Missing(f.Capabilities.Of(spec.Destination.Kind)))
}

// CheckConsumer refuses features that the capabilities of f exclude, and names that the rules exclude.
func (r Rules) CheckConsumer(op string, f *driver.Factory, spec *driver.ConsumerSpec) error {
	return r.refuse(op, f, spec.Destination, spec.Missing(f.Capabilities.Of(spec.Destination.Kind)))
}

// refuse returns an error for the first missing setting, else for a destination that cannot be.
func (r Rules) refuse(op string, f *driver.Factory, dest driver.Destination, missing []string) error {
	native := ""
	if f.Client != driver.Native {
		native = ", or use --client native"
	}
	switch {
	case !f.Capabilities.Of(dest.Kind).Exists:
		return Unsupported(op, "use another destination"+native, f.Spoken()+" has no "+dest.Kind.String()+"s")
	case len(missing) > 0:
		return Unsupported(op, "leave "+missing[0]+" out", missing[0]+": "+f.Spoken()+" does not support that")
	case !r.Legal(dest.Name):
		return Unsupported(op, "use a name of "+r.Names()+native, f.Spoken()+": a name has "+r.Names())
	default:
		return nil
	}
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
