package plan

import (
	"fmt"
	"time"
)

// MinSendTimeout is the shortest [Group.SendTimeout].
const MinSendTimeout = 20 * time.Millisecond

// LeaveOneOut is the hint for two settings that exclude each other.
const LeaveOneOut = "leave one of them out"

// answers checks what becomes of messages without an answer.
func (v *validator) answers() {
	g := v.group
	v.refuse(g.SendTimeout != 0 && g.SendTimeout < MinSendTimeout, fmt.Sprintf("give %v or more", MinSendTimeout),
		"--send-timeout %v is too short to be told from the tester's own delays", g.SendTimeout)
	v.refuse(g.SendTimeout > 0 && g.CommitInterval > 0, LeaveOneOut,
		"--send-timeout does not work with --commit-interval: messages of a transaction wait for its commit")
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
		"--in-doubt resend needs --reconnect or --send-timeout: without them no message ends in doubt before the run does")
	v.refuse(g.CommitInterval > 0, LeaveOneOut,
		"--in-doubt resend does not work with --commit-interval: it is not known which messages a lost commit was of")
}
