package setting

import (
	"errors"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/internal/scenario"
)

// The keys of scenario files that no flag has.
const (
	// KeySite is of a broker: brokers of one site hold the same destinations, such as two connectors of one broker, or brokers that
	// pass messages on.
	KeySite = "site"
	// KeyWeight is of one of several messages.
	KeyWeight = "weight"
	// KeyIdle is of a step that lasts until it is idle.
	KeyIdle = "idle-time"
)

// DefaultIdle is for how long nothing must have been received in a step that does not say it.
const DefaultIdle = 3 * time.Second

// Idle reads the value of [KeyIdle].
func Idle(text string) (time.Duration, error) {
	d, err := quantity.Duration(text, time.Second)
	if err == nil && d <= 0 {
		err = errors.New("must be above 0")
	}
	return d, err
}

// Keys returns the settings as scenario files have them, each at its places, and the few of their own.
func Keys(protocols []string) []scenario.Key {
	keys := []scenario.Key{{
		Name: KeySite, Scopes: inBroker, Arg: argName, Default: "the host of url",
		Help: "name of the site; a destination is one and the same on all brokers of a site",
		Check: func(text string) error {
			if strings.TrimSpace(text) == "" {
				return errors.New("is empty")
			}
			return nil
		},
	}, {
		Name: "destination", Help: "where the group sends or receives: queue://NAME, topic://NAME or ADDRESS::QUEUE; one or a list",
		Check: func(text string) error {
			_, err := plan.Destinations([]string{text}, 1)
			return err
		},
	}, {
		Name: KeyWeight, Scopes: inMessage, Arg: argNumber, Default: "1",
		Help: "weight of the message: its share is that over the sum of all weights",
		Check: func(text string) error {
			_, err := Weight(text)
			return err
		},
	}, {
		Name: KeyIdle, Scopes: inStep, Arg: argTime, Default: DefaultIdle.String(),
		Help: "with until: idle, for how long nothing must have been received",
		Check: func(text string) error {
			_, err := Idle(text)
			return err
		},
	}}
	for _, s := range All() {
		if s.Places == 0 && s.Name != "threshold" && s.Name != "label" { // those are about keys of the file's own
			continue
		}
		if s.Name == "protocol" {
			s.Default, s.Help = "that of url", "the protocol: "+strings.Join(protocols, ", ")
		}
		keys = append(keys, scenario.Key{
			Name: s.Name, Aliases: s.Aliases, Scopes: s.Places, List: s.List, Switch: s.Arg == "", Arg: s.Arg, Default: s.Default,
			Help: s.Help, Secret: s.Secret, Pairs: s.Pairs, Join: s.Join, Relative: s.Relative, Words: s.Words,
			Check: func(text string) error { return s.Set(Defaults(), text) },
		})
	}
	return keys
}
