package stomp

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
	own := strings.HasPrefix(dest.Name, "/")
	switch d {
	case artemis:
		if producer && strings.ContainsAny(dest.Name, "*#") {
			return d.unsupported(oneName, "* and # in a name stand for many destinations")
		}
	case activemq:
		switch {
		case strings.Contains(dest.Name, "?"):
			return d.unsupported("choose a name without ?", "it takes the text after a ? in a name for parameters")
		case dest.Name != strings.TrimSpace(dest.Name):
			return d.unsupported("choose a name without blanks around it", "it leaves out blanks around a name")
		case producer && strings.Contains(dest.Name, ","):
			return d.unsupported(oneName, "a comma separates several destinations")
		case producer && hasWord(dest.Name, "*", ">"):
			return d.unsupported(oneName, "the words * and > of a name stand for many destinations")
		}
	case rabbitmq:
		switch {
		case !own && strings.Contains(dest.Name, "%2F"):
			return d.unsupported("choose a name without %2F", "it takes %2F for a slash")
		case !own && notASCII(dest.Name):
			return d.unsupported("choose a name of ASCII characters", "it cannot read others in a name")
		case producer && dest.Kind == driver.Topic && hasWord(dest.Name, "*", "#"):
			return d.unsupported(oneName, "the words * and # of a topic stand for many")
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
