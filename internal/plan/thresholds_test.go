package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// twoSteps is a plan of the steps load, with paced and greedy producers and their readers, and then, with paced ones
// alone.
func twoSteps(t *testing.T) *Plan {
	t.Helper()
	group := func(name string, role Role, edit func(*Group)) *Group {
		g := &Group{Name: name, Role: role, Destinations: []driver.Destination{{Name: "A"}}, Mix: bodyOf("abc")}
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
	return &Plan{Allow: verify.Allow{Disorder: true}, Steps: []Step{
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
		{"run", "group.nobody.sent == 1", "there is no group nobody", ""},
		{"then", "group.readers.received == 1", "there is no group readers", ""},
		{"load", "group.readers.ack.p99 < 1s", "does not measure it", "add producers"},
		{"load", "group.greedy.response.p99 < 1s", "does not measure it", "add --rate"},
		{"load", "completed.avg >= 90% of target", "there is no one target", "group.NAME"},
		{"load", "group.greedy.completed.avg >= 90% of target", "does not measure it", "add --rate"},
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
		{"not reconnected", false, false, "does not measure it"},
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

// TestThresholdsOfDelays: lateness is that of delayed messages, whoever in the run, or outside it, has sent them; and
// there are no stalls of no length.
func TestThresholdsOfDelays(t *testing.T) {
	const add = "add --delivery-delay"
	delay := func(g *Group) { g.Delay = time.Second }
	drivers := ables(func(c *driver.Capabilities) { c.Queue.Delay = true })
	for _, tt := range []struct {
		name, where, text, hint string
		edit                    func(p *Plan)
	}{
		{"no delay", "run", "lateness.p99 < 1s", add, nil},
		{"no delay, of a step", "load", "lateness.p99 < 1s", add, nil},
		{"no delay, of a group", "run", "group.readers.lateness.p99 < 1s", add, nil},
		{"a delay", "run", "lateness.p99 < 1s", "", func(p *Plan) { delay(p.Steps[0].Groups[0]) }},
		{"a delay, of a group", "load", "group.readers.lateness.p99 < 1s", "", func(p *Plan) { delay(p.Steps[0].Groups[0]) }},
		{"the producers' own", "run", "group.paced.lateness.p99 < 1s", "add consumers", func(p *Plan) { delay(p.Steps[0].Groups[0]) }},
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
		{"no stalls", "run", "stall.max < 5s", "raise --stall-threshold", nil},
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
				Text: `--threshold "` + tt.text + `": this run does not measure it`, Hint: tt.hint, Threshold: tt.text, Step: step,
			}, *m)
		})
	}
}

// A rate can only be a share of a rate that the earlier step measures.
func TestRelativeRates(t *testing.T) {
	for text, mistake := range map[string]string{
		"80% of load.completed.avg": "", "80% of load.received.avg": "", "80% of load.group.greedy.completed.avg": "", "50% of load.group.readers.received.min": "",
		"80% of load.group.readers.completed.avg": "no earlier step measures it", "80% of load.group.nobody.sent.avg": "no earlier step measures it",
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
	for _, text := range []string{"80% of load.group.a.ack.p99", "80% of load.group.a.sent", "80% of group.a.sent.avg.x", "80% of load.group..sent.avg"} {
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
