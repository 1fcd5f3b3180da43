package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
)

// twoSteps is a plan of the steps load, with paced and greedy producers and their readers, and then, with paced ones
// alone.
func twoSteps(t *testing.T) *Plan {
	t.Helper()
	group := func(name string, role Role, edit func(*Group)) *Group {
		g := &Group{
			Name: name, Role: role, Destinations: []driver.Destination{{Name: "A"}}, Mix: bodyOf("abc"),
		}
		g.MaxPending = 1
		if role == Producer {
			g.ProducerBroker, g.Producers = at(able()).Broker, 1
		} else {
			g.ConsumerBroker, g.Consumers = at(able()).Broker, 1
		}
		if edit != nil {
			edit(g)
		}
		return g
	}
	paced := func() *Group { return group("paced", Producer, func(g *Group) { g.Rate = rate(t, "100") }) }
	return &Plan{DrainTimeout: time.Second, Steps: []Step{
		{Name: "load", Duration: time.Second, Groups: []*Group{paced(), group("greedy", Producer, nil), group("readers", Consumer, nil)}},
		{Name: "then", Duration: time.Second, Groups: []*Group{paced()}},
	}}
}

func TestThresholdsOfGroups(t *testing.T) {
	require.NoError(t, twoSteps(t).Validate(ables(nil)))
	for _, tt := range []struct{ where, text, mistake, hint string }{
		{"run", "group.paced.sent == 100", "", ""},
		{"run", "group.readers.received.avg >= 1", "", ""},
		{"then", "completed.avg >= 90% of target", "", ""},
		{"load", "group.paced.completed.avg >= 90% of target", "", ""},
		{"run", "group.nobody.sent == 1", "there is no group nobody", "paced, greedy, readers"},
		{"then", "group.readers.received == 1", "there is no group readers", "the groups are paced"},
		{"load", "group.readers.ack.p99 < 1s", "measures nothing of that", "producer command"},
		{"load", "group.greedy.response.p99 < 1s", "measures nothing of that", "add --rate"},
		{"load", "completed.avg >= 90% of target", "there is no one target", "group.NAME"},
		{"load", "group.greedy.completed.avg >= 90% of target", "measures nothing of that", "add --rate"},
		{"run", "completed.avg >= 90% of target", "there is no one target", "threshold of a step"},
		{"run", "group.paced.completed.avg >= 90% of target", "there is no one target", "threshold of a step"},
	} {
		p := twoSteps(t)
		demand, err := threshold.Parse(tt.text)
		require.NoError(t, err)
		list := map[string]*[]threshold.Threshold{"run": &p.Thresholds, "load": &p.Steps[0].Thresholds, "then": &p.Steps[1].Thresholds}[tt.where]
		*list = append(*list, demand)
		if tt.mistake == "" {
			require.NoError(t, p.Validate(ables(nil)), tt.text)
		} else {
			requireLike(t, p.Validate(ables(nil)), tt.mistake, tt.hint)
		}
	}
}

// A client that reconnects by itself reports no outages, and is refused with --reconnect.
func TestThresholdsOfOutages(t *testing.T) {
	for _, tt := range []struct {
		name             string
		reconnect, alone bool
		mistake          string
	}{
		{"reconnected", true, false, ""},
		{"not reconnected", false, false, "measures nothing of that"},
		{"by itself", true, true, "reconnects by itself and reports no outage"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := twoSteps(t)
			for _, g := range p.Steps[0].Groups {
				g.Reconnect = tt.reconnect
			}
			drivers := ables(func(c *driver.Capabilities) { c.Reconnects = tt.alone })
			demand, err := threshold.Parse("outage.count == 0")
			require.NoError(t, err)
			p.Steps[0].Thresholds = append(p.Steps[0].Thresholds, demand)
			if tt.mistake == "" {
				require.NoError(t, p.Validate(drivers))
			} else {
				require.ErrorContains(t, p.Validate(drivers), tt.mistake)
			}
		})
	}
}

// delaying are options of a protocol with a delay of its own.
type delaying struct{ yes bool }

func (d *delaying) Delays() bool { return d.yes }

