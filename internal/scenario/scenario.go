// Package scenario reads scenario files: YAML with brokers, groups of producers and consumers, and steps of groups that
// run together. [Parse] returns a tree with the position of each part, or all mistakes of the file at once, each with
// its line and a suggestion.
//
// The package knows the shape of a file, not the settings: the caller gives a table of them. Values are texts as
// written:
// 0.10 stays "0.10". The caller judges combinations of settings and reports mistakes with [File.Mistake].
package scenario

import (
	"slices"
)

// Version is the version of the format, the only one so far.
const Version = "1"

// MaxSize limits a file, in bytes.
const MaxSize = 1 << 20

// Implicit names.
const (
	DefaultBroker = "broker" // of the settings under `broker:`
	DefaultStep   = "load"   // of the step of a file without steps
)

// The roles of groups.
const (
	Producer = "producer"
	Consumer = "consumer"
)

// The values of `choose`.
const (
	ChooseWeight = "weight" // each message has its share
	ChooseTurn   = "turn"   // one after the other
)

// MaxMessages limits the messages of a group.
const MaxMessages = 1024

// The ends of a step that Step.Until names.
const (
	UntilDrained = "drained" // the destinations are empty
	UntilCount   = "count"   // the message count is reached
	UntilIdle    = "idle"    // nothing was received for the time of its setting idle-time
)

// Pos is a place in a file. Line and Column count from 1; Column counts characters.
type Pos struct {
	File   string
	Line   int
	Column int
}

// File is a scenario. Names of brokers, groups and steps are unique and consist of a-z, 0-9, "-", "_" and "."; every
// reference names an existing one. A File does not change after [Parse]; it is safe for concurrent use.
type File struct {
	Path              string
	Name, Description string
	Vars              []Var
	Labels            []Label
	Settings          []Entry // of the run
	Defaults          []Entry // for each broker, group and step that has the setting and does not give it
	Brokers           []Broker
	Groups            []Group
	Steps             []Step // at least one
	Before, After     []Command
	Thresholds        []Threshold // over the whole run or a step
	Matrix            *Matrix     `json:",omitempty"` // nil for none
	Search            *Search     `json:",omitempty"` // nil for none

	source *source
}

// Var is a variable. Value comes from --set, else it is the default. Secret tells that it is part of a secret setting.
type Var struct {
	Name, Default, Value, Description string
	Secret                            bool
	Pos                               Pos
}

// Label is free text about the run.
type Label struct {
	Key, Text string
	Pos       Pos
}

// Entry is a setting that was given. Key is the setting's name, also if an alias was written. Texts has one element,
// or, of a list, any number; of a setting with pairs each is KEY=VALUE. Pos is that of the value.
type Entry struct {
	Key   string
	Texts []string
	Pos   Pos
}

// Broker is a broker with its settings.
type Broker struct {
	Name    string
	Entries []Entry
	Pos     Pos
}

// Group is a group of producers or consumers. Destinations is empty if the file gives none. Messages are the kinds of
// messages of a producer group, none if its Entries say all; Turn tells that they are sent in turn, not by weight.
type Group struct {
	Name, Role, Broker string
	Destinations       []string
	Entries            []Entry
	Messages           []Message `json:",omitempty"`
	Turn               bool      `json:",omitempty"`
	Pos                Pos
}

// Message is a kind of messages. Entries override those of its group.
type Message struct {
	Entries []Entry
	Pos     Pos
}

// Use is a group in a step. Entries override those of the group for this step, and so do Messages, with Turn, if there
// are any.
type Use struct {
	Group    string
	Entries  []Entry
	Messages []Message `json:",omitempty"`
	Turn     bool      `json:",omitempty"`
	Pos      Pos
}

// Step is groups that run together. Until is empty, [UntilDrained], [UntilCount] or [UntilIdle].
type Step struct {
	Name          string
	Uses          []Use
	Entries       []Entry
	Until         string
	Before, After []Command
	Thresholds    []Threshold
	Pos           Pos
}

// Command is given to sh -c.
type Command struct {
	Text string
	Pos  Pos
}

// Threshold is a demand METRIC OPERATOR VALUE on a step, or, if Step is empty, on the whole run. Abort ends the run
// early.
type Threshold struct {
	Step, Text string
	Abort      bool
	Pos        Pos
}

// Mistake makes a mistake that the caller found at a position of the file, such as settings that contradict each other.
func (f *File) Mistake(pos Pos, text, hint string) Mistake {
	return f.source.finish(Mistake{Pos: pos, Text: text, Hint: hint})
}

// Secrets returns the texts of the file that must not be printed: passwords, also of URLs.
func (f *File) Secrets() []string { return slices.Clone(f.source.found) }

// Parse reads a scenario file. Path is for messages only. Table has the settings. Set has the values of variables that
// override those of the file. The error is of type [Mistakes], sorted by position.
func Parse(path string, text []byte, table []Key, set map[string]string) (*File, error) {
	keys := newTable(table)
	src, mistakes := newSource(path, text, keys)
	if len(mistakes) > 0 {
		return nil, src.all(mistakes)
	}
	root, mistakes := readTree(src)
	if root == nil {
		return nil, src.all(mistakes)
	}
	d := &decoder{file: &File{Path: path, source: src}, keys: keys, mistakes: mistakes}
	d.variables(root, set)
	if mistakes := src.learn(root, d.vars); len(mistakes) > 0 {
		return nil, src.all(mistakes)
	}
	d.decode(root)
	for _, v := range d.order {
		d.file.Vars = append(d.file.Vars, Var{v.name, v.fallback, v.value, v.description, v.secret, v.pos})
	}
	if len(d.mistakes) > 0 {
		return nil, src.all(d.mistakes)
	}
	return d.file, nil
}

// find returns the index of the element of a name, -1 if there is none.
func find[T any](list []T, name string, nameOf func(*T) string) int {
	return slices.IndexFunc(list, func(t T) bool { return nameOf(&t) == name })
}

func brokerName(b *Broker) string { return b.Name }
func groupName(g *Group) string   { return g.Name }
func stepName(s *Step) string     { return s.Name }

func names[T any](list []T, nameOf func(*T) string) []string {
	var texts []string
	for i := range list {
		texts = append(texts, nameOf(&list[i]))
	}
	return texts
}
