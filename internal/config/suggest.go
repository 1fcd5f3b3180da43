package config

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Suggest returns the offers of completion for a value that begins with prefix. Own is the protocol of the command, or
// all protocols.
func (s *Setting) Suggest(own, all []driver.Factory, prefix string) (list []string) {
	switch s.Name {
	case "url":
		return schemesOf(own)
	case "consumer-url":
		list = append(schemesOf(own), schemesOf(all)...)
		slices.Sort(list)
		return slices.Compact(list)
	case "protocol":
		return Names(own)
	case "consumer-protocol":
		return Names(all)
	case "client":
		return []string{driver.Native, LibraryClient}
	case "embedded-faults", "faults":
		return suggestFaults()
	case "threshold", "find-max":
		for _, m := range threshold.Metrics() {
			list = append(list, m.Name+"\t"+m.Help)
		}
		return list
	case "option":
		return suggestOptions(own, prefix)
	default:
		return s.Words()
	}
}

func schemesOf(factories []driver.Factory) (list []string) {
	for _, f := range factories {
		list = append(list, Schemes(&f)...)
	}
	return list
}

// suggestOptions offers key=, and the values once the key is there.
func suggestOptions(own []driver.Factory, prefix string) (list []string) {
	key, _, hasKey := strings.Cut(prefix, "=")
	for _, f := range own {
		for _, o := range driver.Describe(NewOptions(&f)) {
			if !hasKey {
				list = append(list, o.Name+"=\t"+o.Help)
				continue
			}
			for _, value := range o.Enum {
				if o.Name == key {
					list = append(list, key+"="+value)
				}
			}
		}
	}
	return list
}

// suggestFaults returns the faults of a list, for its first element.
func suggestFaults() (list []string) {
	for _, fault := range broker.FaultHelp() {
		name, _, valued := strings.Cut(fault[0], "=")
		if valued {
			name += "="
		}
		list = append(list, name+"\t"+fault[1])
	}
	return list
}
