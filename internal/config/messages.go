package config

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/template"
	"github.com/perfmq/perfmq/pkg/driver"
)

// makeVariants returns the kinds of messages of the settings, with their weights; none after a mistake.
func (r *resolver) makeVariants(b *plan.Broker) []plan.Variant {
	if b == nil { // a consumer
		return nil
	}
	files := map[string]string{"body-template": r.Message.TemplateFile, "body-file": r.Message.File}
	flag, file := "", "" // none for --message-size; a flag hides the others of lower sources
	for _, other := range []string{"body-file", "body-template", "message-size", "fill"} {
		switch {
		case !r.Has(other) || file == "" && files[other] == "":
		case file != "" && r.Source(other) == r.Source(flag):
			r.refuseBoth(other, flag)
			return nil
		case file == "" || r.Source(other) > r.Source(flag):
			flag, file = other, files[other]
		}
	}
	var list []plan.Variant
	if file != "" {
		list = r.readBodies(flag, file)
	} else {
		for _, s := range r.Message.Sizes {
			list = append(list, plan.Variant{Weight: s.Weight, BodySize: s.Bytes, Law: s.Law, Fill: r.Message.Fill})
		}
	}
	values := r.parseValues()
	for i := range list {
		v := &list[i]
		body := v.Body
		v.Variant = r.Message.Variant
		v.Body, v.Values = body, values
		switch err := plan.CheckBody(r.Driver(b), v.Size()); {
		case err != nil && file != "":
			r.refuse("", "--%s %s: %v", flag, v.BodySource(), err)
		case err != nil:
			r.errs = append(r.errs, err)
		}
	}
	return list
}

// parseValues parses the properties with fields.
func (r *resolver) parseValues() (list []*template.Template) {
	for _, p := range r.Message.Properties {
		if !template.HasFields(p.Value) {
			continue
		}
		t, err := template.ParseValue(p.Key, p.Value)
		if err != nil {
			r.refuseFile("--property", err)
		}
		list = append(list, t)
	}
	return list
}

// readBodies reads a body, the bodies of a folder, or a template, once for all groups and steps.
func (r *resolver) readBodies(flag, path string) (list []plan.Variant) {
	key := flag + " " + path
	if known := r.files[key]; known != nil {
		return slices.Clone(known)
	}
	paths := []string{path}
	if flag == "body-file" && inputfile.IsFolder(path) {
		var err error
		if paths, err = inputfile.Folder(path, driver.MaxVariants); err != nil {
			r.refuseFile("--"+flag, err)
			return nil
		}
	}
	total := 0
	for _, file := range paths {
		v := plan.Variant{Weight: 1, File: file}
		var err error
		if v.Body, err = r.readBody(file); err == nil && flag == "body-template" {
			if v.Template, err = template.Parse(file, v.Body); err == nil {
				v.Body = slices.Clone(template.NewFiller(0, 0).Fill(v.Template, 0, 0))
			}
		}
		if err != nil {
			r.refuseFile("--"+flag, err)
			return nil
		}
		if total += len(v.Body); total > plan.MaxMessageSize {
			r.add(plan.TooMany("bytes in --"+flag+" "+path, total, plan.MaxMessageSize))
			return nil
		}
		list = append(list, v)
	}
	if r.files != nil {
		r.files[key] = slices.Clone(list)
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
