package config

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/plan"
)

// failover is a URL of ActiveMQ's failover transport, as perfmq's own settings.
type failover struct {
	url     string // of the hosts, as other URLs name several
	spread  bool   // --hosts spread, which stands for a random order
	ignored []string
}

// failoverScheme is how URLs of the failover transport begin.
const failoverScheme = "failover:"

const failoverHint = "write it as 'failover:(tcp://HOST:PORT,tcp://HOST:PORT)?randomize=false'; " +
	"--reconnect-delay and --reconnect-timeout stand for other settings"

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

// parseFailover reads failover:(URL,URL...)?randomize=BOOL, also with failover:// and, without settings, without the
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
	f := &failover{spread: true}
	if err := f.readHosts(hosts); err != nil {
		return nil, err
	}
	for setting := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' }) {
		name, value, _ := strings.Cut(setting, "=")
		group, _, grouped := strings.Cut(name, ".")
		switch {
		case grouped && (group == "jms" || group == "wireFormat" || group == "nested"):
			f.ignored = append(f.ignored, name)
		case name != "randomize":
			return nil, wrongFailover(name)
		case value != "true" && value != "false":
			return nil, wrongFailover(setting)
		default:
			f.spread = value == "true"
		}
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
	f.url = scheme + "://" + user + strings.Join(list, ",")
	return nil
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

// applyFailover lets failover URLs of a group reconnect and spread its connections. Flags take precedence.
func (r *resolver) applyFailover(g *plan.Group, brokers []usedBroker) {
	for _, b := range brokers {
		if b.failover == nil {
			continue
		}
		if !r.Has("reconnect") {
			g.Reconnect = true
			r.addNote("the failover URL implies --reconnect")
		}
		if !r.Has("hosts") && b.failover.spread {
			g.Hosts = plan.Spread
			r.addNote("the failover URL implies --hosts spread: add randomize=false for the order of the URL")
		}
	}
}
