package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Failover is a URL of ActiveMQ's failover transport: its hosts, and how a lost connection is opened again
// (org.apache.activemq.transport.failover.FailoverTransport).
type Failover struct {
	URL      string  // of the hosts alone, as other URLs name several
	Shown    string  // fit for printing: without users, passwords and the settings in Ignored
	Backoff  Backoff // of lost connections
	Random   bool    // hosts are tried in a random order
	Again    bool    // lost connections are opened again at all: not with maxReconnectAttempts=0
	Ignored  []string
	settings []string // understood, as given
}

// Backoff are the pauses between the attempts to reach a host again at which connections were lost.
type Backoff struct {
	First, Longest time.Duration
	Multiplier     float64 // of each pause, against the one before
	// Attempts is how many attempts may fail, each at all hosts; 0 for any number.
	Attempts int
	// Patience is how long a message waits for a connection: then it is counted as failed, and the next one waits. 0 is
	// for ever.
	Patience time.Duration
	// LostLast: the host of the lost connection is tried last, also where hosts are tried in order.
	LostLast bool
}

// DefaultReconnectDelay is the default of --reconnect-delay.
const DefaultReconnectDelay = 250 * time.Millisecond

// Probing returns the pauses of --reconnect-delay; 0 is the default.
func Probing(delay time.Duration) Backoff {
	delay = cmp.Or(delay, DefaultReconnectDelay)
	return Backoff{First: min(delay, 100*time.Millisecond), Longest: delay, Multiplier: 2}
}

// Probing returns the pauses before lost connections of the group are opened again.
func (g *Group) Probing() Backoff {
	if g.Backoff == (Backoff{}) {
		return Probing(g.ReconnectDelay)
	}
	return g.Backoff
}

// Limit makes the pauses those of --reconnect-delay, at most.
func (b *Backoff) Limit(delay time.Duration) {
	b.First, b.Longest = min(b.First, delay), min(b.Longest, delay)
}

// Next returns the pause that follows one.
func (b *Backoff) Next(pause time.Duration) time.Duration {
	next := float64(pause) * b.Multiplier
	if next >= float64(b.Longest) {
		return b.Longest
	}
	return time.Duration(next)
}

// failoverScheme is how URLs of the failover transport begin.
const failoverScheme = "failover:"

// IsFailover tells whether a URL is one of the failover transport.
func IsFailover(url string) bool {
	url = strings.TrimSpace(url)
	return len(url) >= len(failoverScheme) && strings.EqualFold(url[:len(failoverScheme)], failoverScheme)
}

// ParseFailover reads failover:(URL,URL...)?SETTING=VALUE&..., also with failover:// and, without settings, without the
// parentheses. Settings of a host, jms.*, wireFormat.* and nested.* are ignored. The error is a [*Mistake] whose text
// has no passwords.
func ParseFailover(url string) (*Failover, error) {
	text := strings.TrimPrefix(strings.TrimSpace(url)[len(failoverScheme):], "//")
	hosts, query := text, ""
	if strings.HasPrefix(text, "(") {
		end := strings.LastIndexByte(text, ')')
		if end < 0 {
			return nil, mistake(failoverExample, "the failover URL has no closing parenthesis")
		}
		hosts, query = text[1:end], text[end+1:]
		if query != "" && query[0] != '?' {
			return nil, mistake(failoverExample, "the failover URL goes on after the parenthesis without a question mark")
		}
		query = strings.TrimPrefix(query, "?")
	}
	f := &Failover{Random: true, Again: true, Backoff: Backoff{
		First: 10 * time.Millisecond, Longest: 30 * time.Second, Multiplier: 2, LostLast: true,
	}}
	if err := f.hosts(hosts); err != nil {
		return nil, err
	}
	if err := f.parameters(query); err != nil {
		return nil, err
	}
	if f.settings != nil {
		f.Shown += "?" + strings.Join(f.settings, "&")
	}
	return f, nil
}

const failoverExample = "write it as 'failover:(tcp://HOST:PORT,tcp://HOST:PORT)?randomize=false', in quotes"

// hosts reads the URLs of the hosts.
func (f *Failover) hosts(text string) error {
	var scheme, user string
	var list []string
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		s, rest, ok := strings.Cut(part, "://")
		if !ok {
			return mistake(failoverExample, "host %d of the failover URL has no scheme", len(list)+1)
		}
		s = strings.ToLower(s)
		if scheme != "" && s != scheme {
			return mistake("give all hosts the same scheme", "the failover URL has hosts of the schemes %s and %s", scheme, s)
		}
		scheme = s
		rest, nested, _ := strings.Cut(rest, "?")
		for name := range strings.SplitSeq(nested, "&") {
			if name, _, _ = strings.Cut(name, "="); knownFailover(name) {
				return mistake("close the parenthesis before the question mark: "+failoverExample,
					"%s is given to a host of the failover URL", name)
			} else if name != "" {
				f.ignore(name)
			}
		}
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			if user != "" && rest[:at] != user {
				return mistake("give one for all by --user and PERFMQ_PASSWORD",
					"the hosts of the failover URL have different users")
			}
			user, rest = rest[:at], rest[at+1:]
		}
		list = append(list, strings.TrimSuffix(rest, "/"))
	}
	f.Shown = "failover:(" + scheme + "://" + strings.Join(list, ","+scheme+"://") + ")"
	f.URL = scheme + "://"
	if user != "" {
		f.URL += user + "@"
	}
	f.URL += strings.Join(list, ",")
	return nil
}

