package scenario

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
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
)

const (
	inGroup    = InProducerGroup | InConsumerGroup
	inDefaults = InBroker | inGroup | InStep
)

func scopes() []Scope {
	return []Scope{InRun, InBroker, InProducerGroup, InConsumerGroup, InStep, InMessage}
}

// String names the places: "a producer group or a step".
func (s Scope) String() string {
	var places []string
	for i, text := range []string{"the run", "a broker", "a producer group", "a consumer group", "a step", "a message"} {
		if s&scopes()[i] != 0 {
			places = append(places, text)
		}
	}
	return strings.Join(places, " or ")
}

// Key is a setting. Of a Key whose name is destination, threshold or label only Check and Help count: they are about
// the file's keys `destination`, `thresholds` and `labels`.
type Key struct {
	// Name is the flag's name without the hyphens. A list has its plural as a further alias: options for option.
	Name    string
	Aliases []string
	Scopes  Scope
	// List tells that a YAML list of values is taken as well as one value.
	List bool
	// Pairs tells that a list is of KEY=VALUE, and may be written as a YAML map.
	Pairs bool
	// Switch is for true and false.
	Switch bool
	// Join, if it is not empty, is put between the elements of a YAML list to make them one value.
	Join string
	// Relative tells that the value may hold "N% of STEP.METRIC", which must name an earlier step.
	Relative bool
	// Sweep is for a setting of the sweep itself, which a matrix cannot vary.
	Sweep bool
	// Arg, Default and Help are for the schema.
	Arg, Default, Help string
	// Words are the allowed values, nil for any.
	Words []string
	// Secret values are in no mistake.
	Secret bool
	// Check judges one value, of a joined list the whole. Nil allows any.
	Check func(text string) error
}

// spellings returns all names of a key.
func (k *Key) spellings() []string {
	all := append([]string{k.Name}, k.Aliases...)
	if k.List {
		plural := k.Name + "s"
		if stem, ok := strings.CutSuffix(k.Name, "y"); ok {
			plural = stem + "ies"
		}
		if !slices.Contains(all, plural) {
			all = append(all, plural)
		}
	}
	return all
}

// table finds settings by their names. A name may stand for several settings in different places.
type table struct {
	keys    []Key
	shape   map[string]*Key // about keys of the file's shape, not settings
	byName  map[string][]*Key
	secrets []string        // names of secret settings
	secret  map[string]bool // by names in lower case: found so far, and of settings
}

func newTable(keys []Key) *table {
	t := &table{shape: map[string]*Key{}, byName: map[string][]*Key{}, secret: map[string]bool{}}
	for i := range keys {
		switch k := &keys[i]; k.Name {
		case "destination", "threshold", "label":
			t.shape[k.Name] = k
		default:
			t.keys = append(t.keys, *k)
		}
	}
	for i := range t.keys {
		for _, name := range t.keys[i].spellings() {
			t.byName[name] = append(t.byName[name], &t.keys[i])
			t.secret[strings.ToLower(name)] = t.secret[strings.ToLower(name)] || t.keys[i].Secret
			if t.keys[i].Secret {
				t.secrets = append(t.secrets, name)
			}
		}
	}
	return t
}

// find returns the setting of a name in any of the places, nil if there is none.
func (t *table) find(name string, places Scope) *Key {
	for _, k := range t.byName[name] {
		if k.Scopes&places != 0 {
			return k
		}
	}
	return nil
}

// places returns where a setting of a name may stand, 0 if there is none.
func (t *table) places(name string) (places Scope) {
	for _, k := range t.byName[name] {
		places |= k.Scopes
	}
	return places
}

// names returns the names of the settings of the places, sorted.
func (t *table) names(places Scope) (list []string) {
	for name := range t.byName {
		if t.find(name, places) != nil {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// nearest returns the known name that was probably meant.
func (t *table) nearest(name string, places Scope, shape []string) string {
	name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
	return nearest.Nearest(name, append(slices.Clone(shape), t.names(places)...))
}

// isSecret tells whether values of a key must not be printed: also one that is mistyped.
func (t *table) isSecret(name string) bool {
	name = strings.Trim(strings.ToLower(name), " \t\"'-")
	secret, known := t.secret[name]
	if !known {
		secret = !strings.HasSuffix(name, "file") && (nearest.Nearest(name, t.secrets) != "" || slices.ContainsFunc(
			[]string{"pass", "pwd", "secret", "token", "credential", "apikey", "api-key", "api_key"},
			func(part string) bool { return strings.Contains(name, part) },
		))
		t.secret[name] = secret
	}
	return secret
}
