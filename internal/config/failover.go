package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
)

// failover is a URL of ActiveMQ's failover transport: its hosts, and how a lost connection is opened again
// (org.apache.activemq.transport.failover.FailoverTransport).
type failover struct {
	url     string       // of the hosts alone, as other URLs name several
	shown   string       // fit for printing: without users, passwords and what is ignored
	backoff plan.Backoff // of lost connections
	random  bool         // hosts are tried in a random order
	again   bool         // lost connections are opened again at all: not with maxReconnectAttempts=0
	ignored []string
}

// failoverScheme is how URLs of the failover transport begin.
const failoverScheme = "failover:"

const failoverHint = "write it as 'failover:(tcp://HOST:PORT,tcp://HOST:PORT)?randomize=false'; " +
	"docs/protocols.md lists the settings"

// wrongFailover is the mistake of a part of a failover URL.
func wrongFailover(part string) error {
	return plan.Wrong(failoverHint, "the failover URL cannot have %s", part)
}

// isFailover reports whether a URL is one of the failover transport.
func isFailover(url string) bool {
	url = strings.TrimSpace(url)
	return len(url) >= len(failoverScheme) && strings.EqualFold(url[:len(failoverScheme)], failoverScheme)
}

// hostsURL returns the URL with the hosts of a failover URL; any other URL as it is.
func hostsURL(url string) string {
	if isFailover(url) {
		if f, err := parseFailover(url); err == nil {
			return f.url
		}
	}
	return url
}

// scheme returns the scheme of a URL, or of the hosts of a failover URL.
func scheme(url string) string { return plan.Scheme(hostsURL(url)) }

// parseFailover reads failover:(URL,URL...)?SETTING=VALUE&..., also with failover:// and, without settings, without the
// parentheses. Settings of a host, jms.*, wireFormat.* and nested.* are ignored. The text of the error has no
// passwords.
func parseFailover(url string) (*failover, error) {
	hosts, query := strings.TrimPrefix(strings.TrimSpace(url)[len(failoverScheme):], "//"), ""
	if inner, ok := strings.CutPrefix(hosts, "("); ok {
		end := max(0, strings.LastIndexByte(inner, ')'))
		hosts, query = inner[:end], strings.TrimPrefix(inner[end:], ")")
		if rest, asked := strings.CutPrefix(query, "?"); asked || query == "" {
			query = rest
		} else {
			return nil, wrongFailover("text behind its hosts")
		}
	}
	f := &failover{random: true, again: true, backoff: plan.Backoff{
		First: 10 * time.Millisecond, Longest: 30 * time.Second, Multiplier: 2, LostLast: true,
	}}
	if err := f.readHosts(hosts); err != nil {
		return nil, err
	}
	exponential, mark := true, "?"
	for setting := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' }) {
		name, value, _ := strings.Cut(setting, "=")
		if group, _, ok := strings.Cut(name, "."); ok && (group == "jms" || group == "wireFormat" || group == "nested") {
			f.ignored = append(f.ignored, name)
		} else if err := f.set(name, value, &exponential); err != nil {
			return nil, err
		} else {
			f.shown, mark = f.shown+mark+setting, "&"
		}
	}
	if !exponential {
		f.backoff.Longest = f.backoff.First
	}
	return f, nil
}

// readHosts reads the URLs of the hosts, which have one scheme and one user.
func (f *failover) readHosts(text string) error {
	var scheme, user string
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		s, rest, ok := strings.Cut(strings.TrimSpace(part), "://")
		s = strings.ToLower(s)
		if !ok || scheme != "" && s != scheme {
			return wrongFailover("hosts of several schemes, or of none")
		}
		scheme = s
		rest, nested, _ := strings.Cut(rest, "?")
		for name := range strings.SplitSeq(nested, "&") {
			if name, _, _ = strings.Cut(name, "="); name != "" {
				f.ignored = append(f.ignored, name)
			}
		}
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			if user != "" && rest[:at+1] != user {
				return wrongFailover("different users")
			}
			user, rest = rest[:at+1], rest[at+1:]
		}
		list = append(list, strings.TrimSuffix(rest, "/"))
	}
	f.shown = "failover:(" + scheme + "://" + strings.Join(list, ","+scheme+"://") + ")"
	f.url = scheme + "://" + user + strings.Join(list, ",")
	return nil
}

// set reads a setting behind the parenthesis.
func (f *failover) set(name, value string, exponential *bool) error {
	const day = 24 * 60 * 60 * 1000 // in milliseconds
	b := &f.backoff
	delay := func(d *time.Duration) func(float64) {
		return func(n float64) { *d = time.Duration(n) * time.Millisecond }
	}
	multiplier := func(n float64) { b.Multiplier = n }
	attempts := func(n float64) { f.again, b.Attempts = n != 0, max(0, int(n)) }
	for _, s := range []struct {
		name        string
		least, most float64
		whole       bool
		set         func(n float64)
	}{
		{"randomize", 0, 1, true, func(n float64) { f.random = n == 1 }},
		{"useExponentialBackOff", 0, 1, true, func(n float64) { *exponential = n == 1 }},
		{"initialReconnectDelay", 1, day, true, delay(&b.First)},
		{"maxReconnectDelay", 1, day, true, delay(&b.Longest)},
		{"timeout", -1, 0, true, func(float64) {}}, // both wait without limit, as perfmq does
		{"backOffMultiplier", 1, 1000, false, multiplier},
		{"reconnectDelayExponent", 1, 1000, false, multiplier},
		{"maxReconnectAttempts", -1, math.MaxInt32, true, attempts},
	} {
		if s.name != name {
			continue
		}
		number, ok := map[string]string{"true": "1", "false": "0"}[value]
		if !ok {
			number = value
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n >= s.least && n <= s.most) || s.whole && n != math.Trunc(n) {
			return wrongFailover(name + "=" + value)
		}
		s.set(n)
		return nil
	}
	return wrongFailover(name)
}

// readFailover replaces a failover URL by its hosts.
func (r *resolver) readFailover(flag string, url *string) *failover {
	if !isFailover(*url) {
		return nil
	}
	f, err := parseFailover(*url)
	if err != nil {
		r.errs = append(r.errs, err)
		*url = "" // lets the other settings be checked
		return nil
	}
	*url = f.url
	if len(f.ignored) > 0 {
		slices.Sort(f.ignored)
		r.addNote(flag + ": without effect: " + strings.Join(slices.Compact(f.ignored), ", "))
	}
	return f
}

// applyFailover applies the parameters of failover URLs to a group. Flags take precedence.
func (r *resolver) applyFailover(g *plan.Group, brokers []usedBroker) {
	var first *failover
	for _, b := range brokers {
		switch f := b.failover; {
		case f == nil:
		case first == nil:
			first = f
		case first.random != f.random || first.again != f.again || first.backoff != f.backoff:
			r.refuse("give both the same settings", "the failover URLs of producers and consumers differ in settings")
		}
	}
	if first == nil {
		return
	}
	if !r.Has("hosts") && first.random {
		g.Hosts = plan.AtRandom
	}
	switch {
	case r.Has("reconnect"):
	case first.again:
		g.Reconnect = true
		r.addNote("the failover URL implies --reconnect")
	default:
		r.addNote("the failover URL has maxReconnectAttempts=0: a lost connection ends the run")
	}
	if g.Reconnect {
		g.Backoff = first.backoff
		if g.ReconnectDelay > 0 {
			g.Backoff.First = min(g.Backoff.First, g.ReconnectDelay)
			g.Backoff.Longest = min(g.Backoff.Longest, g.ReconnectDelay)
		}
	}
}