func (f *Failover) ignore(name string) { f.Ignored = append(f.Ignored, name) }

// failoverSettings are those that mean here what they mean in ActiveMQ.
func failoverSettings() []string {
	return []string{
		"randomize", "initialReconnectDelay", "maxReconnectDelay", "useExponentialBackOff", "backOffMultiplier",
		"reconnectDelayExponent", "maxReconnectAttempts", "timeout",
	}
}

// elsewhere are settings of the failover transport that perfmq has by another name.
func elsewhere() map[string]string {
	return map[string]string{
		"startupMaxReconnectAttempts": "--wait-for-broker TIME bounds the attempts at the start",
	}
}

func knownFailover(name string) bool {
	for _, known := range failoverSettings() {
		if name == known {
			return true
		}
	}
	return elsewhere()[name] != ""
}

// parameters reads the settings behind the parenthesis.
func (f *Failover) parameters(query string) error {
	exponential := true
	for setting := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' }) {
		name, value, _ := strings.Cut(setting, "=")
		if group, _, ok := strings.Cut(name, "."); ok && (group == "jms" || group == "wireFormat" || group == "nested") {
			f.ignore(name)
			continue
		}
		if slices.ContainsFunc(f.settings, func(s string) bool { return strings.HasPrefix(s, name+"=") }) {
			return mistake("give it once", "the failover URL has %s twice", name)
		}
		var err error
		switch name {
		case "randomize":
			f.Random, err = strconv.ParseBool(value)
		case "useExponentialBackOff":
			exponential, err = strconv.ParseBool(value)
		case "initialReconnectDelay":
			f.Backoff.First, err = milliseconds(value)
		case "maxReconnectDelay":
			f.Backoff.Longest, err = milliseconds(value)
		case "timeout":
			if value != "-1" && value != "0" {
				f.Backoff.Patience, err = milliseconds(value)
			}
		case "backOffMultiplier", "reconnectDelayExponent":
			f.Backoff.Multiplier, err = strconv.ParseFloat(value, 64)
			if m := f.Backoff.Multiplier; err == nil && (math.IsNaN(m) || m < 1 || m > 1000) {
				err = errFailoverRange
			}
		case "maxReconnectAttempts":
			f.Backoff.Attempts, err = strconv.Atoi(value)
			f.Again = f.Backoff.Attempts != 0
			if f.Backoff.Attempts < -1 {
				err = errFailoverRange
			}
			f.Backoff.Attempts = max(0, f.Backoff.Attempts)
		default:
			hint := "known are " + strings.Join(failoverSettings(), ", ") + "; jms.* and wireFormat.* are ignored"
			if other := elsewhere()[name]; other != "" {
				hint = other
			}
			return mistake(hint, "the setting %s of the failover URL is not supported", name)
		}
		if err != nil {
			return mistake(failoverValues(name), "the failover URL has %s=%s", name, value)
		}
		f.settings = append(f.settings, name+"="+value)
	}
	if !exponential {
		f.Backoff.Longest = f.Backoff.First
	}
	return nil
}

// failoverValues says which values a setting takes.
func failoverValues(name string) string {
	switch name {
	case "randomize", "useExponentialBackOff":
		return "it must be true or false"
	case "backOffMultiplier", "reconnectDelayExponent":
		return "it must be a number from 1 to 1000"
	case "timeout":
		return "it must be a number of milliseconds up to 86400000, or 0 or -1 for ever"
	case "maxReconnectAttempts":
		return "it must be a number of attempts, 0 for none, or -1 for any number"
	default:
		return "it must be a number of milliseconds from 1 to 86400000"
	}
}

var errFailoverRange = errors.New("out of range")

// milliseconds reads a delay.
func milliseconds(text string) (time.Duration, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err == nil && (n == 0 || n > 24*60*60*1000) {
		err = errFailoverRange
	}
	return time.Duration(n) * time.Millisecond, err //nolint:gosec // of a day at most
}

// redactFailover returns a failover URL without users, passwords and settings, fit for printing whatever its mistakes.
func redactFailover(url string) string {
	parts := strings.Split(url, "://")
	for i, part := range parts {
		if i > 0 {
			part = part[strings.LastIndexByte(part, '@')+1:]
		}
		if at := strings.IndexByte(part, '?'); at >= 0 {
			rest := ""
			if comma := strings.LastIndexByte(part, ','); comma > at && i < len(parts)-1 {
				rest = part[comma:]
			}
			part = part[:at] + rest
		}
		parts[i] = part
	}
	return strings.Join(parts, "://")
}

// describe says what the pauses are.
func (b Backoff) describe() string {
	text := fmt.Sprintf(", first after %v", b.First)
	if b.Longest != b.First {
		text += fmt.Sprintf(", each pause %g times the one before, at most %v", b.Multiplier, b.Longest)
	}
	if b.Attempts > 0 {
		text += fmt.Sprintf(", in %s", plural(b.Attempts, "attempt"))
	}
	if b.Patience > 0 {
		text += fmt.Sprintf("; a message waits for that up to %v", b.Patience)
	}
	return text
}