// TestThresholdsOfDelays: lateness is that of delayed messages, whoever in the run, or outside it, has sent them; and
// there are no stalls of no length.
func TestThresholdsOfDelays(t *testing.T) {
	const add = "add --delivery-delay TIME"
	delay := func(g *Group) { g.Delay = time.Second }
	drivers := ables(func(c *driver.Capabilities) { c.Queue.Delay = true })
	for _, tt := range []struct {
		name, where, text, hint string
		edit                    func(p *Plan)
	}{
		{"no delay", "run", "lateness.p99 < 1s", add, nil},
		{"no delay, of a step", "load", "lateness.p99 < 1s", add, nil},
		{"no delay, of a group", "run", "group.readers.lateness.p99 < 1s", add, nil},
		{"no delay by an option", "run", "lateness.p99 < 1s", add, func(p *Plan) { p.Steps[0].Groups[0].ProducerBroker.Options = &delaying{} }},
		{"a consumer's option", "run", "lateness.p99 < 1s", add, func(p *Plan) { p.Steps[0].Groups[2].ConsumerBroker.Options = &delaying{yes: true} }},
		{"a delay", "run", "lateness.p99 < 1s", "", func(p *Plan) { delay(p.Steps[0].Groups[0]) }},
		{"a delay, of a group", "load", "group.readers.lateness.p99 < 1s", "", func(p *Plan) { delay(p.Steps[0].Groups[0]) }},
		{"a delay by an option", "run", "lateness.p99 < 1s", "", func(p *Plan) { p.Steps[0].Groups[0].ProducerBroker.Options = &delaying{yes: true} }},
		{"the producers' own", "run", "group.paced.lateness.p99 < 1s", "use the client or consumer command", func(p *Plan) { delay(p.Steps[0].Groups[0]) }},
		{"sent in an earlier step", "then", "lateness.p99 < 1s", "", func(p *Plan) {
			delay(p.Steps[0].Groups[0])
			p.Steps[1].Groups = p.Steps[0].Groups[2:]
		}},
		{"sent elsewhere", "load", "lateness.p99 < 1s", "", func(p *Plan) {
			p.Steps = p.Steps[:1]
			p.Steps[0].Groups = p.Steps[0].Groups[2:]
		}},
		{"early ones are counted", "run", "early == 0", "", nil},
		{"stalls", "run", "stall.count == 0", "", func(p *Plan) { p.StallThreshold = time.Second }},
		{"no stalls", "run", "stall.max < 5s", "leave --stall-threshold 0 out", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := twoSteps(t)
			if tt.edit != nil {
				tt.edit(p)
			}
			demand, err := threshold.Parse(tt.text)
			require.NoError(t, err)
			list, step := &p.Thresholds, ""
			if i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Name == tt.where }); i >= 0 {
				list, step = &p.Steps[i].Thresholds, tt.where
			}
			*list = append(*list, demand)
			if tt.hint == "" {
				require.NoError(t, p.Validate(drivers))
				return
			}
			var m *Mistake
			require.ErrorAs(t, p.Validate(drivers), &m)
			require.Equal(t, Mistake{
				Text: `--threshold "` + tt.text + `": this run measures nothing of that`, Hint: tt.hint, Threshold: tt.text, Step: step,
			}, *m)
		})
	}
}

