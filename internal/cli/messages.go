package cli

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/pkg/driver"
)

// bodyFiles are the bodies of --body-file by path, read once for all groups and steps.
type bodyFiles map[string][]plan.Variant

// kinds returns the kinds of messages of the settings, with their weights; none after a mistake.
func (r *resolver) kinds() []plan.Variant {
	file := r.BodyFile
	for _, flag := range []string{"message-size", "fill"} {
		if file == "" || !r.Has(flag) {
			continue
		}
		switch over, under := r.Source(flag), r.Source("body-file"); {
		case over == under:
			r.refuse("leave one of them out", "--%s and --body-file are both given", flag)
			return nil
		case over > under:
			file = ""
		}
	}
	var list []plan.Variant
	if file != "" {
		list = r.files(file)
	} else {
		fill := plan.Fill(r.Fill)
		for _, s := range r.MessageSizes {
			list = append(list, plan.Variant{Weight: s.Weight, BodySize: s.Size, Fill: fill, BodySource: fill.Describe(s.Size)})
		}
	}
	for i := range list {
		v := &list[i]
		v.Priority, v.Group, v.Properties = r.Priority, r.MessageGroup, r.Properties
		v.Text = r.MessageType == string(plan.Text)
		switch err := plan.CheckBody(&r.own, v.Size()); {
		case err != nil && file != "":
			r.refuse("put something into it, or remove it", "--body-file %s: %v", v.BodySource, err)
		case err != nil:
			r.errs = append(r.errs, err)
		}
	}
	return list
}

// files reads a body, or the bodies of a folder.
func (r *resolver) files(path string) (list []plan.Variant) {
	if known := r.bodies[path]; known != nil {
		return slices.Clone(known)
	}
	paths := []string{path}
	if inputfile.IsFolder(path) {
		var err error
		if paths, err = inputfile.Folder(path, driver.MaxVariants); err != nil {
			r.refuseFile("--body-file", err)
			return nil
		}
	}
	total := 0
	for _, file := range paths {
		body, err := r.body(file)
		if err != nil {
			r.refuseFile("--body-file", err)
			return nil
		}
		if total += len(body); total > plan.MaxMessageSize {
			r.refuse("send fewer or smaller ones", "--body-file %s: its files have more than %d bytes in all", path,
				plan.MaxMessageSize)
			return nil
		}
		list = append(list, plan.Variant{
			Weight: 1, Variant: driver.Variant{Body: body}, BodySource: fmt.Sprintf("%s, %d bytes", file, len(body)),
		})
	}
	if r.bodies != nil {
		r.bodies[path] = slices.Clone(list)
	}
	return list
}

// body reads the body of a message from a file, or from a file inside the program if the name begins with @.
func (r *resolver) body(name string) ([]byte, error) {
	if !scenario.IsShipped(name) || r.shipped == nil {
		return inputfile.Read(name, plan.MaxMessageSize)
	}
	body, err := fs.ReadFile(r.shipped, strings.TrimPrefix(name, "@"))
	if err != nil {
		return nil, &inputfile.Error{
			Path: name, Reason: "there is no such file inside the program", Hint: "write ./" + name + " for your own file",
		}
	}
	return body, nil
}

// messages returns the kinds of messages of a group of the file, or of its use in a step. A message inherits the
// settings that it does not set from lists, the group's entries.
func (b *builder) messages(
	of *scenario.Group, messages []scenario.Message, turn bool, f *driver.Factory, lists [][]scenario.Entry,
) (all []plan.Variant) {
	weights := make([]int, 0, len(messages))
	kinds := make([][]plan.Variant, 0, len(messages))
	for i := range messages {
		m := &messages[i]
		if !b.agree(m) {
			continue
		}
		own := slices.Clone(lists)
		for i := range own {
			own[i] = slices.DeleteFunc(slices.Clone(own[i]), func(e scenario.Entry) bool { return replaces(m, e.Key) })
		}
		s := b.settings(plan.Producer, f, scenario.InMessage, "group "+of.Name, append(own, m.Entries)...)
		if _, file := entry(m.Entries, "body-file"); file && s.Source("fill") == setting.File {
			s.Forget("fill") // the group's value is for its other messages
		}
		r := b.resolver(s, plan.Producer, f)
		list := r.kinds()
		b.badGroup(of, m.Pos, r.errs)
		weight := 1
		if text, ok := entry(m.Entries, setting.KeyWeight); ok {
			weight, _ = setting.Weight(text) // already checked
		}
		weights, kinds = append(weights, weight), append(kinds, list)
	}
	if turn {
		for _, list := range kinds {
			for i := range list {
				list[i].Weight = 1
			}
		}
		return slices.Concat(kinds...)
	}
	if err := weigh(weights, kinds); err != nil {
		b.bad(messages[0].Pos, "give rounder weights", "group %s: %v", of.Name, err)
	}
	return slices.Concat(kinds...)
}

// replaces reports whether the body of a message replaces the one that a setting of its group names.
func replaces(m *scenario.Message, key string) bool {
	_, sized := entry(m.Entries, "message-size")
	_, file := entry(m.Entries, "body-file")
	return file && key == "message-size" || sized && key == "body-file"
}

// agree reports settings of a message that contradict each other.
func (b *builder) agree(m *scenario.Message) bool {
	first := ""
	for _, e := range m.Entries {
		if e.Key != "message-size" && e.Key != "fill" && e.Key != "body-file" {
			continue
		}
		if first != "" && (e.Key == "body-file") != (first == "body-file") {
			b.bad(e.Pos, "leave one of them out, or make two messages of them", "%s and %s are both given", first, e.Key)
			return false
		}
		first = e.Key
	}
	return true
}

// weigh multiplies weights of messages with those of the kinds within each message: the kinds of a message share its
// weight.
func weigh(weights []int, kinds [][]plan.Variant) error {
	sums, multiple := make([]int, len(kinds)), 1
	for i, list := range kinds {
		divisor := 0
		for j := range list {
			sums[i] += list[j].Weight
			divisor = gcd(divisor, list[j].Weight)
		}
		for j := range list {
			list[j].Weight /= divisor
		}
		sums[i] /= max(divisor, 1)
		if sums[i] > 0 {
			multiple = multiple / gcd(multiple, sums[i]) * sums[i]
		}
		if multiple > load.MaxCycle {
			return fmt.Errorf("the sizes and files of its messages cannot share their weights: the order would begin anew "+
				"after more than %d messages only",
				load.MaxCycle)
		}
	}
	divisor := 0
	for i, list := range kinds {
		for j := range list {
			list[j].Weight *= weights[i] * (multiple / sums[i]) // below 1e18
			divisor = gcd(divisor, list[j].Weight)
		}
	}
	for _, list := range kinds {
		for j := range list {
			list[j].Weight /= divisor
		}
	}
	return nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
