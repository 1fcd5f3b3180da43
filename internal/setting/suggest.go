package setting

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

func suggestURL(c *Context) (list []string) {
	for i := range c.Own {
		list = append(list, Schemes(&c.Own[i])...)
	}
	return list
}

func suggestConsumerURL(c *Context) []string {
	list := suggestURL(c)
	for i := range c.Factories {
		for _, scheme := range Schemes(&c.Factories[i]) {
			if !slices.Contains(list, scheme) {
				list = append(list, scheme)
			}
		}
	}
	return list
}

func suggestOwnProtocol(c *Context) []string { return Names(c.Own) }

func suggestProtocols(c *Context) []string { return Names(c.Factories) }

func suggestClients(c *Context) []string {
	list := []string{driver.Native}
	if len(c.Own) == 1 && c.Own[0].Client != "" {
		list[0] = c.Own[0].Client
	}
	for i := range c.Own {
		for _, l := range LibrariesOf(&c.Own[i], c.Libraries) {
			if len(list) == 1 {
				list = append(list, LibraryClient+"\t"+l.Client)
			}
		}
	}
	return list
}

func suggestFixed(values ...string) func(*Context) []string {
	return func(*Context) []string { return values }
}

func suggestFaults(c *Context) []string { return SuggestFaults(c.Prefix) }

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

func suggestMetrics(*Context) (list []string) {
	for _, m := range threshold.Metrics() {
		list = append(list, m.Name+"\t"+m.Help)
	}
	return list
}

// suggestOptions offers key=, and the values once the key is there.
func suggestOptions(c *Context) (list []string) {
	key, _, hasKey := strings.Cut(c.Prefix, "=")
	for i := range c.Own {
		for _, o := range driver.Describe(NewOptions(&c.Own[i])) {
			switch {
			case !hasKey:
				list = append(list, o.Name+"=\t"+o.Help)
			case o.Name == key:
				for _, value := range optionValues(&o) {
					list = append(list, key+"="+value)
				}
			}
		}
	}
	return list
}

func optionValues(o *driver.Option) []string {
	if len(o.Enum) == 0 && (o.Default == "true" || o.Default == "false") {
		return []string{"true", "false"}
	}
	return o.Enum
}
