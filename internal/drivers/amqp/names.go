package amqp

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/perfmq/perfmq/pkg/driver"
)

// checkName refuses names that the broker would take for something else than one destination of that name. A name that
// stands for many destinations is only for consumers.
func (d dialect) checkName(dest driver.Destination, producer bool) error {
	const oneName = "choose another name: a message is sent to one destination"
	refuse := d.unsupported
	switch d {
	case artemis:
		switch {
		case strings.Contains(dest.Name, "?"): // sends are accepted, and nothing of them is delivered
			return refuse("choose a name without ?", "it takes the text after a ? in a name for parameters")
		case producer && strings.ContainsAny(dest.Name, "*#"):
			return refuse(oneName, "* and # in a name stand for many destinations")
		}
	case activemq:
		switch {
		case strings.Contains(dest.Name, "?"):
			return refuse("choose a name without ?", "it takes the text after a ? in a name for parameters")
		case dest.Name != strings.TrimSpace(dest.Name):
			return refuse("choose a name without blanks around it", "it leaves out blanks around a name")
		case producer && strings.Contains(dest.Name, ","):
			return refuse(oneName, "a comma separates several destinations")
		case producer && hasWord(dest.Name, "*", ">"):
			return refuse(oneName, "the words * and > of a name stand for many destinations")
		}
	case brokerj:
		switch {
		case dest.Kind == driver.Queue && strings.Contains(dest.Name, "/"):
			return refuse("choose a name without a slash", "a slash separates an exchange from a key")
		case producer && dest.Kind == driver.Topic && hasWord(dest.Name, "*", "#"):
			return refuse(oneName, "the words * and # of a topic stand for many")
		}
	case rabbitmq, rabbitmq3:
		own := strings.HasPrefix(dest.Name, "/")
		switch {
		case d == rabbitmq3 && !own && strings.Contains(dest.Name, "%2F"):
			return refuse("choose a name without %2F", "it takes %2F for a slash")
		case d == rabbitmq3 && !own && notASCII(dest.Name):
			return refuse("choose a name of ASCII characters", "it cannot read others in a name")
		case producer && dest.Kind == driver.Topic && hasWord(dest.Name, "*", "#"):
			return refuse(oneName, "the words * and # of a topic stand for many")
		}
	}
	return nil
}

// hasWord reports whether one of the words between the dots of name is one of those given.
func hasWord(name string, words ...string) bool {
	for word := range strings.SplitSeq(name, ".") {
		if slices.Contains(words, word) {
			return true
		}
	}
	return false
}

func notASCII(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf })
}
