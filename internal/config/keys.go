package config

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Scope is a set of places where a setting may stand.
type Scope uint8

// The places.
const (
	InRun           Scope = 1 << iota // at the top of the file
	InBroker                          // a broker
	InProducerGroup                   // a group with the role producer
	InConsumerGroup                   // a group with the role consumer
	InStep                            // a step
	InMessage                         // one of the messages of a producer group
	InConnections                     // a group with the role connections
)

const (
	inClient   = InProducerGroup | InConsumerGroup
	inGroup    = inClient | InConnections
	inDefaults = InBroker | inGroup | InStep
)

// String names the places: "a producer group or a step".
func (s Scope) String() string {
	var places []string
	for i, text := range []string{
		"the run", "a broker", "a producer group", "a consumer group", "a step", "a message", "a connections group",
	} {
		if s&(1<<i) != 0 {
			places = append(places, text)
		}
	}
	if last := len(places) - 1; last > 1 {
		places = []string{strings.Join(places[:last], ", "), places[last]}
	}
	return strings.Join(places, " or ")
}

// keys finds settings by the keys of scenario files.
type keys map[string]*Setting

// newKeys has all keys of all settings: also the plural of a list.
func newKeys() keys {
	k := keys{}
	list := settings()
	for i := range list {
		s := &list[i]
		if s.Places == 0 {
			continue
		}
		for _, name := range append([]string{s.Name}, s.Aliases...) {
			k[name] = s
		}
		if stem, ok := strings.CutSuffix(s.Name, "y"); ok && s.List {
			k[stem+"ies"] = s
		} else if s.List {
			k[s.Name+"s"] = s
		}
	}
	return k
}

// find returns the setting of a name in any of the places, or nil.
func (k keys) find(name string, places Scope) *Setting {
	if s := k[name]; s != nil && s.Places&places != 0 {
		return s
	}
	return nil
}

// names returns the names of the settings of the places, sorted.
func (k keys) names(places Scope) (list []string) {
	for name := range k {
		if k.find(name, places) != nil {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// nearest returns the known name that was probably meant.
func (k keys) nearest(name string, places Scope, shape []string) string {
	name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
	return nearest.Nearest(name, append(slices.Clone(shape), k.names(places)...))
}

// isSecret reports whether values of a key must not be printed, also of one that is mistyped or a variable.
func (k keys) isSecret(name string) bool {
	if s := k[name]; s != nil {
		return s.Is("secret")
	}
	return SecretName(name)
}

// SecretName reports whether a name that is no setting looks like a secret's name.
func SecretName(name string) bool {
	name = strings.ToLower(name)
	if strings.HasSuffix(name, "file") {
		return false
	}
	parts := []string{"pass", "pwd", "secret", "token", "credential", "apikey", "api-key", "api_key"}
	return nearest.Nearest(name, []string{"password"}) != "" ||
		slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
}

// missing is the hint for an unknown name: the nearest known name, or a list of them.
func missing(name string, known []string) string {
	others := "known are " + words.First(known, 10, ", ")
	if len(known) == 0 {
		others = "there is none"
	}
	return nearest.Hint(name, known, "%s", others)
}

// Suggest returns the offers of completion for a value. Own is the protocol of the command, or all protocols.
func (s *Setting) Suggest(own, all []driver.Factory) (list []string) {
	switch s.Name {
	case "url":
		return schemes(own...)
	case "consumer-url":
		list = append(schemes(own...), schemes(all...)...)
		slices.Sort(list)
		return slices.Compact(list)
	case "protocol":
		return Names(own)
	case "consumer-protocol":
		return Names(all)
	case "client":
		return []string{driver.Native, LibraryClient}
	case "threshold", "find-max":
		for _, m := range threshold.Metrics() {
			list = append(list, m.Name+"\t"+m.Help)
		}
		return list
	default:
		return s.Words()
	}
}
