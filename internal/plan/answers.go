package plan

import "time"

// MinSendTimeout is the shortest [Group.SendTimeout].
const MinSendTimeout = 20 * time.Millisecond

// LeaveOneOut is the hint for two settings that exclude each other.
const LeaveOneOut = "leave one of them out"

// exclude refuses two settings that exclude each other.
func (v *validator) exclude(both bool, first, second string) {
	v.refuse(both, LeaveOneOut, "%s does not work with %s", first, second)
}

// answers checks what becomes of messages without an answer.
func (v *validator) answers() {
	g := v.group
	v.refuse(g.SendTimeout != 0 && g.SendTimeout < MinSendTimeout, "", "--send-timeout %v is below %v", g.SendTimeout,
		MinSendTimeout)
	v.exclude(g.SendTimeout > 0 && g.CommitInterval > 0, "--send-timeout", "--commit-interval")
	v.resend()
}

// resend checks whether messages in doubt can be sent again.
func (v *validator) resend() {
	g := v.group
	if !g.Resend {
		return
	}
	c := &v.driver(g.ProducerBroker).Capabilities
	v.refuse(!g.Reconnect && g.SendTimeout == 0 && !c.TimesOut && !c.Reconnects, "add --reconnect or --send-timeout TIME",
		"--in-doubt resend: no message ends in doubt")
	v.exclude(g.CommitInterval > 0, "--in-doubt resend", "--commit-interval")
}