// TestThresholdsOfSeconds: a demand on a rate of full seconds is refused if the durations of all steps that it is about
// are too short for one, and only then.
func TestThresholdsOfSeconds(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	refused := func(metric, count, duration string) [2]string {
		last := metric[:len(metric)-len(".min")]
		return [2]string{metric + " is a rate of at least 3 full seconds, and there are " + count, "try --duration " + duration + ", or ask for " + last + ".avg"}
	}
	const first = ", as that of the first message does not count"
	long := func(p *Plan) { p.Steps[0].Duration = time.Minute }
	for _, tt := range []struct {
		name, where, text string
		warmup, duration  time.Duration // of the first step
		edit              func(*Plan)
		want              [2]string
	}{
		{"two seconds", "load", "completed.min >= 1", 0, 2 * s, nil, refused("completed.min", "2", "3s")},
		{"as of the run", "run", "completed.max >= 1", 0, 2 * s, nil, refused("completed.max", "2", "3s")},
		{"nearly three", "load", "completed.min >= 1", 0, 2699 * ms, nil, refused("completed.min", "2", "3s")},
		{"enough of the third", "load", "completed.min >= 1", 0, 2700 * ms, nil, [2]string{}},
		{"of a group", "load", "group.paced.completed.min >= 1", 0, 2 * s, nil, refused("group.paced.completed.min", "2", "3s")},
		{"a warm-up between seconds", "load", "completed.min >= 1", 500 * ms, 3500 * ms, nil, refused("completed.min", "2", "4s")},
		{"a warm-up", "load", "completed.min >= 1", 2 * s, 5 * s, nil, [2]string{}},
		{"nothing received before", "load", "received.min >= 1", 0, 3 * s, nil, refused("received.min", "2"+first, "4s")},
		{"received in the warm-up", "load", "received.min >= 1", s, 4 * s, nil, [2]string{}},
		{"four seconds", "load", "received.min >= 1", 0, 4 * s, nil, [2]string{}},
		{"counts", "load", "received.min >= 1", 0, 0, nil, [2]string{}},
		{"a longer step", "run", "completed.min >= 1", 0, 2 * s, func(p *Plan) { p.Steps[1].Duration = 3 * s }, [2]string{}},
		{"a longer step without it", "run", "received.min >= 1", 0, 2 * s, func(p *Plan) { p.Steps[1].Duration = 9 * s }, refused("received.min", "1"+first, "4s")},
		{"a longer step without the group", "run", "group.greedy.completed.min >= 1", 0, 2 * s, func(p *Plan) { p.Steps[1].Duration = 9 * s }, refused("group.greedy.completed.min", "2", "3s")},
		{"shorter than another", "then", "completed.min >= 1", 0, 0, long, refused("completed.min", "1", "3s")},
		{"readers of the step before", "then", "received.min >= 1", 0, 0, func(p *Plan) {
			long(p)
			p.Steps[1].Duration, p.Steps[1].Groups = 3*s, p.Steps[0].Groups
		}, [2]string{}},
		{"readers of their own", "then", "received.min >= 1", 0, 0, func(p *Plan) {
			long(p)
			p.Steps[1].Duration, p.Steps[1].Groups = 3*s, p.Steps[0].Groups[2:]
			p.Steps[0].Groups = p.Steps[0].Groups[:2]
		}, refused("received.min", "2"+first, "4s")},
		{"counts, of another kind", "run", "received.min >= 1", 0, 2 * s, func(p *Plan) { p.Steps[1].Duration, p.Steps[1].Groups[0].Count = 0, 5 }, refused("received.min", "1"+first, "4s")},
		{"counts in another step", "run", "completed.min >= 1", 0, 2 * s, func(p *Plan) { p.Steps[1].Duration, p.Steps[1].Groups[0].Count = 0, 5 }, [2]string{}},
		{"an average", "load", "received.avg >= 1", 0, s, nil, [2]string{}},
		{"a time", "load", "ack.max < 1s", 0, s, nil, [2]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := twoSteps(t)
			p.Steps[0].Warmup, p.Steps[0].Duration = tt.warmup, tt.duration
			if tt.duration == 0 {
				p.Steps = p.Steps[:1]
				if tt.edit != nil {
					p.Steps = p.Steps[:2]
				}
			}
			if tt.edit != nil {
				tt.edit(p)
			}
			demand, err := threshold.Parse(tt.text)
			require.NoError(t, err)
			list, step := &p.Thresholds, ""
			if i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Name == tt.where }); i >= 0 {
				list, step = &p.Steps[i].Thresholds, tt.where
			}
			*list = append(*list, demand)
			if tt.want == [2]string{} {
				require.NoError(t, p.Validate(ables(nil)))
				return
			}
			var m *Mistake
			require.ErrorAs(t, p.Validate(ables(nil)), &m)
			require.Equal(t, Mistake{
				Text: `--threshold "` + tt.text + `": ` + tt.want[0], Hint: tt.want[1], Threshold: tt.text, Step: step,
			}, *m)
		})
	}
}

// A rate can only be a share of a rate that the earlier step measures.
func TestRelativeRates(t *testing.T) {
	for text, mistake := range map[string]string{
		"80% of load.completed.avg": "", "80% of load.received.avg": "", "80% of load.group.greedy.completed.avg": "", "50% of load.group.readers.received.min": "is a rate of at least 3 full seconds, and there are 0",
		"80% of load.group.readers.completed.avg": "measures nothing of that", "80% of load.group.nobody.sent.avg": "has no group nobody",
	} {
		r, err := ParseRelative(text)
		require.NoError(t, err)
		require.Equal(t, [2]string{text, "load"}, [2]string{r.String(), r.Step})
		p := twoSteps(t)
		p.Steps[1].Groups[0].Rate = Rate{Relative: r}
		if mistake == "" {
			require.NoError(t, p.Validate(ables(nil)), text)
		} else {
			requireLike(t, p.Validate(ables(nil)), mistake, "")
		}
	}
	for _, text := range []string{"80% of load.group.a.ack.p99", "80% of load.group.a.sent", "80% of group.a.sent.avg.x"} {
		_, err := ParseRelative(text)
		require.Error(t, err, text)
	}
}

// requireLike demands one mistake with these words.
func requireLike(t *testing.T, err error, text, hint string) {
	t.Helper()
	var m *Mistake
	require.ErrorAs(t, err, &m)
	require.Contains(t, m.Text, text)
	require.Contains(t, m.Hint, hint)
}
