package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/setting"
)

// withoutEffect returns the switches of artemis perf that perfmq accepts for existing scripts and ignores, each with
// the reason.
func withoutEffect() [][2]string {
	return [][2]string{
		{"enable-msg-id", "messages are numbered by --verify; the protocols decide on message IDs themselves"},
		{"enable-timestamp", "every message carries the time when it was sent"},
		{"verbose", "errors are always printed in full"},
	}
}

// acceptCompatible defines the switches that have no effect.
func acceptCompatible(flags *pflag.FlagSet) {
	for _, f := range withoutEffect() {
		flags.Bool(f[0], false, f[1])
		_ = flags.MarkHidden(f[0]) // the flag exists
	}
}

// compatibleNotes returns a note for each of them that was given.
func compatibleNotes(flags *pflag.FlagSet) (notes []string) {
	for _, f := range withoutEffect() {
		if flags.Changed(f[0]) {
			notes = append(notes, "--"+f[0]+" has no effect: "+f[1])
		}
	}
	return notes
}

// otherNames returns a hint for a flag name of another tool; empty if the name is unknown.
func otherNames(name string) string {
	switch strings.ToLower(strings.ReplaceAll(name, "-", "")) {
	case "accesskey", "ak", "username", "login":
		return "give it as --user"
	case "secretkey", "sk":
		return "give it as PERFMQ_PASSWORD or in a --password-file"
	case "broker", "brokerurl", "host", "server", "namesrv", "nameserver":
		return "give it as --url"
	case "size", "messagesize", "bodysize":
		return "did you mean --message-size?"
	case "count", "messages":
		return "did you mean --message-count?"
	default:
		return ""
	}
}

// clientParameters returns the URL parameters that configure only the client of Artemis and its connections to one
// broker, so that perfmq can ignore them. Parameters that change messages, their delivery or encryption are not among
// them.
func clientParameters() []string {
	return []string{
		"autoGroup", "blockOnAcknowledge", "blockOnDurableSend", "blockOnNonDurableSend", "cacheLargeMessagesClient",
		"callFailoverTimeout",
		"callTimeout", "clientFailureCheckPeriod", "confirmationWindowSize", "connectionTTL", "connectionTtl",
		"consumerWindowSize", "ha",
		"initialConnectAttempts", "initialMessagePacketSize", "maxRetryInterval", "minLargeMessageSize", "nettyThreads",
		"producerWindowSize",
		"reconnectAttempts", "remotingThreads", "retryInterval", "retryIntervalMultiplier", "scheduledThreadPoolMaxSize",
		"tcpNoDelay", "tcpReceiveBufferSize", "tcpSendBufferSize", "threadPoolMaxSize", "useEpoll", "useGlobalPools",
		"useKQueue",
		"useTopologyForLoadBalancing",
	}
}

// withoutClientParameters returns a URL without such parameters, and their names. A URL with another parameter is
// returned unchanged, for the driver to refuse.
func withoutClientParameters(url string) (plain string, names []string) {
	plain, query, ok := strings.Cut(url, "?")
	if !ok {
		return url, nil
	}
	for parameter := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, _, _ := strings.Cut(parameter, "=")
		if !slices.Contains(clientParameters(), name) {
			return url, nil
		}
		names = append(names, name)
	}
	return plain, names
}

// note adds a note that is printed before the run.
func (r *resolver) note(text string) {
	if !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

// clientURL returns a URL without parameters that have no effect, and adds a note with their names.
func (r *resolver) clientURL(flag, url string) string {
	plain, names := withoutClientParameters(url)
	for _, name := range names {
		r.note(flag + ": " + name + " is a setting of Artemis's own client and has no effect")
	}
	return plain
}

func isRole(name string) bool { return slices.Contains(setting.Roles(), plan.Role(name)) }

// protocolOfRole returns the mistake for a command without a protocol: perfmq client.
func (a *app) protocolOfRole(role string) *plan.Mistake {
	var commands []string
	for i := range a.Factories {
		commands = append(commands, "perfmq "+a.Factories[i].Name+" "+role)
	}
	return &plan.Mistake{Text: "perfmq " + role + " has no protocol", Hint: "write " + strings.Join(commands, ", or ")}
}
