package config

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Context is the knowledge that completion of a value can draw on.
type Context struct {
	Own       []driver.Factory // protocol of the command; all if it has none
	Factories []driver.Factory // native drivers
	Libraries []driver.Factory // drivers on client libraries
	Prefix    string           // the typed part of the value
}

// Suggest returns the offers of completion for a value.
func (s *Setting) Suggest(c *Context) (list []string) {
	switch s.Name {
	case "url":
		return schemesOf(c.Own)
	case "consumer-url":
		list = append(schemesOf(c.Own), schemesOf(c.Factories)...)
		slices.Sort(list)
		return slices.Compact(list)
	case "protocol":
		return Names(c.Own)
	case "consumer-protocol":
		return Names(c.Factories)
	case "client":
		return c.clients()
	case "embedded-faults":
		return SuggestFaults(c.Prefix)
	case "threshold", "find-max":
		for _, m := range threshold.Metrics() {
			list = append(list, m.Name+"\t"+m.Help)
		}
		return list
	case "option":
		return c.options()
	case "priority":
		return strings.Split("0123456789", "")
	default:
		return s.Words
	}
}

func schemesOf(factories []driver.Factory) (list []string) {
	for i := range factories {
		list = append(list, Schemes(&factories[i])...)
	}
	return list
}

func (c *Context) clients() []string {
	list := []string{driver.Native}
	if len(c.Own) == 1 && c.Own[0].Client != "" {
		list[0] = c.Own[0].Client
	}
	for i := range c.Own {
		if own := LibrariesOf(&c.Own[i], c.Libraries); len(own) > 0 {
			return append(list, LibraryClient+"\t"+own[0].Client)
		}
	}
	return list
}

// options offers key=, and the values once the key is there.
func (c *Context) options() (list []string) {
	key, _, hasKey := strings.Cut(c.Prefix, "=")
	for i := range c.Own {
		for _, o := range driver.Describe(NewOptions(&c.Own[i])) {
			if !hasKey {
				list = append(list, o.Name+"=\t"+o.Help)
				continue
			}
			values := o.Enum
			if len(values) == 0 && (o.Default == "true" || o.Default == "false") {
				values = []string{"true", "false"}
			}
			for _, value := range values {
				if o.Name == key {
					list = append(list, key+"="+value)
				}
			}
		}
	}
	return list
}

// SuggestFaults returns how a list of faults can go on: with the faults that are not in it yet.
func SuggestFaults(prefix string) (list []string) {
	before, last := "", strings.LastIndex(prefix, ",")
	if last >= 0 {
		before = prefix[:last+1]
	}
	for _, fault := range broker.FaultHelp() {
		name, _, valued := strings.Cut(fault[0], "=")
		if strings.Contains(","+before, ","+name+"=") || strings.Contains(","+before, ","+name+",") {
			continue
		}
		if valued {
			name += "="
		}
		list = append(list, before+name+"\t"+fault[1])
	}
	return list
}
