package setting

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/internal/scenario"
)

// The keys of scenario files that no flag has.
const (
	// KeySite is of a broker: brokers of one site hold the same destinations, such as two connectors of one broker, or
	// brokers that pass messages on.
	KeySite = "site"
	// KeyWeight is of one of several messages.
	KeyWeight = "weight"
	// KeyIdle is of a step that lasts until it is idle.
	KeyIdle = "idle-time"
	// The others are of a sweep.
	KeyRepeats     = "repeats"
	KeyOrder       = "order"
	KeySettle      = "settle"
	KeyBetweenRuns = "between-runs"
	KeyOnFailure   = "on-failure"
)

// The values of [KeyOrder], [KeyBetweenRuns] and [KeyOnFailure], the defaults first.
const (
	OrderInTurn  = "in-turn"
	OrderShuffle = "shuffled"

	BetweenKeep  = "keep"  // the destinations stay as the run before has left them
	BetweenPurge = "purge" // queues are emptied before each run
	BetweenFresh = "fresh" // each run has destinations of its own, by their names

	FailureContinue = "continue"
	FailureStop     = "stop"
)

// MaxRepeats bounds the repeats of a cell.
const MaxRepeats = 1000

// Repeats reads the value of [KeyRepeats].
func Repeats(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxRepeats {
		return 0, fmt.Errorf("must be a whole number from 1 to %d", MaxRepeats)
	}
	return n, nil
}

// sweepKeys are the settings of a sweep.
func sweepKeys() []scenario.Key {
	return []scenario.Key{{
		Name: KeyRepeats, Scopes: inRun, Arg: argNumber, Default: "1", Sweep: true, Help: "runs of each cell of the matrix",
		Check: func(text string) error { _, err := Repeats(text); return err },
	}, {
		Name: KeyOrder, Scopes: inRun, Arg: argName, Default: OrderInTurn, Words: []string{OrderInTurn, OrderShuffle},
		Sweep: true,
		Help:  "in-turn: all cells once, then all again; shuffled: in another order each time, by the seed that is printed",
	}, {
		Name: KeySettle, Scopes: inRun, Arg: argTime, Default: "0s", Sweep: true, Help: "pause between two runs of a sweep",
		Check: func(text string) error { _, err := quantity.Duration(text, time.Second); return err },
	}, {
		Name: KeyBetweenRuns, Scopes: inRun, Arg: argName, Default: BetweenKeep, Sweep: true,
		Words: []string{BetweenKeep, BetweenPurge, BetweenFresh},
		Help: "what becomes of the destinations between the runs of a sweep: keep; purge empties the queues before each " +
			"run; fresh gives each run destinations of its own",
	}, {
		Name: KeyOnFailure, Scopes: inRun, Arg: argName, Default: FailureContinue, Words: []string{
			FailureContinue,
			FailureStop,
		}, Sweep: true,
		Help: "whether a sweep goes on after a run that failed; a broker that cannot be reached ends it in any case",
	}}
}

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
		Name: "destination", Help: "where the group sends or receives: queue://NAME, topic://NAME or ADDRESS::QUEUE; one " +
			"or a list",
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
	keys = append(keys, sweepKeys()...)
	for _, s := range All() {
		if s.Places == 0 && s.Name != "threshold" && s.Name != "label" { // those are about keys of the file's own
			continue
		}
		if s.Name == "protocol" {
			s.Default, s.Help = "that of url", "the protocol: "+strings.Join(protocols, ", ")
		}
		keys = append(keys, scenario.Key{
			Name: s.Name, Aliases: s.Aliases, Scopes: s.Places, List: s.List, Switch: s.Arg == "", Arg: s.Arg,
			Default: s.Default,
			Help:    s.Help, Secret: s.Secret, Pairs: s.Pairs, Join: s.Join, Relative: s.Relative, Words: s.Words,
			Check: func(text string) error { return s.Set(Defaults(), text) },
		})
	}
	return keys
}
