package broker

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/quantity"
)

// fault is one of the faults as a text: name=value.
type fault struct {
	name, help string
	count      func(*store.Faults) *uint64
	time       func(*store.Faults) *time.Duration
	flag       func(*store.Faults) *bool
	most       time.Duration // the longest time; 0 for [longestDelay]
}

func faults() []fault {
	return []fault{
		{
			name: "lose", help: "accept every N-th message, and forget it",
			count: func(f *store.Faults) *uint64 { return &f.LoseEvery },
		},
		{
			name: "damage", help: "flip a bit in the body of every N-th message",
			count: func(f *store.Faults) *uint64 { return &f.DamageEvery },
		},
		{
			name: "duplicate", help: "store every N-th message twice",
			count: func(f *store.Faults) *uint64 { return &f.DuplicateEvery },
		},
		{
			name: "reorder", help: "store every N-th message after the next one of its producer",
			count: func(f *store.Faults) *uint64 { return &f.ReorderEvery },
		},
		{
			name: "withhold", help: "never confirm every N-th message, but store it",
			count: func(f *store.Faults) *uint64 { return &f.WithholdEvery },
		},
		{
			name: "drop", help: "break all connections at every N-th message",
			count: func(f *store.Faults) *uint64 { return &f.DropEvery },
		},
		{
			name: "delay", help: "deliver each message only this long after it was sent",
			time: func(f *store.Faults) *time.Duration { return &f.Delay },
		},
		{
			name: "rate", help: "serve N messages a second and no more: the rest waits in the queues",
			count: func(f *store.Faults) *uint64 { return &f.Rate },
		},
		{
			name: "work", help: "take this long before a message is confirmed, one after another on each connection",
			time: func(f *store.Faults) *time.Duration { return &f.Work }, most: longestWork,
		},
		{name: "full", help: "behave as if every queue were full", flag: func(f *store.Faults) *bool { return &f.Full }},
		{name: "refuse", help: "close new connections at once", flag: func(f *store.Faults) *bool { return &f.Refuse }},
	}
}

// FaultHelp returns the faults that [ParseFaults] knows, each with a line of help.
func FaultHelp() (list [][2]string) {
	for _, f := range faults() {
		value := "=N"
		switch {
		case f.time != nil:
			value = "=TIME"
		case f.flag != nil:
			value = ""
		}
		list = append(list, [2]string{f.name + value, f.help})
	}
	return list
}

// longestDelay is the longest time that a fault takes: more would not fit the times of messages.
const longestDelay = 24 * time.Hour

// longestWork bounds how long a connection that is to be closed may still be busy with a message.
const longestWork = time.Second

// ParseFaults reads faults such as "lose=1000,delay=5ms,full"; "none" or nothing is a faultless broker. It reports all
// mistakes at once, joined; a fault that is given twice is one.
func ParseFaults(text string) (store.Faults, error) {
	var set store.Faults
	if text = strings.TrimSpace(text); text == "" || text == "none" {
		return set, nil
	}
	var errs []error
	given := map[string]int{}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if err := setFault(&set, item); err != nil {
			errs = append(errs, err)
			continue
		}
		name, _, _ := strings.Cut(item, "=")
		if given[name]++; given[name] == 2 {
			errs = append(errs, fmt.Errorf("fault %s is given more than once", name))
		}
	}
	return set, errors.Join(errs...)
}

func setFault(set *store.Faults, item string) error {
	name, value, given := strings.Cut(item, "=")
	var names []string
	for _, f := range faults() {
		names = append(names, f.name)
		if f.name != name {
			continue
		}
		switch {
		case f.count != nil:
			n, err := quantity.Whole(value, 0, math.MaxInt64)
			if err != nil {
				return fmt.Errorf("fault %s: must be %s=N, N being a whole number such as 1000 or 10k", item, name)
			}
			*f.count(set) = uint64(n) //nolint:gosec // it is not negative
		case f.time != nil:
			d, err := quantity.Duration(value, 0)
			most := cmp.Or(f.most, longestDelay)
			if err != nil || d > most {
				return fmt.Errorf("fault %s: must be %s=TIME, such as 5ms, and at most %s", item, name, most)
			}
			*f.time(set) = d
		default:
			on, err := strconv.ParseBool(value)
			if given && err != nil {
				return fmt.Errorf("fault %s: must be %s, or %s=false", item, name, name)
			}
			*f.flag(set) = on || !given
		}
		return nil
	}
	return fmt.Errorf("unknown fault %q: known are %s", item, strings.Join(names, ", "))
}

// FormatFaults writes faults as [ParseFaults] reads them.
func FormatFaults(set store.Faults) string {
	var items []string
	for _, f := range faults() {
		switch {
		case f.count != nil && *f.count(&set) > 0:
			items = append(items, f.name+"="+strconv.FormatUint(*f.count(&set), 10))
		case f.time != nil && *f.time(&set) > 0:
			items = append(items, f.name+"="+f.time(&set).String())
		case f.flag != nil && *f.flag(&set):
			items = append(items, f.name)
		}
	}
	if len(items) == 0 {
		return "none"
	}
	return strings.Join(items, ",")
}
