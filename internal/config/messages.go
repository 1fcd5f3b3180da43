package config

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// makeVariants returns the kinds of messages of the settings, with their weights; none after a mistake.
func (r *resolver) makeVariants(b *plan.Broker) []plan.Variant {
	if b == nil { // a consumer
		return nil
	}
	file := r.Message.File
	for _, flag := range []string{"message-size", "fill"} {
		if file == "" || !r.Has(flag) {
			continue
		}
		switch over, under := r.Source(flag), r.Source("body-file"); {
		case over == under:
			r.refuseBoth(flag, "body-file")
			return nil
		case over > under:
			file = ""
		}
	}
	var list []plan.Variant
	if file != "" {
		list = r.readBodies(file)
	} else {
		for _, s := range r.Message.Sizes {
			list = append(list, plan.Variant{Weight: s.Weight, BodySize: s.Bytes, Law: s.Law, Fill: r.Message.Fill})
		}
	}
	for i := range list {
		v := &list[i]
		body := v.Body
		v.Variant = r.Message.Variant
		v.Body = body
		switch err := plan.CheckBody(r.Driver(b), v.Size()); {
		case err != nil && file != "":
			r.refuse("", "--body-file %s: %v", v.BodySource(), err)
		case err != nil:
			r.errs = append(r.errs, err)
		}
	}
	return list
}

// readBodies reads a body, or the bodies of a folder, once for all groups and steps.
func (r *resolver) readBodies(path string) (list []plan.Variant) {
	if known := r.files[path]; known != nil {
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
		body, err := r.readBody(file)
		if err != nil {
			r.refuseFile("--body-file", err)
			return nil
		}
		if total += len(body); total > plan.MaxMessageSize {
			r.add(plan.TooMany("bytes in --body-file "+path, total, plan.MaxMessageSize))
			return nil
		}
		list = append(list, plan.Variant{Weight: 1, Variant: driver.Variant{Body: body}, File: file})
	}
	if r.files != nil {
		r.files[path] = slices.Clone(list)
	}
	return list
}

// readBody reads the body of a message from a file, or from a file inside the program if the name begins with @.
func (r *resolver) readBody(name string) ([]byte, error) {
	if !IsShipped(name) || r.Scenarios == nil {
		return inputfile.Read(name, plan.MaxMessageSize)
	}
	body, err := fs.ReadFile(r.Scenarios, strings.TrimPrefix(name, "@"))
	if err != nil {
		return nil, &inputfile.Error{
			Path: name, Reason: "there is no such file inside the program", Hint: "write ./" + name + " for your own file",
		}
	}
	return body, nil
}
